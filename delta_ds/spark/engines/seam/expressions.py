"""Expressions that users write in commands, as each kind of session understands them; see `Engine.expressions`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from delta_ds.kernel.format.schema.types import DataType
from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType as SparkDataType

    from delta_ds.conditions.record import ErrorCondition
    from delta_ds.exceptions import UnsupportedOperationError
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import StructType


@dataclass(frozen=True)
class Resolved:
    """An expression of a user in the scope it was written for.

    Attributes
    ----------
    column
        To be evaluated in any frame that has the columns of the scope.
    type
        The type of its values.
    text
        As history tells it.
    source
        As it was given.
    subquery
        Whether a query is in it, whose rows may be those of any table; not known on Spark Connect.
    """

    column: Column
    type: DataType
    text: str
    source: Any
    subquery: bool = False


def source_text(source: Any) -> str:
    """The text of an expression, for messages; a `Column` as pyspark shows it."""
    if isinstance(source, str):
        return source
    text = str(source)
    match = re.fullmatch(r"Column<'(.*)'>", text, re.DOTALL)
    return match[1] if match else text


class ResolutionCache:
    """What the server of Spark Connect has said of expressions, for scopes of frames that differ in their rows only."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], list[tuple[DataType, bool]]] = {}

    def find(
        self, key: tuple[Any, ...], ask: Callable[[], list[tuple[DataType, bool]]]
    ) -> list[tuple[DataType, bool]]:
        """For each expression its type, and whether its side has to compute it before a join; asked for once."""
        if key not in self._known:
            self._known[key] = ask()
        return self._known[key]

    def forget_columns(self) -> None:
        """Ask again of each `Column`, which may name a frame that has been replaced; text names columns only."""
        self._known = {
            key: found for key, found in self._known.items() if all(isinstance(part, str) for part in key[-1])
        }


class Context(Protocol):
    """What expressions of a command mean by the present, and by columns of frames of the table."""

    def columns(self, expression: Column, frame: DataFrame) -> Column:
        """An expression of a user in which columns of frames of the table are those of the command's.

        Parameters
        ----------
        expression
            Not resolved yet.
        frame
            What it will be resolved on.
        """
        ...


@dataclass(frozen=True)
class ResolutionScope:
    """Where expressions are resolved.

    Attributes
    ----------
    frame
        The columns that they see.
    joined
        The frame that they will be evaluated in, where it is another one.
    context
        See `Expressions.context`.
    label, clause
        Which of the scopes of a command this is, and which part of the command, for messages.
    cache
        What is known of expressions from scopes with the same label.
    projections
        Gets the columns that the scope's side has to compute before the join, by their names.
    refuse
        The error for an expression, by its condition and as it was given.
    takes_random
        Whether values may differ each time that they are computed.
    """

    frame: DataFrame
    joined: DataFrame | None
    context: Context | None
    label: str
    clause: str
    cache: ResolutionCache
    projections: dict[str, Column] = field(compare=False)
    refuse: Callable[[ErrorCondition[UnsupportedOperationError], Any], UnsupportedOperationError]
    takes_random: bool


class Expressions(Protocol):
    """What a kind of session knows of expressions: of their meaning, and of what they say in the kernel's terms."""

    def context(self, frame: DataFrame, given: Iterable[DataFrame | str]) -> Context | None:
        """The fixed values of `current_timestamp()` and its like, and columns of frames of the table.

        Parameters
        ----------
        frame
            The table as the command sees it.
        given
            Frames of the table that its user holds; for those of a client the qualifier of their columns.
        """
        ...

    def resolve(
        self, scope: ResolutionScope, columns: Sequence[Column], sources: Sequence[Any], *, predicate: bool
    ) -> list[Resolved] | None:
        """What expressions mean; None where they have to be asked for one by one, which tells what is wrong.

        Parameters
        ----------
        columns, sources
            The expressions, as columns and as they were given.
        predicate
            Whether they are conditions, which take no subqueries.
        """
        ...

    def predicates(
        self, condition: Resolved, schema: StructType, timezone: str, alias: str | None
    ) -> Sequence[Expression]:
        """What a condition on a table says in the kernel's terms: all of these hold where it does. Not bound.

        Parameters
        ----------
        schema, timezone, alias
            Of the table; the session's time zone; the name by which expressions may call the table.
        """
        ...

    def column_ids(self, frame: DataFrame) -> Sequence[int]:
        """The ids of the columns of a frame, as `evaluable` takes names for; none where they are not known."""
        ...

    def evaluable(
        self, value: Column, schema: StructType, timezone: str, names: Mapping[int, str] | None = None
    ) -> Expression:
        """A resolved expression in the kernel's terms, row by row the same, not bound.

        Parameters
        ----------
        schema
            The columns that it may read.
        names
            Their names in `schema`, by the ids that they have for Spark; None: the names are the same.

        Raises
        ------
        OnlySpark
            The kernel has none.
        """
        ...

    def predicates_of_join(
        self, condition: Resolved, rows: DataFrame, schema: StructType, timezone: str, alias: str | None
    ) -> list[Expression]:
        """The same of the condition of a join, for what it says of the table alone; `rows` is its side."""
        ...

    def equal_keys(
        self, condition: Resolved, rows: DataFrame, source: DataFrame
    ) -> Sequence[tuple[str, Column]]:
        """The columns of the table that must equal an expression of the source; none where that is not known."""
        ...

    def columns_read(self, condition: Resolved, alias: str | None) -> set[str] | None:
        """The names of the columns that a condition reads; None where that is not known."""
        ...

    def functions_of_rows(self, sources: Iterable[object], alias: str | None) -> Sequence[Expression] | None:
        """The expressions that the kernel has to understand for all of `sources` to depend on nothing but the row.

        None where it is known that they may depend on more, or not known whether.
        """
        ...

    def cast_without_ansi(self, value: Column, kind: SparkDataType) -> Column:
        """A value cast as in sessions that are not ANSI: to null, or to what its last bits say, where it does not fit.

        On Spark Connect, where an ANSI session has no such cast, what does not fit is an error there.
        """
        ...

    def has_subqueries(self, columns: Iterable[Column]) -> bool:
        """Whether a column is the answer of a query, as far as that is known."""
        ...

    def are_one(self, columns: Sequence[Column]) -> bool:
        """Whether all of some columns are known to be the same one."""
        ...
