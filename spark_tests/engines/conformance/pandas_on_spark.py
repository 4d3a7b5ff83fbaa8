"""pandas API on Spark over Delta tables: small programs, and what each gives as JSON.

What delta-spark 4.4.0 on Spark 4.2.0 and pandas 2.3.3 gave is recorded in `corpora/pandas_on_spark`. To record anew, in
a session that has delta-spark:

    record(spark, folder)  # returns the outcomes by name

Types of pandas are left out, which differ between its versions; those of Spark are in.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED = Path(__file__).parent / "corpora" / "pandas_on_spark" / "recorded.json"
Outcome = Any


class Tables:
    """What a program works with: the session, and a fresh folder.

    Parameters
    ----------
    spark
        The session.
    folder
        For the tables of the program.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        import pyspark.pandas as ps

        self.spark, self.folder, self.ps = spark, folder, ps
        ps.set_option("compute.ops_on_diff_frames", True)

    def path(self, name: str = "t") -> str:
        return f"{self.folder}/{name}"

    def frame(self) -> Any:
        import pandas as pd

        return pd.DataFrame({"id": [1, 2, 3, 4], "k": ["a", "b", "a", None], "v": [1.5, 2.5, None, 4.0]})

    def made(self, name: str = "t", **options: Any) -> str:
        self.ps.from_pandas(self.frame()).to_delta(self.path(name), **options)
        return self.path(name)

    def rows(self, path: str) -> Outcome:
        return shown(self.spark.read.format("delta").load(path).toPandas())

    def named(self, name: str) -> Outcome:
        return shown(self.spark.table(name).toPandas())

    def detail(self, path: str) -> Any:
        return self.spark.sql(f"DESCRIBE DETAIL delta.`{path}`").first()

    def history(self, path: str) -> Any:
        return self.spark.sql(f"DESCRIBE HISTORY delta.`{path}`").first()


def shown(found: Any) -> Outcome:
    """A frame, series or index as columns, names of the index and sorted rows of texts."""
    import pandas as pd

    if hasattr(found, "to_pandas"):
        found = found.to_pandas()
    if isinstance(found, pd.Index):
        found = found.to_frame(index=False)
    if isinstance(found, pd.Series):
        found = found.to_frame("value" if found.name is None else found.name)
    names = list(found.index.names)
    rows = [json.dumps([_text(v) for v in row]) for row in found.itertuples(index=names != [None])]
    return {
        "columns": [str(c) for c in found.columns],
        "index": [str(n) for n in names],
        "rows": sorted(rows),
    }


def _text(value: Any) -> str:
    import numpy as np
    import pandas as pd

    if isinstance(value, (list, tuple, np.ndarray)):
        return f"[{', '.join(map(_text, value))}]"
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return "null"
    return str(value)


def tried(call: Callable[[], Any]) -> Outcome:
    """What a call gives, or the condition of its error."""
    try:
        return call()
    except Exception as error:
        return {"error": condition(error)}


def condition(error: Exception) -> str:
    told = getattr(error, "getCondition", lambda: None)
    try:
        return told() or type(error).__name__
    except Exception:  # an answer of the JVM that has none
        return type(error).__name__


# --- the programs

PROGRAMS: dict[str, Callable[[Tables], Outcome]] = {}


def program(function: Callable[[Tables], Outcome]) -> Callable[[Tables], Outcome]:
    PROGRAMS[function.__name__] = function
    return function


@program
def read(t: Tables) -> Outcome:
    return shown(t.ps.read_delta(t.made()))


@program
def read_with_index(t: Tables) -> Outcome:
    path = t.made()
    chosen = ("id", ["id", "k"], "nope")
    return [tried(lambda c=c: shown(t.ps.read_delta(path, index_col=c))) for c in chosen]


