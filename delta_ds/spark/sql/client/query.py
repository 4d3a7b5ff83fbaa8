"""Queries of a client whose server does not know Delta's names: tables by path travel with the query."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.records import dataclass, field
from delta_ds.spark.engines.monkeypatch import call_original
from delta_ds.spark.session.reading import read
from delta_ds.spark.sql.client.references import find_references

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.base.sql_grammar.statements import SqlText


@dataclass(frozen=True)
class Call:
    """A call of `spark.sql`.

    Attributes
    ----------
    spark
        A session of Spark Connect.
    args
        Values of markers, as the call was given them.
    frames
        DataFrames, by the words that stand for them in the text.
    """

    spark: SparkSession
    args: Any = None
    frames: Mapping[str, DataFrame] = field(default_factory=dict)

    def query(self, text: str) -> DataFrame:
        """What Spark answers to a text, with each table by path in it read by the data source.

        Spark Connect carries the DataFrames of a query along with it; to the server they are temporary views for as
        long as it reads the text.
        """
        frames = {name: frame for name, frame in self.frames.items() if name in text}
        references = find_references(text)
        if not frames and not references:
            return self._sql(text, {})
        pieces, done = [], 0
        for reference in references:
            name = f"_pydelta_{uuid.uuid4().hex}"
            frames[name] = read(self.spark, reference.options)
            pieces += [text[done : reference.start], name]
            done = reference.end
        plain = "".join([*pieces, text[done:]]).replace("{", "{{").replace("}", "}}")
        for name in frames:
            plain = plain.replace(name, f"{{{name}}}")
        return self._sql(plain, frames)

    def _sql(self, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
        found: DataFrame = call_original(self.spark, "sql", text, self.args, **frames)
        return found


def with_ctes(ctes: SqlText | None, query: str) -> str:
    """A query with the named queries that stand in front of its statement."""
    return query if ctes is None else f"{ctes} {query}"
