"""`ErrorCondition`: the record of an error condition, which makes its errors."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar, overload

from delta_ds.exceptions import DeltaError

E = TypeVar("E", bound=DeltaError)
E2 = TypeVar("E2", bound=DeltaError)

# The kinds of exception that Spark tells apart. `state`: what is there, on the storage, in the log or by other
# commits, does not allow it.
Family = Literal[
    "analysis", "argument", "arithmetic", "index", "number", "operation", "parse", "runtime", "state", "type"
]


class ErrorCondition(Generic[E]):
    """One text of an error condition. Most conditions have one; others are made of the first with `also`.

    A plain class: every process that Spark starts for a read makes some of them.

    Attributes
    ----------
    name
        As in the error: `DELTA_TABLE_NOT_FOUND`; a part after a dot narrows it down.
    error
        The class that is raised.
    sql_state
        Five characters; None where Spark has none.
    text
        What happened, where, and what to do: a format string. `{names:list}` joins a sequence by commas. Empty where
        each raise site has a text of its own, with the condition of its class.
    parameters
        Which of the values become parameters of the error; the others are only in the text.
    family
        Which class of `pyspark.errors` the error is of as well, in a Spark session.
    first
        The record that this one is another text of.

    >>> from delta_ds.exceptions import SchemaError
    >>> missing = ErrorCondition(
    ...     "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
    ...     SchemaError,
    ...     "42703",
    ...     "{table} has no column {column!r}; it has {known:list}",
    ...     parameters=("column",),
    ... )
    >>> error = missing(table="/data/t", column="b", known=["a", "c"])
    >>> error
    SchemaError("[DELTA_COLUMN_NOT_FOUND_IN_SCHEMA] /data/t has no column 'b'; it has a, c")
    >>> error.parameters
    {'column': 'b'}
    """

    __slots__ = ("error", "family", "first", "name", "parameters", "sql_state", "text")

    def __init__(
        self,
        name: str,
        error: type[E],
        sql_state: str | None,
        text: str = "",
        *,
        parameters: tuple[str, ...] = (),
        family: Family = "analysis",
        first: ErrorCondition[Any] | None = None,
    ) -> None:
        self.name = name
        self.error = error
        self.sql_state = sql_state
        self.text = text
        self.parameters = parameters
        self.family: Family = family
        self.first = first

    @overload
    def also(self, text: str | None = None, *, parameters: tuple[str, ...] = ()) -> ErrorCondition[E]: ...

    @overload
    def also(
        self, text: str | None = None, *, parameters: tuple[str, ...] = (), error: type[E2]
    ) -> ErrorCondition[E2]: ...

    def also(
        self,
        text: str | None = None,
        *,
        parameters: tuple[str, ...] = (),
        error: type[DeltaError] | None = None,
    ) -> ErrorCondition[Any]:
        """The same condition with another text, other parameters or another class."""
        return ErrorCondition(
            self.name,
            error or self.error,
            self.sql_state,
            self.text if text is None else text,
            parameters=parameters,
            family=self.family,
            first=self.first or self,
        )

    def narrowed(self, part: str) -> ErrorCondition[E]:
        """The same text under the name of the condition and a part after a dot."""
        return ErrorCondition(
            f"{self.name}.{part}",
            self.error,
            self.sql_state,
            self.text,
            parameters=self.parameters,
            family=self.family,
        )

    def __call__(self, inherited: Mapping[str, Any] | None = None, /, **values: Any) -> E:
        """The error, to be raised.

        Parameters
        ----------
        inherited
            Parameters that are handed on as they are, for instance those of the cause.
        values
            Whatever the text and `parameters` name.
        """
        parameters = {**(inherited or {}), **{name: values[name] for name in self.parameters}}
        return self.error(
            _FORMATTER.vformat(self.text, (), values), condition=self.name, parameters=parameters
        )

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of the values that the text shows."""
        return frozenset(name for _, name, _, _ in _FORMATTER.parse(self.text) if name)


class _Formatter(string.Formatter):
    """Format strings, with `{values:list}` for a sequence that is written with commas."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "list":
            return ", ".join(map(str, value))
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()
