"""The functions that can be evaluated, with the types of their arguments and results.

One table serves both sides: `bind` casts arguments by it, `evaluate` runs the function of the same name in
`functions.py`. Nothing here needs Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from delta_ds.kernel.format.expressions.coercion import (
    FRACTIONAL,
    INTEGRAL,
    TEMPORAL,
    can_cast,
    common_type,
    common_type_of,
    is_numeric,
)
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    is_nested,
)
from delta_ds.records import dataclass

Slot: TypeAlias = "Callable[[DataType], DataType | None]"
Result: TypeAlias = "DataType | Callable[[Sequence[DataType]], DataType | None]"


@dataclass(frozen=True, slots=True)
class Signature:
    """Arguments and result of a function.

    Parameters
    ----------
    inputs
        For each argument, the type it must be cast to, or a function from its type to that type (None if the
        argument cannot be taken). The string "common" stands for the common type of all such arguments.
    result
        The type of the result, or a function from the arguments' types (None: not with these).
    required
        How many arguments must be there; the others may be left out.
    variadic
        The last input may repeat.
    zoned
        The result depends on the session time zone.
    """

    inputs: tuple[DataType | Slot | str, ...]
    result: Result
    required: int | None = None
    variadic: bool = False
    zoned: bool = False

    def arguments(self, types: Sequence[DataType]) -> list[DataType] | None:
        """The type to cast each argument to; None if the function does not take these."""
        least = len(self.inputs) if self.required is None else self.required
        if len(types) < least or (len(types) > len(self.inputs) and not self.variadic):
            return None
        slots = [self.inputs[min(i, len(self.inputs) - 1)] for i in range(len(types))]
        common = common_type_of(t for t, slot in zip(types, slots, strict=True) if slot == "common")
        wanted: list[DataType] = []
        for data_type, slot in zip(types, slots, strict=True):
            target = common if isinstance(slot, str) else slot(data_type) if callable(slot) else slot
            if target is None or not (data_type == target or can_cast(data_type, target)):
                return None
            wanted.append(target)
        return wanted

    def result_of(self, types: Sequence[DataType]) -> DataType | None:
        """The result's type for arguments of these types."""
        return self.result(types) if callable(self.result) else self.result


def _any(data_type: DataType) -> DataType | None:
    return data_type


def _text(data_type: DataType) -> DataType | None:
    return BINARY if data_type == BINARY else STRING


def _numeric(data_type: DataType) -> DataType | None:
    return data_type if is_numeric(data_type) else DOUBLE


def _integral(data_type: DataType) -> DataType | None:
    return data_type if data_type in INTEGRAL else None


def _float(data_type: DataType) -> DataType | None:
    return data_type if data_type in FRACTIONAL else DOUBLE


def _common_float(data_type: DataType) -> DataType | None:
    return data_type if data_type in FRACTIONAL else DOUBLE


def _rounded(data_type: DataType) -> DataType | None:
    if data_type in INTEGRAL:
        return LONG
    return data_type if isinstance(data_type, DecimalType) else DOUBLE


def _instant(data_type: DataType) -> DataType | None:
    """Wall clock times count as if they were of UTC."""
    return data_type if data_type in (TIMESTAMP, TIMESTAMP_NTZ) else None


def _point_in_time(data_type: DataType) -> DataType | None:
    return TIMESTAMP if data_type == DATE else _instant(data_type)


def _time(data_type: DataType) -> DataType | None:
    return TIMESTAMP if data_type in TEMPORAL or data_type == STRING else None


def _day(data_type: DataType) -> DataType | None:
    return DATE if data_type == DATE else None


def _same_float(types: Sequence[DataType]) -> DataType | None:
    return types[0] if types[0] == types[1] else None


def _integer_or_long(data_type: DataType) -> DataType | None:
    return data_type if data_type == LONG else INTEGER


def _list_of(types: Sequence[DataType]) -> DataType | None:
    return None if not types or is_nested(types[0]) or types[0] == VOID else ArrayType(types[0])


def _element(types: Sequence[DataType]) -> DataType | None:
    element = types[0].element if isinstance(types[0], ArrayType) else None
    return None if is_nested(element) else element


def _texts(data_type: DataType) -> DataType | None:
    return data_type if isinstance(data_type, ArrayType) and data_type.element == STRING else None


def _position(types: Sequence[DataType]) -> DataType | None:
    return LONG if _contains(types) else None


def _hexable(data_type: DataType) -> DataType | None:
    if data_type in INTEGRAL:
        return LONG
    return data_type if data_type in (STRING, BINARY) else None


