# A slim image for jobs that run in one container: DeltaLog without Spark, or Spark on all cores of the container.
#
#     make dist
#     docker build -f examples/docker/python.Dockerfile -t orders .
#     docker run --rm -v orders:/data orders
FROM python:3.11-slim-bookworm

# For Spark. Leave this step out if your jobs need only DeltaLog.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*

COPY dist/delta_ds-*.whl /tmp/
RUN pip install --no-cache-dir "$(ls /tmp/delta_ds-*.whl)[cli,s3]" && rm /tmp/delta_ds-*.whl

RUN useradd --uid 1000 --create-home delta && mkdir /data && chown delta /data
USER delta
WORKDIR /home/delta
COPY examples/docker/job.py job.py
ENV PYTHONUNBUFFERED=1
CMD ["python3", "job.py", "/data/orders", "2026-01-31"]
