# Spark's own image with this package, for drivers and executors on Kubernetes.
#
#     make dist
#     docker build -f examples/docker/spark.Dockerfile -t registry.example.com/orders:1 .
ARG SPARK=4.1.3
FROM apache/spark:${SPARK}-scala2.13-java17-python3-ubuntu

USER root
# The image has a pyspark of its own: install what the package needs beside it, and the package alone.
RUN pip install --no-cache-dir "numpy>=1.26" "pyarrow>=23" "fsspec>=2024.2" "sqlglot>=26" "pyroaring>=1.0" tzdata
COPY dist/delta_ds-*.whl /tmp/
RUN pip install --no-cache-dir --no-deps /tmp/delta_ds-*.whl && rm /tmp/delta_ds-*.whl
COPY examples/docker/job.py /opt/job.py
USER spark
