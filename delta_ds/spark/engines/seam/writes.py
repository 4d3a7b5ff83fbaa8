"""What writes ask of a session: casts of columns, Spark's own writer, and what is told of a write that fails.

Rows of tables by the data source of this package: what every kind of session can do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from delta_ds.records import dataclass
from delta_ds.spark.base.kinds.sealed import seal
from delta_ds.spark.base.kinds.session_facts import with_facts_of_reads, with_session_settings
from delta_ds.spark.base.session_conf import source_in_python
from delta_ds.spark.base.table_names import FORMAT
from delta_ds.spark.engines.monkeypatch import call_original
from delta_ds.spark.errors.translation import delta_errors

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from delta_ds.kernel.format.options.settings import SessionFacts


# Rows, and the options of their write.
Pending: TypeAlias = "tuple[DataFrame, Mapping[str, str]]"


@dataclass(frozen=True, slots=True)
class Matched:
    """A column of rows, as a table is to have it.

    Attributes
    ----------
    place
        Among the columns of the rows; None: they have none, and it is null.
    name, kind
        That it gets.
    """

    place: int | None
    name: str
    kind: DataType

    def null(self) -> Column:
        """The column where the rows have none."""
        from pyspark.sql import functions as F

        return F.lit(None).cast(self.kind).alias(self.name)


class Writes(Protocol):
    """What a kind of session does for a write of rows."""

    def cast(self, rows: DataFrame, columns: Sequence[Matched], facts: SessionFacts) -> DataFrame:
        """The matched columns of rows, cast by the policy of the session, which is not `STRICT`, or loses nothing."""
        ...

    def overflow_of_inserts(self) -> AbstractContextManager[None]:
        """Within the block the overflow of a `cast` is raised as the one of an insert."""
        ...

    def check_constants(self, rows: DataFrame) -> None:
        """Raise what is wrong with constants of rows, as Spark computes them before anything is checked."""
        ...

    def save(self, rows: DataFrame, options: Mapping[str, str], *, overwrite: bool) -> Pending | None:
        """Write by Spark's own writer; what the data source has to write where that one cannot, with its options."""
        ...

    def refresh(self, options: Mapping[str, str]) -> None:
        """Let go of rows of the table of a write that Spark has cached; where it cannot open the store, it caches none.

        Parameters
        ----------
        options
            Of the write.
        """
        ...

    def reports(self) -> AbstractContextManager[str | None]:
        """The folder to which a commit in another process of this machine brings its reports; None on another one."""
        ...


def is_same(given: DataType, wanted: DataType) -> bool:
    """Whether types are the same but for nullability and metadata."""
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        pairs = zip(given.fields, wanted.fields, strict=False)
        return len(given.fields) == len(wanted.fields) and all(
            a.name == b.name and is_same(a.dataType, b.dataType) for a, b in pairs
        )
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return is_same(given.elementType, wanted.elementType)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        return is_same(given.keyType, wanted.keyType) and is_same(given.valueType, wanted.valueType)
    return given.simpleString() == wanted.simpleString()


def portable_rows(spark: SparkSession, options: Mapping[str, str], schema: StructType | None) -> DataFrame:
    """The rows that read options ask for; arguments as of `Engine.read`."""
    complete = seal(spark, with_session_settings(spark, with_facts_of_reads(spark, options)), FORMAT)
    reader = spark.read.format(source_in_python(spark)).options(**complete)
    if schema is not None:
        reader = reader.schema(schema)
    with delta_errors():
        frame: DataFrame = call_original(reader, "load")
    return frame
