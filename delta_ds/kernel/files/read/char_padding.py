"""`char(n)` columns: pad strings with blanks to n characters when they are read, as Spark does.

The schema has a plain string; the field's metadata has the declared type, of the whole column where the
`char` is nested. Source: Spark, `CharVarcharUtils` and `ApplyCharTypePadding`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.events.reading import CHAR_PADDING_SKIPPED
from delta_ds.kernel.format.schema.field_metadata import CHAR_VARCHAR_TYPE
from delta_ds.kernel.format.schema.types import StructField, StructType

_CHAR = re.compile(r"char\(\s*(\d+)\s*\)")


def declared_char_type(field: StructField) -> str | None:
    """The declared type of a column that holds a `char` somewhere, else None."""
    text = field.metadata.get(CHAR_VARCHAR_TYPE)
    return text if isinstance(text, str) and re.search(r"\bchar\(", text) else None


def char_width(text: str | None) -> int | None:
    """n of `char(n)`; None for any other declared type."""
    match = _CHAR.fullmatch(text.strip()) if text else None
    return int(match[1]) if match else None


def pad(characters: int) -> Callable[[pa.Array], pa.Array]:
    """The conversion of a string array that pads with blanks; longer texts stay."""
    return lambda array: pc.utf8_rpad(array, characters, " ")


def of_element(text: str | None) -> str | None:
    """The declared element type of a declared array type."""
    return _parts(text, "array")[0] if text else None


def of_map(text: str | None) -> tuple[str | None, str | None]:
    """The declared key and value types of a declared map type."""
    parts = _parts(text, "map") if text else []
    return (parts[0], parts[1]) if len(parts) == 2 else (None, None)


def of_struct(text: str | None, struct: StructType) -> list[str | None]:
    """The declared types of a declared struct type's fields, by position."""
    if not text:
        return [None] * len(struct)
    parts = _parts(text, "struct")
    if len(parts) != len(struct):
        CHAR_PADDING_SKIPPED.log(declared=text, schema=struct)
        return [None] * len(struct)
    return [part.partition(":")[2] if part else None for part in parts]


def _parts(text: str, kind: str) -> list[str]:
    """The comma-separated arguments between the outermost angle brackets."""
    text = text.strip()
    if not (text.startswith(f"{kind}<") and text.endswith(">")):
        return [""]
    parts, depth = [""], 0
    for character in text[len(kind) + 1 : -1]:
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
