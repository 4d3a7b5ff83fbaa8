#!/bin/sh
# Install the object store servers that `make test-stores` runs on loopback, from their package registries:
# MinIO and fake-gcs-server (needs Go; MinIO builds for some minutes), Azurite (needs npm) and HDFS (needs Maven).
#
#   scripts/install_store_servers.sh FOLDER [minio] [fake-gcs-server] [azurite] [hdfs] [hadoop]
#
# Without names: all of them. What is in the folder already is kept.
set -eu

folder=${1:?"usage: $0 FOLDER [minio] [fake-gcs-server] [azurite] [hdfs] [hadoop]"}
shift
[ $# -gt 0 ] || set -- minio fake-gcs-server azurite hdfs hadoop
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

for server in "$@"; do
    case $server in
        minio) [ -x "$folder/minio" ] || GOBIN=$folder go install github.com/minio/minio@latest ;;
        fake-gcs-server)
            [ -x "$folder/fake-gcs-server" ] || GOBIN=$folder go install github.com/fsouza/fake-gcs-server@latest ;;
        azurite)
            [ -x "$folder/node_modules/.bin/azurite-blob" ] ||
                (cd "$folder" && npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts azurite) ;;
        hdfs)
            # A namenode and a datanode in one JVM, as Hadoop's own tests have them.
            for jar in org.apache.hadoop:hadoop-client-minicluster:3.5.0 org.apache.hadoop:hadoop-client-api:3.5.0 \
                org.apache.hadoop:hadoop-client-runtime:3.5.0 org.slf4j:slf4j-api:1.7.36 \
                commons-logging:commons-logging:1.3.0; do
                name=$(echo "$jar" | cut -d: -f2-3 | tr : -)
                [ -f "$folder/hdfs/$name.jar" ] ||
                    mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -Dartifact="$jar" \
                        -DoutputDirectory="$folder/hdfs"
            done ;;
        hadoop)
            # Hadoop's client of Google Cloud Storage; those of S3 and Azure are fetched by Spark.
            ls "$folder"/hadoop/gcs-connector*shaded.jar >/dev/null 2>&1 ||
                mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
                    -Dartifact=com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.28:jar:shaded \
                    -DoutputDirectory="$folder/hadoop" ;;
        *) echo "there is no server named $server: minio, fake-gcs-server, azurite, hdfs or hadoop" >&2; exit 2 ;;
    esac
done
