"""Options of no known name: which are refused, which are passed over, and who hears of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.format.options import parsing
from delta_ds.kernel.format.options.read import READ_OPTIONS, parse_read_options
from delta_ds.kernel.format.options.settings import SETTINGS_OPTION, UNKNOWN_OPTIONS, SessionFacts
from delta_ds.kernel.format.options.stream_read import STREAM_READ_OPTIONS, parse_stream_read_options
from delta_ds.kernel.format.options.write import WRITE_OPTIONS, parse_write_options
from delta_ds.kernel.transaction.write.intent import stream_intent

Parse = Callable[[dict[str, Any]], Any]

PARSERS: dict[str, tuple[Parse, Any]] = {
    "read": (parse_read_options, READ_OPTIONS),
    "stream": (parse_stream_read_options, STREAM_READ_OPTIONS),
    "write": (lambda options: parse_write_options(options, overwrite=True), WRITE_OPTIONS),
    "stream write": (lambda options: stream_intent(options, "append"), WRITE_OPTIONS),
}
# What frameworks hand to every source, and what other sources of Spark take.
OF_FRAMEWORKS = (
    "header", "inferSchema", "sep", "delimiter", "encoding", "multiLine", "dateFormat", "data_directory", "mode",
    "recursiveFileLookup", "pathGlobFilter", "modifiedAfter", "batchsize", "dbtable", "url", "quote", "nullValue",
    "basePath", "datetimeRebaseMode", "parquet.vorder.enabled", "checkpoint", "truncate", "schema", "format",
)  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_told", set())


def options(policy: str | None = None, **given: Any) -> dict[str, Any]:
    if policy is not None:
        given[SETTINGS_OPTION] = SessionFacts({UNKNOWN_OPTIONS: policy}).text()
    return {"path": "/t", **given}


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("name", OF_FRAMEWORKS)
def test_an_option_of_others_is_passed_over(kind: str, name: str) -> None:
    PARSERS[kind][0](options(**{name: "true"}))


@pytest.mark.parametrize("kind", PARSERS)
def test_what_is_passed_over_is_told_once(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="delta_ds"):
        for _ in range(3):
            PARSERS[kind][0](options(dataDirectory="/x"))
    (told,) = [record for record in caplog.records if getattr(record, "event", "") == "option_passed_over"]
    assert "dataDirectory" in told.getMessage()


@pytest.mark.parametrize("kind", PARSERS)
def test_a_slip_of_the_pen_is_refused_with_the_name_that_was_meant(kind: str) -> None:
    parse, known = PARSERS[kind]
    for option in known:
        if len(option.name) < 5:
            continue
        for slip in (
            option.name[:-1],
            option.name[:2] + option.name[3:],
            option.name + "s",
            option.name[0] + option.name,
        ):
            if slip.lower() in {n.lower() for o in known for n in (o.name, *o.aliases)}:
                continue
            with pytest.raises(InvalidOptionError) as refused:
                parse(options(**{slip: "1"}))
            assert refused.value.condition == "DELTA_ILLEGAL_OPTION"
            assert "did you mean" in str(refused.value)


@pytest.mark.parametrize("kind", PARSERS)
def test_the_session_may_refuse_all_of_them_or_none(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    parse = PARSERS[kind][0]
    with pytest.raises(InvalidOptionError, match="unknown"):
        parse(options("refuse", header="true"))
    with caplog.at_level(logging.WARNING, logger="delta_ds"):
        parse(options("IGNORE", header="true", timeZome="UTC"))
    assert not caplog.records
    with pytest.raises(InvalidOptionError, match=r"near, refuse or ignore"):
        parse(options("perhaps", header="true"))


def test_an_option_of_reads_has_no_effect_on_a_write(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="delta_ds"):
        parse_write_options(options(versionAsOf="1"), overwrite=False)
    assert "it is an option of reads" in caplog.text


def test_an_end_of_a_stream_is_refused_as_it_would_have_other_rows() -> None:
    with pytest.raises(InvalidOptionError, match="no end"):
        parse_stream_read_options(options(readChangeFeed="true", endingVersion="3"))