@program
def read_versions(t: Tables) -> Outcome:
    path = t.made()
    t.ps.from_pandas(t.frame().head(1)).to_delta(path, mode="append")
    asked: Iterable[dict[str, Any]] = (
        {}, {"version": 0}, {"version": "1"}, {"versionAsOf": 0}, {"version": 9}, {"timestamp": "2001-01-01"},
        {"version": 0, "timestamp": "2031-01-01"}, {"timestamp": str(t.history(path).timestamp)},
    )  # fmt: skip
    return [tried(lambda a=a: shown(t.ps.read_delta(path, **a))) for a in asked]


@program
def read_changes(t: Tables) -> Outcome:
    path = t.made()
    t.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    t.ps.from_pandas(t.frame().head(1)).to_delta(path, mode="append")
    return shown(
        t.ps.read_delta(path, readChangeFeed=True, startingVersion=2).drop(columns=["_commit_timestamp"])
    )


@program
def read_nothing(t: Tables) -> Outcome:
    return shown(t.ps.read_delta(t.path("none")))


@program
def write_in_each_mode(t: Tables) -> Outcome:
    path, found = t.made(), []
    for mode in ("error", "errorifexists", "ignore", "append", "a", "overwrite", "w", "x", "wrong"):

        def write(mode: str = mode) -> Outcome:
            t.ps.from_pandas(t.frame().head(1)).to_delta(path, mode=mode)
            return len(t.rows(path)["rows"])

        found.append([mode, tried(write)])
    return found


@program
def sql(t: Tables) -> Outcome:
    path = t.made()
    t.ps.from_pandas(t.frame()).to_delta(path, mode="append")
    first = t.ps.read_delta(path, version=0)
    return [
        shown(t.ps.sql(f"SELECT k, count(*) c FROM delta.`{path}` GROUP BY k")),
        shown(t.ps.sql(f"SELECT count(*) c FROM delta.`{path}` VERSION AS OF 0")),
        shown(t.ps.sql("SELECT * FROM {d} WHERE id > {x}", d=first, x=2)),
        shown(t.ps.sql("SELECT * FROM {d}", d=first, index_col="id")),
        shown(t.ps.sql("SELECT a.id, b.v FROM {a} a JOIN delta.`%s` b ON a.id = b.id" % path, a=first)),
    ]


@program
def versions_beside_each_other(t: Tables) -> Outcome:
    path = t.made()
    newest = t.ps.read_delta(path)
    t.spark.sql(f"UPDATE delta.`{path}` SET v = 9.0 WHERE id = 1")
    t.spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")
    old, new = (t.ps.read_delta(path, version=version) for version in (0, 2))
    by_id = [t.ps.read_delta(path, version=version, index_col="id") for version in (0, 2)]
    return [
        shown(old.merge(new, on="id", suffixes=("_old", "_new"))), shown(old.merge(newest, on="id", how="left")),
        shown(by_id[0].join(by_id[1], rsuffix="_new")), shown((by_id[1]["v"] - by_id[0]["v"]).rename("change")),
        shown(t.ps.concat([old, new])), [len(old), len(new), len(newest)],
    ]  # fmt: skip


@program
def overwrite_what_is_read(t: Tables) -> Outcome:
    path = t.made()
    frame = t.ps.read_delta(path)
    frame = frame[frame.id > 2]
    frame.to_delta(path, mode="overwrite")
    found = [t.rows(path), shown(frame)]
    frame["w"] = frame.id * 2
    frame.to_delta(path, mode="overwrite", overwriteSchema=True)
    t.ps.from_pandas(t.frame()).spark.to_table("ps_read", format="delta")
    named = t.ps.read_table("ps_read")
    named["v"] = named.v.fillna(0)
    named.spark.to_table("ps_read", format="delta", mode="overwrite")
    return [*found, t.rows(path), t.named("ps_read")]


@program
def append_what_is_read(t: Tables) -> Outcome:
    path = t.made()
    t.ps.read_delta(path).to_delta(path, mode="append")
    return t.rows(path)


