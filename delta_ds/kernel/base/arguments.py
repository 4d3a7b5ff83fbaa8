"""Check the arguments of public methods against their annotations when they are called.

Without it a wrong kind of value fails somewhere inside, or means something else: of a text in place of a list of names
every letter counts as a name.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type)

_TEXTS = (str, bytes, bytearray)


def _is_number(value: Any) -> bool:
    return hasattr(type(value), "__index__") and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return _is_sequence(value) and all(isinstance(item, str) for item in value)


def _is_text_and_number(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and _is_number(value[1])


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, _TEXTS)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _named(*names: str) -> Callable[[Any], bool]:
    """By the names of classes, so that none has to be imported."""
    return lambda value: any(kind.__name__ in names for kind in type(value).__mro__)


# What an annotation says -> the check, and how a message calls it.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "None": (lambda value: value is None, "None"),
    "str": (lambda value: isinstance(value, str), "text"),
    "int": (_is_number, "a whole number"),
    "float": (lambda value: _is_number(value) or isinstance(value, float), "a number"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "datetime": (_named("datetime"), "an aware datetime"),
    "os.PathLike[str]": (lambda value: hasattr(type(value), "__fspath__"), "a path"),
    "Storage": (_named("Storage"), "a Storage"),
    "TableLog": (_named("TableLog"), "a DeltaLog"),
    "Mapping[str, Any]": (_is_mapping, "a dictionary with texts as keys"),
    "AddFile": (_is_mapping, "a dictionary with texts as keys"),
    "RemoveFile": (_is_mapping, "a dictionary with texts as keys"),
    "AddCDCFile": (_is_mapping, "a dictionary with texts as keys"),
    "Sequence[str]": (_is_texts, "a list of texts"),
    "Sequence[PartitionValues]": (
        lambda value: _is_sequence(value) and all(map(_is_mapping, value)), "a list of dictionaries",
    ),
    "Iterable[str]": (
        lambda value: isinstance(value, Iterable) and not isinstance(value, _TEXTS), "several texts"
    ),
    "Iterable[AddFile]": (
        lambda value: isinstance(value, Iterable) and not isinstance(value, (*_TEXTS, Mapping)), "several dictionaries"
    ),
    "Iterable[RemoveFile]": (
        lambda value: isinstance(value, Iterable) and not isinstance(value, (*_TEXTS, Mapping)), "several dictionaries"
    ),
    "Expression": (_named("Column", "Literal", "Cast", "Call"), "an expression"),
    "Operation": (_named("Operation"), "an Operation"),
    "tuple[str, int]": (_is_text_and_number, "a pair of a text and a whole number"),
    "Metadata": (_named("Metadata"), "a Metadata"),
    "Protocol": (_named("Protocol"), "a Protocol"),
    "TableState": (_named("TableState"), "a TableState"),
    "Staging": (_named("Staging"), "a Staging"),
    "pa.Array": (_named("Array", "ChunkedArray"), "a pyarrow.Array"),
    "pa.Table": (_named("Table"), "a pyarrow.Table"),
    "pa.RecordBatch": (_named("RecordBatch"), "a pyarrow.RecordBatch"),
    "ArrowStream": (lambda value: hasattr(type(value), "__arrow_c_stream__"), "another source of Arrow data"),
    "duckdb.DuckDBPyConnection": (_named("DuckDBPyConnection"), "a connection of DuckDB"),
    "pa.RecordBatchReader": (_named("RecordBatchReader"), "a pyarrow.RecordBatchReader"),
}  # fmt: skip
_UNION = re.compile(r"\s*\|\s*(?![^\[]*\])")


def checked(cls: _Class) -> _Class:
    """Check the arguments of the public methods of a class, and of its making, against their annotations.

    A wrong kind of value is a `TypeError` that names the argument and what is expected. Parameters with annotations
    that are not known here are left alone.
    """
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            rules = _rules(method)
            if rules:
                setattr(
                    cls, name, _checking(method, f"{cls.__name__}.{name}".removesuffix(".__init__"), rules)
                )
    return cls


def internal(*names: str) -> Callable[[_Class], _Class]:
    """Take attributes out of what `dir` and completion offer: modules of this package use them among themselves.

    They may change at any time; `scripts/public_surface.py` records them no more than names with an underscore.
    """

    def hide(cls: _Class) -> _Class:
        def offered(self: Any) -> list[str]:
            return [name for name in object.__dir__(self) if name not in names]

        setattr(cls, "_INTERNAL", frozenset(names))  # noqa: B010
        setattr(cls, "__dir__", offered)  # noqa: B010
        return cls

    return hide


def _rules(method: Callable[..., Any]) -> dict[str, list[tuple[Callable[[Any], bool], str]]]:
    found = {}
    for name, annotation in method.__annotations__.items():
        parts = _UNION.split(annotation) if isinstance(annotation, str) else []
        if name != "return" and parts and all(part in _KINDS for part in parts):
            found[name] = [_KINDS[part] for part in parts]
    return found


def _checking(method: Callable[..., Any], called: str, rules: Mapping[str, Any]) -> Callable[..., Any]:
    places = [name for name in inspect.signature(method).parameters if name != "self"]

    @functools.wraps(method)
    def run(self: Any, *args: Any, **more: Any) -> Any:
        for name, value in (*zip(places, args, strict=False), *more.items()):
            kinds = rules.get(name)
            if kinds is not None and not any(fits(value) for fits, _ in kinds):
                wanted = [text for _, text in kinds]
                raise TypeError(
                    f"{called}(): {name} must be {' or '.join(wanted)}, not {type(value).__name__}{_shown(name, value)}"
                    + (_advice(value) if "a pyarrow.Table" in wanted else "")
                )
        return method(self, *args, **more)

    return run


def _shown(name: str, value: Any) -> str:
    """A value as a message shows it; never one that should have been options, which may be secrets."""
    if name.endswith("options"):
        return ""
    from delta_ds.redaction import redacted

    return f": {redacted(repr(value))[:100]}"


def _advice(value: Any) -> str:
    """How rows of another kind become Arrow's."""
    package = type(value).__module__.partition(".")[0]
    if package == "pyspark":
        return '; write a DataFrame of Spark with df.write.format("pydelta")'
    ways = {"pandas": "pyarrow.Table.from_pandas(rows)", "polars": "rows.collect()"}
    by_type = "pyarrow.table(rows)" if isinstance(value, Mapping) else "pyarrow.Table.from_pylist(rows)"
    return f"; pass {ways.get(package, by_type)}"
