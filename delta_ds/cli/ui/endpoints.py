"""What the page may ask: each answer by its name, with the parameters it takes; others are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qsl

from delta_ds.cli.ui.description import column_page, describe, range_page
from delta_ds.cli.ui.files import (
    commit_page,
    file_page,
    filter_summary,
    first_rows,
    partition_page,
    timeline_page,
)
from delta_ds.cli.ui.view import TableView
from delta_ds.conditions.record import WRONG_PARAMETER_OF_PAGE
from delta_ds.kernel.commands.health import health
from delta_ds.records import dataclass

_LARGEST = (1 << 63) - 1
_MOST_ENTRIES = 500
_MOST_FIELDS = 20


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """One answer.

    Attributes
    ----------
    call
        Makes it of the view and the parameters.
    takes
        The parameters: what gives each its type.
    defaults
        The values of those that may be left out.
    """

    call: Callable[..., Any]
    takes: Mapping[str, Callable[[str], Any]]
    defaults: Mapping[str, Any]


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 19 or int(text) > _LARGEST:
        raise ValueError("it is a whole number from 0 on")
    return int(text)


def _limit(text: str) -> int:
    number = _number(text)
    if not 1 <= number <= _MOST_ENTRIES:
        raise ValueError(f"it is a number from 1 to {_MOST_ENTRIES}")
    return number


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"it is one of {', '.join(choices)}")
        return text

    return parse


def _flag(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


def _health(view: TableView) -> dict[str, Any]:
    return asdict(health(view.log, files=True))


_PAGE: dict[str, Callable[[str], Any]] = {"offset": _number, "limit": _limit}
_FIRST: dict[str, Any] = {"offset": 0, "limit": 50}

_ENDPOINTS = {
    "table": _Endpoint(describe, {"at": str}, {"at": ""}),
    "timeline": _Endpoint(timeline_page, {"before": _number, "limit": _limit}, {"before": None, "limit": 50}),
    "commit": _Endpoint(commit_page, {"version": _number, **_PAGE}, _FIRST),
    "partitions": _Endpoint(
        partition_page,
        {
            "version": _number,
            "sort": _one_of("values", "files", "bytes", "rows", "deleted"),
            "descending": _flag,
            **_PAGE,
        },
        {"sort": "values", "descending": False, **_FIRST},
    ),
    "files": _Endpoint(
        file_page,
        {
            "version": _number,
            "where": str,
            "kept": _one_of("", "yes", "no"),
            "partition": _number,
            "sort": _one_of("path", "bytes", "rows", "deleted", "modified"),
            "descending": _flag,
            **_PAGE,
        },
        {"where": "", "kept": "", "partition": None, "sort": "path", "descending": False, **_FIRST},
    ),
    "filter": _Endpoint(filter_summary, {"version": _number, "where": str}, {}),
    "columns": _Endpoint(column_page, {"version": _number, **_PAGE}, _FIRST),
    "ranges": _Endpoint(range_page, {"version": _number, "column": str, "where": str}, {"where": ""}),
    "health": _Endpoint(_health, {}, {}),
    "rows": _Endpoint(
        first_rows, {"version": _number, "where": str, "limit": _limit}, {"where": "", "limit": 50}
    ),
}


def answer(view: TableView, name: str, query: str) -> Any:
    """The answer to a request.

    Parameters
    ----------
    name
        Of the answer.
    query
        Its parameters, as in an address.

    Raises
    ------
    LookupError
        There is no such answer.
    InvalidOptionError
        A parameter is missing, unknown or wrong.
    DeltaError
        What the table has to say against it.
    """
    endpoint = _ENDPOINTS.get(name)
    if endpoint is None:
        raise LookupError(f"there is no {name!r} here; there are {', '.join(_ENDPOINTS)}")
    return endpoint.call(view, **_arguments(name, endpoint, query))


def _arguments(name: str, endpoint: _Endpoint, query: str) -> dict[str, Any]:
    try:
        given = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise WRONG_PARAMETER_OF_PAGE(name=name, parameter="", reason=error) from None
    found = dict(endpoint.defaults)
    for parameter, text in given:
        parse = endpoint.takes.get(parameter)
        if parse is None:
            known = ", ".join(endpoint.takes) or "none"
            raise WRONG_PARAMETER_OF_PAGE(name=name, parameter=parameter, reason=f"it takes {known}")
        try:
            found[parameter] = parse(text)
        except ValueError as error:
            raise WRONG_PARAMETER_OF_PAGE(name=name, parameter=parameter, reason=error) from None
    for parameter in endpoint.takes:
        if parameter not in found:
            raise WRONG_PARAMETER_OF_PAGE(name=name, parameter=parameter, reason="it is missing")
    return found