@program
def write_with_options(t: Tables) -> Outcome:
    path = t.made(partition_cols="k")
    found = [t.rows(path), t.detail(path).partitionColumns]
    wider = t.frame().assign(w=7)
    calls: Iterable[tuple[str, dict[str, Any]]] = (
        ("append", {"mergeSchema": True}), ("append", {}), ("overwrite", {"replaceWhere": "k = 'a'"}),
        ("overwrite", {"replaceWhere": "k = 'a'", "mergeSchema": True}), ("overwrite", {"overwriteSchema": True}),
        ("append", {"userMetadata": "mine"}), ("append", {"partition_cols": ["id"]}),
        ("append", {"txnAppId": "app", "txnVersion": 1}), ("append", {"txnAppId": "app", "txnVersion": 1}),
        ("overwrite", {"partition_cols": ["id", "k"], "overwriteSchema": True}), ("append", {"options": {"a": "b"}}),
    )  # fmt: skip
    for mode, options in calls:

        def write(mode: str = mode, options: dict[str, Any] = options) -> Outcome:
            t.ps.from_pandas(wider).to_delta(path, mode=mode, **options)
            return len(t.rows(path)["rows"])

        found.append(tried(write))
    record = t.history(path)
    return [*found, t.detail(path).partitionColumns, record.version, record.operation, t.rows(path)]


@program
def write_the_index(t: Tables) -> Outcome:
    frame = t.ps.from_pandas(t.frame().set_index(["id", "k"]))
    found = []
    for number, index in enumerate((None, ["id", "k"], ["a", "b"], "one", ["id"])):

        def write(number: int = number, index: Any = index) -> Outcome:
            frame.to_delta(t.path(f"i{number}"), index_col=index)
            return t.rows(t.path(f"i{number}"))

        found.append(tried(write))
    path = t.made("back")
    back = t.ps.read_delta(path, index_col=["id", "k"])
    back.to_delta(path, mode="overwrite", index_col=["id", "k"])
    return [*found, t.rows(path), shown(t.ps.read_delta(path, index_col="k").loc["a"])]


@program
def tables_by_name(t: Tables) -> Outcome:
    frame = t.ps.from_pandas(t.frame())
    frame.spark.to_table("ps_named", format="delta", partition_cols="k")
    found = [t.named("ps_named"), t.spark.sql("DESCRIBE DETAIL ps_named").first().partitionColumns]
    for mode in ("append", "overwrite", "error", "ignore"):

        def write(mode: str = mode) -> Outcome:
            frame.spark.to_table("ps_named", format="delta", mode=mode, partition_cols="k")
            return len(t.named("ps_named")["rows"])

        found.append(tried(write))
    frame.set_index("id").spark.to_table("ps_indexed", format="delta", index_col="id")
    t.spark.sql("UPDATE ps_indexed SET v = 0 WHERE id = 1")
    frame.head(1).spark.to_spark_io(t.path("io"), format="delta", mode="append", partition_cols="k")
    return [
        *found, shown(t.ps.read_table("ps_indexed", index_col="id")), shown(t.ps.sql("SELECT * FROM ps_indexed")),
        shown(t.ps.sql("SELECT count(*) c FROM ps_named VERSION AS OF 0")), t.rows(t.path("io")),
        shown(t.ps.read_spark_io(t.path("io"), format="delta", index_col="k")),
        tried(lambda: shown(t.ps.read_table("ps_none"))),
    ]  # fmt: skip


_VALUES = {
    "d": "CAST(1.50 AS DECIMAL(10, 2))", "day": "DATE'2024-02-29'", "at": "TIMESTAMP'2024-02-29 12:30:00.123456'",
    "ntz": "TIMESTAMP_NTZ'2024-02-29 12:30:00'", "b": "X'00FF'", "flag": "true", "tiny": "CAST(7 AS TINYINT)",
    "f": "CAST(0.5 AS FLOAT)", "arr": "array(1, null)", "s": "named_struct('x', 1, 'y', 'z')", "txt": "''",
    "far": "DATE'9999-12-31'", "m": "map('k', 1)", "big": "CAST(12345678901234567890 AS DECIMAL(38, 0))",
}  # fmt: skip