def _long(data_type: DataType) -> DataType | None:
    return LONG if data_type in INTEGRAL else None


def _hashed(data_type: DataType) -> DataType | None:
    return None if is_nested(data_type) or data_type == VARIANT else data_type


def _collection(data_type: DataType) -> DataType | None:
    return data_type if isinstance(data_type, (ArrayType, MapType)) else None


def _array(data_type: DataType) -> DataType | None:
    return data_type if isinstance(data_type, ArrayType) else None


def _map(data_type: DataType) -> DataType | None:
    return data_type if isinstance(data_type, MapType) else None


def _first(types: Sequence[DataType]) -> DataType | None:
    return types[0]


def _whole(types: Sequence[DataType]) -> DataType | None:
    """`ceil` and `floor`: the type of the whole number."""
    argument = types[0]
    if not isinstance(argument, DecimalType):
        return LONG
    return DecimalType(min(argument.precision - argument.scale + 1, 38), 0)


def _comparable(types: Sequence[DataType]) -> DataType | None:
    return None if is_nested(types[0]) else types[0]


def _value_type(types: Sequence[DataType]) -> DataType | None:
    """`getitem` and its kin: the type of an element."""
    if isinstance(types[0], ArrayType):
        return types[0].element if types[1] in INTEGRAL else None
    return types[0].value if isinstance(types[0], MapType) and types[1] == types[0].key else None


def item_type(container: DataType, item: DataType) -> DataType | None:
    """The type an index, key or searched element is cast to."""
    if isinstance(container, MapType):
        return container.key if common_type(container.key, item) is not None else None
    return INTEGER if isinstance(container, ArrayType) and item in INTEGRAL else None


def _contains(types: Sequence[DataType]) -> DataType | None:
    container = types[0]
    element = container.element if isinstance(container, ArrayType) else getattr(container, "key", None)
    return BOOLEAN if element == types[1] and not is_nested(element) else None


def _bits(types: Sequence[DataType]) -> DataType | None:
    return types[0] if types[0] in INTEGRAL else None


def _keys(types: Sequence[DataType]) -> DataType | None:
    return ArrayType(types[0].key, False) if isinstance(types[0], MapType) else None


def _map_values(types: Sequence[DataType]) -> DataType | None:
    return ArrayType(types[0].value) if isinstance(types[0], MapType) else None


def _many(names: str, signature: Signature) -> dict[str, Signature]:
    return dict.fromkeys(names.split(), signature)


