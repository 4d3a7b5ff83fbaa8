"""Messages between a client and a server of Spark Connect are data."""

from __future__ import annotations

import ast
import base64
import datetime as dt
import json
import math
import pickle
import zlib
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.commands.dml.candidates import candidate_files, distinct_partitions
from delta_ds.kernel.commands.dml.plan import plan_dml, plan_file_rewrite, special_columns
from delta_ds.kernel.commands.health import health
from delta_ds.kernel.commands.optimize.planning import plan_optimize
from delta_ds.kernel.commands.optimize.request import PURGE, ZORDER, OptimizeRequest
from delta_ds.kernel.commands.plot import asked
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.remote import RemoteStorage
from delta_ds.spark.base import wire
from delta_ds.spark.base.kinds import sealed
from delta_ds.spark.commands.handle import _opened
from delta_ds.spark.engines.connect import connect_bridge, log_calls
from delta_ds.spark.engines.connect.connect_bridge import ServerLog, ask
from spark_tests.full_form import examples

ROOT = Path(__file__).parents[4]
SALES = ROOT / "examples" / "data" / "sales"

_KEYS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.dates()
    | st.tuples(st.integers())
)
_VALUES = st.recursive(
    _KEYS | st.floats(allow_nan=False) | st.decimals(allow_nan=False)
    | st.datetimes(timezones=st.none() | st.just(dt.timezone.utc)) | st.timedeltas(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(_KEYS, inner)
    | st.dictionaries(st.text(), inner) | st.sets(_KEYS) | st.frozensets(_KEYS),
)  # fmt: skip


def same(value: Any) -> Any:
    return wire.decode(wire.encode(value))


@settings(max_examples=examples(100), deadline=None)
@given(_VALUES)
def test_a_value_arrives_as_it_was_and_of_its_type(value: Any) -> None:
    found = same(value)
    assert found == value
    assert repr(found) == repr(value) or isinstance(value, (set, frozenset, dict, list, tuple))
    json.loads(wire.encode(value))


def test_values_without_a_form_in_json_arrive() -> None:
    assert math.isnan(same(float("nan"))) and same({"default": ...}) == {"default": ...}
    assert same([float("-inf"), -0.0, Decimal("1.50")]) == [float("-inf"), -0.0, Decimal("1.50")]
    numbers = np.array([[1, 2], [3, 4]], np.uint64)
    assert (same(numbers) == numbers).all() and same(numbers).dtype == numbers.dtype
    for column in (pa.array([1, None]), pa.nulls(0, pa.string()), pa.array([{"a": [1]}])):
        assert same(column).equals(column) and same(column).type == column.type
    table = pa.table({"a": [1, 2], "ä": [b"\0", None]})
    assert (
        same(table).equals(table)
        and same(table["a"]).equals(table["a"])
        and same(table.schema) == table.schema
    )
    call = same(partial(plan_dml, timezone="UTC", computed=("a",)))
    assert (call.func, call.keywords) == (plan_dml, {"timezone": "UTC", "computed": ("a",)})


def test_what_commands_tell_each_other_arrives(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "t")
    rows = pa.table({"id": [1, 2, 3], "p": ["a", "b", "b"], "d": [Decimal("1.5")] * 3})
    log.write(rows, options={"partitionBy": "p", "delta.enableDeletionVectors": "true"})
    snapshot = log.open_snapshot()
    state = snapshot.table_state
    predicate = parse_predicate("id > 1 AND p IN ('a', 'b') AND d < 2.5")
    files = candidate_files(snapshot, predicate, "UTC")
    plan = plan_dml(snapshot, timezone="Europe/Berlin")
    for value in (
        state, predicate, plan, special_columns(snapshot), health(log), _opened(log), log_calls.detail(log),
        OptimizeRequest(kind=PURGE, where=("p = 'a'",)), distinct_partitions(snapshot, "UTC"), files,
        plan_file_rewrite(snapshot, plan, files, (1,)), asked.timeline(snapshot, None),
        asked.column_layout(snapshot, "id", None, "UTC"), asked.skipping(snapshot, "id > 1", None, "UTC"),
    ):  # fmt: skip
        assert wire.encode(same(value)) == wire.encode(value)
    for request in (OptimizeRequest(), OptimizeRequest(kind=ZORDER, columns=("id",))):
        planned = plan_optimize(log, request)
        assert wire.encode(same(planned)) == wire.encode(planned)


def test_a_store_arrives_with_its_options_and_shows_none() -> None:
    storage = open_storage("s3://bucket/t", {"key": "AKIA", "secret": "hidden"})
    found = same(storage)
    assert (type(found), found.url, found.options) == (RemoteStorage, storage.url, storage.options)
    assert "hidden" not in repr(found.options)


def test_long_values_are_compressed() -> None:
    value = ["a" * 100] * 10_000
    assert len(wire.encode(value)) < 100_000
    assert same(value) == value


def test_all_that_is_listed_is_there() -> None:
    for name in wire._FUNCTIONS:
        assert callable(wire._named(name, wire._FUNCTIONS)), name
    for name in wire._RECORDS:
        assert hasattr(wire._named(name, wire._RECORDS), "__record__"), name


# --- what the other side may not do

_RAN: list[str] = []


class _Payload:
    def __reduce__(self) -> Any:
        return _RAN.append, ("ran",)


_PICKLED = base64.b64encode(zlib.compress(pickle.dumps(_Payload()))).decode()


@pytest.mark.parametrize(
    "text",
    [
        _PICKLED,
        json.dumps(_PICKLED + "}"),
        json.dumps({"function": "os:system"}),
        json.dumps({"function": "api.delta_log:DeltaLog.write"}),
        json.dumps({"partial": [{"function": "builtins:eval"}, ["1"], {}]}),
        json.dumps({"record": ["kernel.storage.filesystem:Storage", "x"]}),
        json.dumps({"record": ["subprocess:Popen", "true"]}),
        json.dumps({"record": ["kernel.transaction.alter.columns:NewColumn"]}),
        json.dumps({"numbers": ["O", [1], ""]}),
        json.dumps({"pickle": _PICKLED}),
        json.dumps({"a": 1, "b": 2}),
        json.dumps({"compressed": "AAAA"}),
        "",
    ],
)
def test_a_text_that_is_no_message_is_refused_and_runs_nothing(text: str) -> None:
    with pytest.raises(UnsupportedOperationError) as error:
        found = wire.decode(text)
        assert found == _PICKLED + "}"
        raise UnsupportedOperationError("a text", condition="DELTA_UNREADABLE_MESSAGE")
    assert error.value.condition == "DELTA_UNREADABLE_MESSAGE"
    assert not _RAN


def test_what_has_no_form_is_not_sent() -> None:
    for value in (object(), lambda: None, open, partial(print), {1: object()}, np.array([object()])):
        with pytest.raises(TypeError):
            wire.encode(value)


class _Rows:
    """A session whose server answers with a text; of no application, for whoever looks at all sessions."""

    sparkContext = None  # noqa: N815 - as Spark names it

    def __init__(self, text: str) -> None:
        self.text = text
        self.given: dict[str, str] = {}
        self.conf: dict[str, str] = {}

    @property
    def read(self) -> _Rows:
        return self

    def format(self, name: str) -> _Rows:
        return self

    def options(self, **options: str) -> _Rows:
        self.given = options
        return self

    def load(self) -> _Rows:
        return self

    def collect(self) -> list[tuple[str]]:
        return [(self.text,)]


def _asked(text: str) -> tuple[_Rows, ServerLog]:
    rows: Any = _Rows(text)
    sealed._clients.setdefault(rows, sealed._Client()).sources[connect_bridge.FORMAT] = (
        connect_bridge.ServerSource,
        0,
    )
    return rows, ServerLog(rows, "/t", {})


def test_a_client_runs_nothing_that_a_server_answers() -> None:
    _, log = _asked(_PICKLED)
    with pytest.raises(UnsupportedOperationError):
        ask(log, log_calls.newest_version)
    assert not _RAN


def test_a_server_runs_nothing_but_functions_of_tables() -> None:
    rows, log = _asked("1")
    assert ask(log, log_calls.newest_version) == 1
    options = {**rows.given, "path": str(SALES)}
    assert connect_bridge._call_function(options) == DeltaLog(SALES).snapshot().version
    for call in (_PICKLED, connect_bridge._folded(json.dumps({"tuple": [{"function": "os:system"}]}))):
        with pytest.raises(UnsupportedOperationError):
            connect_bridge._call_function({**options, "call": call})
    assert not _RAN


def _sent() -> list[tuple[str, str]]:
    """Functions of the kernel that commands have called where the log is, by the text of their calls."""
    sent = []
    for file in sorted((ROOT / "delta_ds" / "spark" / "commands").rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        homes = {
            name.asname or name.name: f"{node.module.removeprefix('delta_ds.')}:{name.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("delta_ds.kernel")
            for name in node.names
        }
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            arguments = list(call.args)
            asks = isinstance(call.func, ast.Attribute) and call.func.attr in ("ask", "run")
            if isinstance(call.func, ast.Name) and call.func.id == "partial" and arguments:
                head = arguments.pop(0)
                asks = isinstance(head, ast.Attribute) and head.attr in ("ask", "run")
            if asks and arguments and isinstance(arguments[0], ast.Name) and arguments[0].id in homes:
                sent.append((f"{file.name}:{call.lineno}", homes[arguments[0].id]))
    return sent


def test_what_commands_send_is_listed() -> None:
    sent = _sent()
    assert len(sent) > 10
    assert [(where, function) for where, function in sent if function not in wire._FUNCTIONS] == []