@program
def types(t: Tables) -> Outcome:
    found = {}
    for name, value in _VALUES.items():

        def one(name: str = name, value: str = value) -> Outcome:
            path = t.path(f"type_{name}")
            columns = f"{value} AS {name}, 1 AS n UNION ALL SELECT NULL, 2"
            t.spark.sql(f"CREATE TABLE delta.`{path}` USING delta AS SELECT {columns}").collect()
            frame = t.ps.read_delta(path)
            frame.to_delta(t.path(f"copy_{name}"))
            copied = t.ps.read_delta(t.path(f"copy_{name}"))
            kept = t.ps.read_delta(path, version=0)
            return [
                copied.spark.schema()[0].dataType.simpleString(),
                shown(copied),
                shown(kept[kept[name].notna()]),
            ]

        found[name] = tried(one)
    return found


@program
def group(t: Tables) -> Outcome:
    path = t.made()
    t.ps.from_pandas(t.frame()).to_delta(path, mode="append")
    frame, old = t.ps.read_delta(path), t.ps.read_delta(path, version=0, index_col="id")
    grouped = frame.groupby("k", dropna=False)
    grouped.agg({"id": "count", "v": "max"}).to_delta(t.path("g"), index_col="k")
    calls: Iterable[Callable[[], Any]] = (
        lambda: frame.groupby("k").sum(numeric_only=True), lambda: frame.groupby("k")["v"].mean(),
        lambda: frame.groupby(["k", "id"]).size(), lambda: frame.k.value_counts(), lambda: old.groupby("k").cumcount(),
        lambda: frame.pivot_table(values="v", index="k", columns="id", aggfunc="sum"),
        lambda: old.groupby(old.v > 2)["v"].max(), lambda: frame.merge(grouped["v"].min().reset_index(), on="k"),
    )  # fmt: skip
    return [*(tried(lambda call=call: shown(call())) for call in calls), t.rows(t.path("g"))]


_NAMES = ("a b", "x.y", "日本", "a`b", "(1, 2)", "select")


@program
def names(t: Tables) -> Outcome:
    found = {}
    for at, name in enumerate(_NAMES):

        def plain(at: int = at, name: str = name) -> Outcome:
            path = t.path(f"plain{at}")
            t.ps.from_pandas(t.frame().rename(columns={"v": name})).to_delta(path)
            return shown(t.ps.read_delta(path)[["id", name]])

        def mapped(at: int = at, name: str = name) -> Outcome:
            path = t.path(f"mapped{at}")
            frame = t.ps.from_pandas(t.frame().rename(columns={"v": name, "k": f"{name}2"}))
            options = {"delta.columnMapping.mode": "name", "partition_cols": [f"{name}2"]}
            frame.to_delta(path, **options)
            frame.set_index(name).to_delta(path, mode="append", index_col=name)
            back = t.ps.read_delta(path, index_col=name)
            return [
                shown(back),
                shown(t.ps.read_delta(path, version=0)[name]),
                t.detail(path).partitionColumns,
            ]

        found[name] = [tried(plain), tried(mapped)]
    return found


@program
def levels_of_columns(t: Tables) -> Outcome:
    import pandas as pd

    levels = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    frame = t.ps.from_pandas(pd.DataFrame([[1, 2], [3, 4]], columns=levels))
    numbers = pd.DataFrame([[1, 2]], columns=[7, 8])
    return [
        tried(lambda: frame.to_delta(t.path("levels"), **{"delta.columnMapping.mode": "name"})),
        tried(lambda: t.rows(t.path("levels"))),
        tried(lambda: t.ps.from_pandas(numbers).to_delta(t.path("numbers"))),
        tried(lambda: t.rows(t.path("numbers"))),
    ]


