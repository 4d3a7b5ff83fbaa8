"""Dagster assets in Delta tables: an IO manager that writes each partition with `replaceWhere`, and maintenance.

    ORDERS_LANDING=/landing ORDERS_LAKE=s3://lake dagster dev -f examples/dagster/orders.py

A partition that runs again replaces its own rows, so you can backfill in any order. Nothing here needs Java.
"""

import os
from datetime import date, timedelta

import dagster as dg
import pyarrow as pa
import pyarrow.csv

from delta_ds import DeltaLog

daily = dg.DailyPartitionsDefinition(start_date="2026-01-01")
CSV = pa.csv.ConvertOptions(column_types={"amount": pa.float64()})


class DeltaIOManager(dg.ConfigurableIOManager):
    lake: str  # each asset is a table below it, partitioned by `day`

    def log(self, asset: dg.AssetKey) -> DeltaLog:
        return DeltaLog("/".join([self.lake, *asset.path]))

    def handle_output(self, context: dg.OutputContext, obj: pa.Table) -> None:
        options = {"userMetadata": f"dagster run {context.run_id}"}
        if context.has_partition_key:
            options |= {"partitionBy": "day", "replaceWhere": f"day = '{context.partition_key}'"}
        version = self.log(context.asset_key).write(obj, mode="overwrite", options=options)
        context.add_output_metadata({"version": version, "rows": obj.num_rows})

    def load_input(self, context: dg.InputContext) -> pa.Table:
        days = context.asset_partition_keys if context.has_asset_partitions else []
        predicate = f"day IN ({', '.join(map(repr, days))})" if days else None
        return self.log(context.asset_key).to_arrow(predicate)


@dg.asset(partitions_def=daily)
def orders(context: dg.AssetExecutionContext) -> pa.Table:
    day = context.partition_key
    rows = pa.csv.read_csv(f"{os.environ['ORDERS_LANDING']}/{day}.csv", convert_options=CSV)
    return rows.append_column("day", pa.array([day] * rows.num_rows, pa.string()))


@dg.asset  # of all days, without partitions: each run replaces the whole table
def totals(orders: pa.Table) -> pa.Table:
    return orders.group_by("country").aggregate([("amount", "sum")]).sort_by("country")


@dg.asset(deps=[orders])
def maintenance(lake: dg.ResourceParam[DeltaIOManager]) -> dg.MaterializeResult:
    log = lake.log(dg.AssetKey("orders"))
    log.optimize(where=f"day < '{date.today() - timedelta(days=1)}'")  # days that no run writes
    return dg.MaterializeResult(metadata={"deleted": log.vacuum().num_files})


lake = DeltaIOManager(lake=dg.EnvVar("ORDERS_LAKE"))
defs = dg.Definitions(assets=[orders, totals, maintenance], resources={"io_manager": lake, "lake": lake})
