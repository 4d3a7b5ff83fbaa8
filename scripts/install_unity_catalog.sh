#!/bin/sh
# Install the open-source Unity Catalog server that `make test-unity` runs: its jars into FOLDER/lib, its settings into
# FOLDER/etc (needs Maven and Java 17).
#
#   scripts/install_unity_catalog.sh FOLDER
#
# The server is taken from Maven Central, UNITY_VERSION of it. What is in the folder already is kept.
set -eu

folder=${1:?"usage: $0 FOLDER"}
version=${UNITY_VERSION:-0.6.0}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
[ -f "$folder/lib/unitycatalog-server-$version.jar" ] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat > "$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>unity</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>io.unitycatalog</groupId><artifactId>unitycatalog-server</artifactId><version>$version</version>
  </dependency></dependencies>
</project>
POM
mvn -q -B -f "$work/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$folder/lib" || {
    echo "Maven has no unitycatalog-server $version: name a folder with its jars in DELTA_DS_UNITY_SERVER" >&2
    exit 1
}
mkdir -p "$folder/etc/conf"
# What the server has by itself; it wants the files.
printf 'server.env=dev\nserver.authorization=disable\n' > "$folder/etc/conf/server.properties"
printf 'hibernate.connection.driver_class=org.h2.Driver\nhibernate.connection.url=jdbc:h2:file:./etc/db/h2db;DB_CLOSE_DELAY=-1\nhibernate.hbm2ddl.auto=update\n' \
    > "$folder/etc/conf/hibernate.properties"
printf 'rootLogger.level=warn\n' > "$folder/etc/conf/server.log4j2.properties"
