"""`WriteRequest`: what a write is asked to do, whichever way it came in; and the ways, one record each.

A way says what differs between the calls of users. All else is the same for all of them, and decided in one place:
options in `options.py`, columns in `columns.py`; schema, partitioning and what is replaced by the kernel.

Source: delta-spark 4.4, `DeltaAnalysis`, `DeltaCatalog` and `WriteIntoDelta`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.kernel.format.options.write import NewTableOptions
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BY_NAME, BY_PLACE = "by name", "by place"


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which rows come to be written.

    Attributes
    ----------
    call
        What the user calls, for messages.
    columns
        By what columns of rows and table are matched: `BY_NAME` or `BY_PLACE`.
    fields
        The same of the fields of structs, where the rows have not all that the table has.
    casts
        Whether values are cast to the types of the table's columns, by the session's store assignment policy; else they
        have to fit.
    fills
        Whether columns that the rows lack are null before anything is checked.
    is_statement
        Whether it is one of SQL, which names what it does not give a value to.
    is_listed
        Whether it lists the columns: fields of structs then go by place, though their names would find them too.
    makes_named
        Whether it makes a table of a name: where there is one already, nothing else is looked at, as Spark itself asks
        its catalogs. By `save` options count first.
    """

    call: str
    columns: str = BY_NAME
    fields: str = BY_NAME
    casts: bool = False
    fills: bool = False
    is_statement: bool = False
    is_listed: bool = False
    makes_named: bool = False

    @property
    def is_aligned(self) -> bool:
        """Whether rows are looked at beside the table before they are written, which must be there."""
        return self.casts or self.columns == BY_PLACE


SAVE = Way("save")
MAKE_TABLE = Way("a call or statement that makes a table", makes_named=True)
APPEND_AS_TABLE = Way("saveAsTable in mode append", casts=True, fills=True)
INSERT_INTO = Way("insertInto", columns=BY_PLACE, fields=BY_PLACE, casts=True)
WRITE_TO = Way("writeTo", casts=True, fills=True)
WRITE_PARTITIONS = Way("writeTo(...).overwritePartitions", casts=True)
# Statements: of columns by their places, by their names, and of a list of columns.
INSERT = Way("INSERT", columns=BY_PLACE, fields=BY_PLACE, casts=True, is_statement=True)
INSERT_BY_NAME = Way("INSERT BY NAME", fields=BY_PLACE, casts=True, fills=True, is_statement=True)
INSERT_LISTED = Way("INSERT", fields=BY_PLACE, casts=True, fills=True, is_statement=True, is_listed=True)


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A write as it was asked for.

    Attributes
    ----------
    rows
        The rows.
    way
        How they came in.
    mode
        `append`, `overwrite`, `error` or `ignore`.
    options
        As given, names in any case; `path` and what the filesystem needs among them.
    partition_by, cluster_by
        Columns that the call names; empty: it names none.
    replaced
        The condition in SQL of the rows that the call says to replace; None: it says none.
    by_partition
        The call says to replace the partitions that are written to.
    definition
        What a statement says of the table that it makes with these rows.
    replaces_table
        The table that is there goes with its description, and not only its rows.
    """

    rows: DataFrame
    way: Way
    mode: str
    options: Mapping[str, str]
    partition_by: Sequence[str] = ()
    cluster_by: Sequence[str] = ()
    replaced: str | None = None
    by_partition: bool = False
    definition: NewTableOptions | None = None
    replaces_table: bool = False
