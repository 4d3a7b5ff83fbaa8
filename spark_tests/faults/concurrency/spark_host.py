"""A process that holds one JVM with one small Spark, which other processes then share: each by a connection of its own.

Four JVMs on two processors are busy with themselves. What races, the log and the commits, is in the Python processes.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

SETTINGS: dict[str, Any] = {
    "spark.driver.memory": "512m", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1", "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}  # fmt: skip


def own_session(warehouse: str) -> SparkSession:
    """A session with a JVM of its own."""
    settings = {**SETTINGS, "spark.sql.warehouse.dir": warehouse}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def shared_session(port: int, secret: str, environment: Any) -> SparkSession:
    """A session in the JVM of a host.

    Parameters
    ----------
    port, secret
        One of the connections that the host has answered; nobody else may use it, since callbacks go that way too.
    environment
        `os.environ`, or what stands for it.
    """
    environment["PYSPARK_GATEWAY_PORT"], environment["PYSPARK_GATEWAY_SECRET"] = str(port), secret
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    context = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    jsc = gateway.jvm.JavaSparkContext.fromSparkContext(context)
    conf = SparkConf(_jvm=gateway.jvm, _jconf=jsc.getConf())
    return SparkSession(SparkContext(gateway=gateway, jsc=jsc, conf=conf)).newSession()


def main() -> None:
    """Answer as many connections as the first line asks for; end with the input."""
    job = json.loads(sys.stdin.readline())
    spark = own_session(job["warehouse"])
    jvm: Any = spark.sparkContext._jvm
    gateway: Any = spark.sparkContext._gateway
    secret, home = gateway.gateway_parameters.auth_token, jvm.java.net.InetAddress.getByName("127.0.0.1")
    ports = []
    for _ in range(job["connections"]):
        builder = jvm.py4j.ClientServer.ClientServerBuilder()
        server = builder.authToken(secret).javaPort(0).javaAddress(home).build()
        server.startServer()
        ports.append(server.getJavaServer().getListeningPort())
    print(json.dumps([[port, secret] for port in ports]), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
