"""Function, type and date part names of SQL in all their spellings."""

from __future__ import annotations

from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
)

# The canonical name of functions that have more than one.
ALIASES = {
    "character_length": "length",
    "char_length": "length",
    "len": "length",
    "ucase": "upper",
    "lcase": "lower",
    "day": "dayofmonth",
    "week": "weekofyear",
    "substr": "substring",
    "mid": "substring",
    "ceiling": "ceil",
    "power": "pow",
    "sign": "signum",
    "mod": "%",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "cardinality": "size",
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "sha": "sha1",
    "curdate": "current_date",
    "now": "current_timestamp",
    "char": "chr",
    "charindex": "locate",
}

# Functions of one argument that only cast it.
CAST_FUNCTIONS: dict[str, DataType] = {
    "boolean": BOOLEAN, "tinyint": BYTE, "smallint": SHORT, "int": INTEGER, "bigint": LONG, "float": FLOAT,
    "double": DOUBLE, "string": STRING, "binary": BINARY, "date": DATE, "timestamp": TIMESTAMP,
    "decimal": DecimalType(10, 0), "to_date": DATE, "to_timestamp": TIMESTAMP, "to_timestamp_ltz": TIMESTAMP,
    "to_timestamp_ntz": TIMESTAMP_NTZ,
}  # fmt: skip

# sqlglot's names of types.
TYPE_NAMES: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": BYTE,
    "SMALLINT": SHORT,
    "INT": INTEGER,
    "BIGINT": LONG,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "CHAR": STRING,
    "BINARY": BINARY,
    "VARBINARY": BINARY,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP_NTZ,
    "NULL": VOID,
}

# The function for a part of a date, as `extract` and `date_part` name parts.
DATE_PARTS = {
    **dict.fromkeys(["year", "years", "y", "yr"], "year"),
    **dict.fromkeys(["month", "months", "mon"], "month"),
    **dict.fromkeys(["day", "days", "d"], "dayofmonth"),
    **dict.fromkeys(["hour", "hours", "h"], "hour"),
    **dict.fromkeys(["minute", "minutes", "min"], "minute"),
    **dict.fromkeys(["quarter", "qtr"], "quarter"),
    **dict.fromkeys(["week", "weeks", "w"], "weekofyear"),
    **dict.fromkeys(["dayofweek", "dow"], "dayofweek"),
    "doy": "dayofyear",
    "yearofweek": "yearofweek",
}
