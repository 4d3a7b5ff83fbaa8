"""What newcomers do by mistake, answered: names of DataFrames asked of tables and builders, builders never executed."""

from __future__ import annotations

import sys
import warnings

# What other libraries call it.
_ELSEWHERE = {
    "append": 'rows are added by df.write.format("pydelta").mode("append").save(path)',
    "insert": 'rows are added by df.write.format("pydelta").mode("append").save(path)',
    "read": "its rows are the DataFrame toDF()",
    "upsert": "that is merge(source, condition), its clauses, and execute()",
    "write": 'rows are written by df.write.format("pydelta").mode("append").save(path)',
    "writeTo": 'rows are written by df.write.format("pydelta").mode("append").save(path)',
}


class NotExecuted:
    """Warns, when the last builder that has it goes away, that none was executed: nothing has happened then.

    Parameters
    ----------
    what
        What the builders would do, as `the MERGE into /data/sales`.
    """

    __slots__ = ("_waiting", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._waiting = True

    def done(self) -> None:
        """Say nothing: it was executed."""
        self._waiting = False

    def __del__(self) -> None:
        if self._waiting and not sys.is_finalizing():
            # It goes away in the statement in which it is made and left.
            warnings.warn(f"{self._what} was not executed: nothing happens without execute()", stacklevel=2)


def missing_attribute(owner: object, name: str, rows: str) -> AttributeError:
    """The error for an attribute that an object does not have, with what is meant as far as that can be told.

    Parameters
    ----------
    rows
        Where the DataFrame is, of which the attribute may be meant: `its rows are the DataFrame toDF()`.

    >>> missing_attribute(object(), "show", "its rows are the DataFrame toDF()")
    AttributeError("'object' object has no attribute 'show': its rows are the DataFrame toDF()")
    """
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(text)
    import difflib

    from pyspark.sql import DataFrame

    near = difflib.get_close_matches(name, [each for each in dir(owner) if not each.startswith("_")], n=1)
    if name in _ELSEWHERE:
        return AttributeError(f"{text}: {_ELSEWHERE[name]}")
    if hasattr(DataFrame, name):
        return AttributeError(f"{text}: {rows}")
    return AttributeError(f"{text}; did you mean {near[0]!r}?" if near else text)
