"""The pipeline: the files that have landed replace their days of `orders`; `totals` is computed from all days."""

from kedro.pipeline import Pipeline, node
from pyspark.sql import DataFrame


def without_duplicates(landing: DataFrame) -> DataFrame:
    return landing.dropDuplicates(["id"])


def by_country(orders: DataFrame) -> DataFrame:
    return orders.groupBy("country").agg({"amount": "sum"}).toDF("country", "amount")


def register_pipelines() -> dict[str, Pipeline]:
    nodes = [node(without_duplicates, "landing", "orders"), node(by_country, "orders", "totals")]
    return {"__default__": Pipeline(nodes)}
