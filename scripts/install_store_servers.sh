#!/bin/sh
# Install the object store servers that `make test-stores` runs on loopback, from their package registries:
# MinIO and fake-gcs-server (needs Go; MinIO builds for some minutes) and Azurite (needs npm).
#
#   scripts/install_store_servers.sh FOLDER [minio] [fake-gcs-server] [azurite]
#
# Without names: all of them. What is in the folder already is kept.
set -eu

folder=${1:?"usage: $0 FOLDER [minio] [fake-gcs-server] [azurite]"}
shift
[ $# -gt 0 ] || set -- minio fake-gcs-server azurite
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
        *) echo "there is no server named $server: minio, fake-gcs-server or azurite" >&2; exit 2 ;;
    esac
done