@program
def types_of_pandas(t: Tables) -> Outcome:
    import datetime
    import decimal

    import pandas as pd

    at = pd.Timestamp("2024-02-29 12:30:00.123456")
    series = {
        "category": pd.Series(["x", "y", "x"], dtype="category"), "zone": pd.Series([at.tz_localize("Asia/Tokyo")]),
        "naive": pd.Series([at, pd.NaT]), "decimal": pd.Series([decimal.Decimal("1.50"), None]),
        "date": pd.Series([datetime.date(2024, 2, 29), None]), "bytes": pd.Series([b"\x00\xff"]),
        "list": pd.Series([[1, 2], [], None]), "lists": pd.Series([[["a"], []]]),
        "delta": pd.Series([pd.Timedelta(days=1)]), "interval": pd.Series([pd.Interval(0, 1)]),
        "int": pd.Series([1, None], dtype="Int64"), "bool": pd.Series([True, None], dtype="boolean"),
        "text": pd.Series(["a", None], dtype="string"), "nan": pd.Series([float("nan"), float("inf"), 1.0]),
        "small": pd.Series([1], dtype="int8"), "f32": pd.Series([0.5], dtype="float32"),
        "none": pd.Series([None, None]), "mixed": pd.Series([1, "a"], dtype="object"),
    }  # fmt: skip
    found = {}
    for name, values in series.items():

        def one(name: str = name, values: Any = values) -> Outcome:
            path = t.path(f"of_{name}")
            frame = t.ps.from_pandas(pd.DataFrame({"c": values, "n": range(len(values))}))
            frame.to_delta(path)
            frame.to_delta(path, mode="append")
            back = t.ps.read_delta(path)
            back.to_delta(path, mode="overwrite")
            t.ps.read_delta(path, index_col="n").to_delta(path, mode="append", index_col="n")
            return [back.spark.schema()["c"].dataType.simpleString(), shown(back), t.rows(path)]

        found[name] = tried(one)
    return found


@program
def nested(t: Tables) -> Outcome:
    path = t.path("nested")
    columns = "named_struct('x', id, 'a b', array(named_struct('k', id))) AS s, map('p', array(id)) AS m, id"
    t.spark.sql(f"SELECT {columns} FROM range(3)").pandas_api().to_delta(
        path, **{"delta.columnMapping.mode": "name"}
    )
    frame = t.ps.read_delta(path)
    frame.to_delta(path, mode="overwrite")
    frame = t.ps.read_delta(path, index_col="id")
    frame["x"] = frame.s.spark.transform(lambda column: column["x"] * 2)
    flat = t.ps.sql("SELECT s.x, s.`a b`[0].k AS k, m['p'][0] AS p FROM {f} WHERE s.x > 0", f=frame)
    flat.to_delta(t.path("flat"), mode="w")
    added = t.spark.sql(f"SELECT named_struct('x', 9L, 'z', 1) AS s, 9L AS id FROM delta.`{path}` LIMIT 1")
    found = tried(lambda: added.pandas_api().to_delta(path, mode="append", mergeSchema=True))
    return [
        shown(frame.spark.frame().select("x").pandas_api()),
        t.rows(t.path("flat")),
        found,
        shown(t.ps.read_delta(path)),
    ]


def outcome(spark: SparkSession, folder: str, name: str) -> Outcome:
    """What a program gives in a session that knows Delta tables, in JSON's types."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tried(lambda: PROGRAMS[name](Tables(spark, folder)))
    for table in ("ps_named", "ps_indexed", "ps_read"):
        spark.sql(f"DROP TABLE IF EXISTS {table}")
    return json.loads(json.dumps(found))


def record(spark: SparkSession, folder: str) -> dict[str, Outcome]:
    """What all programs give."""
    return {name: outcome(spark, f"{folder}/{name}", name) for name in PROGRAMS}