FUNCTIONS: dict[str, Signature] = {
    # text
    **_many("length octet_length bit_length", Signature((_text,), INTEGER)),
    **_many("upper lower reverse initcap", Signature((STRING,), STRING)),
    # for rows of Spark: other text than ASCII raises
    **_many("ascii_upper ascii_lower", Signature((STRING,), STRING)),
    **_many("trim ltrim rtrim", Signature((STRING, STRING), STRING, required=1)),
    **_many("left right repeat", Signature((STRING, INTEGER), STRING)),
    **_many("lpad rpad", Signature((STRING, INTEGER, STRING), STRING, required=2)),
    **_many("startswith endswith contains rlike", Signature((STRING, STRING), BOOLEAN)),
    **_many("like ilike", Signature((STRING, STRING, STRING), BOOLEAN, required=2)),
    "ascii": Signature((STRING,), INTEGER),
    "substring": Signature((_text, INTEGER, INTEGER), _first, required=2),
    "concat": Signature((STRING,), STRING, variadic=True),
    "concat_ws": Signature((STRING, STRING), STRING, required=1, variadic=True),
    "replace": Signature((STRING, STRING, STRING), STRING, required=2),
    "btrim": Signature((STRING, STRING), STRING, required=1),
    "space": Signature((INTEGER,), STRING),
    "chr": Signature((LONG,), STRING),
    "bin": Signature((LONG,), STRING),
    "base64": Signature((BINARY,), STRING),
    "levenshtein": Signature((STRING, STRING), INTEGER),
    "find_in_set": Signature((STRING, STRING), INTEGER),
    "split": Signature((STRING, STRING, INTEGER), ArrayType(STRING, False), required=2),
    "regexp_count": Signature((STRING, STRING), INTEGER),
    "get_json_object": Signature((STRING, STRING), STRING),
    "translate": Signature((STRING, STRING, STRING), STRING),
    "instr": Signature((STRING, STRING), INTEGER),
    "locate": Signature((STRING, STRING, INTEGER), INTEGER, required=2),
    "regexp_replace": Signature((STRING, STRING, STRING), STRING),
    "regexp_extract": Signature((STRING, STRING, INTEGER), STRING, required=2),
    **_many("substring_index split_part", Signature((STRING, STRING, INTEGER), STRING)),
    **_many("md5 sha1", Signature((BINARY,), STRING)),
    "sha2": Signature((BINARY, INTEGER), STRING),
    "crc32": Signature((BINARY,), LONG),
    "hash": Signature((_hashed,), INTEGER, variadic=True),
    "xxhash64": Signature((_hashed,), LONG, variadic=True),
    "hex": Signature((_hexable,), STRING),
    "unhex": Signature((STRING,), BINARY),
    # numbers
    **_many("abs negative", Signature((_numeric,), _first)),
    **_many("ceil floor", Signature((_rounded,), _whole)),
    **_many("sqrt exp ln log10 log2 signum rint degrees radians", Signature((DOUBLE,), DOUBLE)),
    "log": Signature((DOUBLE, DOUBLE), DOUBLE),
    **_many("e pi", Signature((), DOUBLE)),
    **_many("shiftleft shiftright shiftrightunsigned", Signature((_integer_or_long, INTEGER), _first)),
    "bit_count": Signature((_long,), INTEGER),
    "factorial": Signature((INTEGER,), LONG),
    **_many("& | ^", Signature(("common", "common"), _bits)),
    "~": Signature((_integral,), _first),
    **_many("round bround", Signature((_numeric, INTEGER), _first, required=1)),
    "pow": Signature((DOUBLE, DOUBLE), DOUBLE),
    "isnan": Signature((_float,), BOOLEAN),
    "nanvl": Signature((_common_float, _common_float), _same_float),
    # choice
    "coalesce": Signature(("common",), _first, variadic=True),
    **_many("greatest least", Signature(("common", "common"), _comparable, variadic=True)),
    # dates and times; a timestamp argument becomes a date or wall clock time by a cast in the session's zone
    **_many(
        "year month dayofmonth dayofyear dayofweek weekday quarter weekofyear yearofweek",
        Signature((DATE,), INTEGER),
    ),
    **_many("dayname monthname", Signature((DATE,), STRING)),
    **_many("hour minute second", Signature((TIMESTAMP_NTZ,), INTEGER)),
    **_many("date_add date_sub add_months", Signature((DATE, INTEGER), DATE)),
    **_many("unix_timestamp to_unix_timestamp", Signature((_point_in_time,), LONG)),
    **_many("unix_seconds unix_millis unix_micros", Signature((_instant,), LONG)),
    "from_unixtime": Signature((LONG, STRING), STRING, required=1, zoned=True),
    **_many("from_utc_timestamp to_utc_timestamp", Signature((TIMESTAMP, STRING), TIMESTAMP)),
    "months_between": Signature((TIMESTAMP, TIMESTAMP, BOOLEAN), DOUBLE, required=2, zoned=True),
    "next_day": Signature((DATE, STRING), DATE),
    **_many("timestamp_seconds timestamp_millis timestamp_micros", Signature((_long,), TIMESTAMP)),
    "unix_date": Signature((_day,), INTEGER),
    "date_from_unix_date": Signature((INTEGER,), DATE),
    "last_day": Signature((DATE,), DATE),
    "datediff": Signature((DATE, DATE), INTEGER),
    "trunc": Signature((DATE, STRING), DATE),
    "date_trunc": Signature((STRING, _time), TIMESTAMP, zoned=True),
    "date_format": Signature((_time, STRING), STRING, zoned=True),
    "make_date": Signature((INTEGER, INTEGER, INTEGER), DATE),
    # months, days and microseconds are added to a date, timestamp or timestamp_ntz
    "add_interval": Signature((_any, INTEGER, INTEGER, LONG), _first, zoned=True),
    # collections
    "size": Signature((_collection,), INTEGER),
    "array_size": Signature((_array,), INTEGER),
    **_many("getitem element_at get try_element_at", Signature((_collection, _any), _value_type)),
    "array_contains": Signature((_array, _any), _contains),
    "map_contains_key": Signature((_map, _any), _contains),
    "array": Signature(("common",), _list_of, required=1, variadic=True),
    **_many("array_max array_min", Signature((_array,), _element)),
    "array_position": Signature((_array, _any), _position),
    "array_join": Signature((_texts, STRING, STRING), STRING, required=2),
    "map_keys": Signature((_map,), _keys),
    "map_values": Signature((_map,), _map_values),
}
