"""Every option of a write, in every way of writing: honoured with the same result, or refused by the same condition.

The options are the records of `WRITE_OPTIONS`, the ways those of `Way` and what has none: streams, `DeltaLog.write`,
the data source without a session. What an option comes to may differ by what is written to (a new table, rows that are
added or replaced, a table that is replaced), never by the way. No JVM: the requests of a session are completed as
`write` does it, and carried out by the data source, whose plan is that of Spark's own writer.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.streaming.sink import commit_batch
from delta_ds.kernel.format.options.settings import (
    ARBITRARY_PROPERTIES,
    DYNAMIC_OVERWRITE,
    OVERWRITE_MODE,
    RETENTION_COMPATIBILITY,
    TIME_ZONE,
    SessionFacts,
    Setting,
)
from delta_ds.kernel.format.options.write import (
    BATCH_ONLY,
    ERROR,
    IGNORE,
    WRITE_OPTIONS,
    NewTableOptions,
    checked_codec,
)
from delta_ds.kernel.format.schema.from_arrow import schema_from_arrow
from delta_ds.kernel.transaction.write.intent import (
    APPEND,
    COMPLETE,
    OVERWRITE,
    batch_intent,
    command_intent,
    find_target,
    stream_intent,
)
from delta_ds.kernel.transaction.write.plan import plan_write
from delta_ds.kernel.transaction.write.task import write_rows
from delta_ds.records import dataclass, field, replace
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base.table_names import with_path
from delta_ds.spark.engines.portable.source import DeltaSource
from delta_ds.spark.session.writes import request
from delta_ds.spark.session.writes.request import SAVE, Way, WriteRequest, complete_options, with_facts
from delta_ds.spark.session.writes.write import CREATE, CREATE_OR_REPLACE, REPLACE, NewTable, as_new_table
from spark_tests.behaviour.kernel.transaction.write.tables import actions, create

Texts = Mapping[str, str]

# --- what is written to, and what it is like for an option that tells them not apart

NEW, NEW_OVER, ADDED, REPLACED = "new table", "new table by an overwrite", "append", "overwrite"
PARTITIONS, TABLE = "overwrite of partitions", "replaced table"
NEW_STREAM, STREAM, COMPLETED = "stream to a new table", "stream", "stream of mode complete"
_LIKE = {
    NEW_OVER: NEW, TABLE: NEW, NEW_STREAM: NEW, STREAM: ADDED, PARTITIONS: REPLACED, COMPLETED: REPLACED,
}  # fmt: skip
_STREAMS = (NEW_STREAM, STREAM, COMPLETED)
_WITHOUT_TABLE = (NEW, NEW_OVER, NEW_STREAM)


# --- the ways: each writes batches to a path, one a task, with options and settings of a session


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a way.

    Attributes
    ----------
    write
        Gets the path, the rows, options and settings.
    way
        Of its request; None: it makes none.
    says
        The options that the call itself says.
    has_session
        Whether settings reach it.
    """

    write: Callable[[Path, Sequence[pa.RecordBatch], Texts, Texts], None]
    way: Way | None = None
    says: frozenset[str] = frozenset()
    has_session: bool = True


def _by_log(mode: str) -> Call:
    def write(path: Path, tasks: Sequence[pa.RecordBatch], options: Texts, settings: Texts) -> None:
        DeltaLog(path).write(pa.Table.from_batches(tasks), mode, options)

    return Call(write, says=frozenset(["ifExists"] if mode == ERROR else []), has_session=False)


def _by_source(mode: str) -> Call:
    def write(path: Path, tasks: Sequence[pa.RecordBatch], options: Texts, settings: Texts) -> None:
        # Spark hands names over to a data source in lower case.
        source = DeltaSource({name.lower(): t for name, t in with_path(options, str(path), "save").items()})
        data = schemas.to_spark(schema_from_arrow(tasks[0].schema))
        writer = cast(Any, source.writer(data, mode == OVERWRITE))
        writer.commit([writer.write(iter([task])) for task in tasks])

    return Call(write, has_session=False)


def _by_stream(mode: str) -> Call:
    def write(path: Path, tasks: Sequence[pa.RecordBatch], options: Texts, settings: Texts) -> None:
        given = with_path(options, str(path), "start")
        complete = with_facts(given, SessionFacts(settings), streaming=True)
        plan = plan_write(find_target(stream_intent(complete, mode)), schema_from_arrow(tasks[0].schema))
        results = [write_rows(plan, [task], number) for number, task in enumerate(tasks)]
        commit_batch(plan, results, "query", 0)

    return Call(write)


_ROWLESS: Any = None  # the data source is given the rows


def _request(asked: Callable[[Texts], WriteRequest]) -> Call:
    def write(path: Path, tasks: Sequence[pa.RecordBatch], options: Texts, settings: Texts) -> None:
        made = asked(with_path(options, str(path), "save"))
        complete = complete_options(made, SessionFacts(settings))
        del complete["path"]
        _by_source(made.mode).write(path, tasks, complete, {})

    bare = asked({})
    return Call(write, bare.way, frozenset(complete_options(bare, SessionFacts())))


def _call(way: Way, mode: str, **more: Any) -> Call:
    return _request(lambda options: WriteRequest(_ROWLESS, way, mode, options, **more))


def _making(mode: str, **more: Any) -> Call:
    return _request(lambda options: as_new_table(_ROWLESS, NewTable(mode), options, **more))


WAYS: dict[str, dict[str, Call]] = {
    "DeltaLog.write": {
        NEW: _by_log(ERROR), NEW_OVER: _by_log(OVERWRITE), ADDED: _by_log(APPEND), REPLACED: _by_log(OVERWRITE),
    },
    "data source": {
        NEW: _by_source(APPEND), NEW_OVER: _by_source(OVERWRITE), ADDED: _by_source(APPEND),
        REPLACED: _by_source(OVERWRITE),
    },
    "stream": {NEW_STREAM: _by_stream(APPEND), STREAM: _by_stream(APPEND), COMPLETED: _by_stream(COMPLETE)},
    "save": {
        NEW: _call(SAVE, ERROR), NEW_OVER: _call(SAVE, OVERWRITE), ADDED: _call(SAVE, APPEND),
        REPLACED: _call(SAVE, OVERWRITE),
    },
    "save of mode ignore": {NEW: _call(SAVE, IGNORE)},
    "saveAsTable": {
        NEW: _making(CREATE, is_save_as_table=True), NEW_OVER: _making(CREATE_OR_REPLACE, is_save_as_table=True),
        ADDED: _call(request.APPEND_AS_TABLE, APPEND),
        REPLACED: _making(CREATE_OR_REPLACE, is_save_as_table=True),
    },
    "insertInto": {ADDED: _call(request.INSERT_INTO, APPEND), REPLACED: _call(request.INSERT_INTO, OVERWRITE)},
    "writeTo": {
        ADDED: _call(request.WRITE_TO, APPEND), REPLACED: _call(request.WRITE_TO, OVERWRITE, replaced="true"),
        PARTITIONS: _call(request.WRITE_PARTITIONS, OVERWRITE, by_partition=True),
    },
    "CREATE TABLE AS, writeTo.create": {NEW: _making(CREATE)},
    "REPLACE TABLE AS, writeTo.replace": {TABLE: _making(REPLACE)},
    "CREATE OR REPLACE TABLE AS, writeTo.createOrReplace": {
        NEW_OVER: _making(CREATE_OR_REPLACE), TABLE: _making(CREATE_OR_REPLACE),
    },
    "INSERT": {
        ADDED: _call(request.INSERT, APPEND), REPLACED: _call(request.INSERT, OVERWRITE, replaced="true"),
        PARTITIONS: _call(request.INSERT, OVERWRITE, by_partition=True),
    },
    "INSERT BY NAME": {ADDED: _call(request.INSERT_BY_NAME, APPEND)},
    "INSERT of listed columns": {ADDED: _call(request.INSERT_LISTED, APPEND)},
}  # fmt: skip
CALLS = [(way, kind, call) for way, kinds in WAYS.items() for kind, call in kinds.items()]


# --- the options: what each is asked with, and what there is to be seen of it


@dataclass(frozen=True, slots=True)
class Refused:
    """The condition of an error; nothing was written."""

    condition: str


ILLEGAL, MISMATCH = Refused("DELTA_ILLEGAL_OPTION"), Refused("DELTA_METADATA_MISMATCH")


def _batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


TWO_TASKS = (_batch(id=[10, 12], p=["a", "a"]), _batch(id=[11], p=["a"]))
EXTRA = (_batch(id=[10], p=["a"], x=[1]),)
AT = (_batch(id=[10], at=pa.array([0], pa.timestamp("us", "UTC"))),)


def _table(*partitioned: str) -> Callable[[Path], Any]:
    rows = pa.table({"id": [1, 2], "p": ["a", "b"]})
    return lambda path: DeltaLog(path).write(rows, options={"partitionBy": list(partitioned)})


def _column(name: str, kind: str, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "metadata": {f"delta.{key}": text for key, text in metadata.items()}}


def _dated(path: Path) -> None:
    date = _column("d", "date", generationExpression="CAST(at AS DATE)")
    create(path, _column("id", "long"), _column("at", "timestamp"), date)


def _numbered(path: Path) -> None:
    identity = {"identity.start": 1, "identity.step": 1, "identity.allowExplicitInsert": False}
    create(path, _column("id", "long"), _column("p", "string"), _column("k", "long", **identity))


@dataclass(frozen=True, slots=True)
class Asked:
    """What an option is asked with.

    Attributes
    ----------
    text
        Its value; `{folder}` stands for a folder that is there.
    seen
        What tells in a table whether it was honoured.
    outcomes
        What is seen, or the refusal, by what is written to; see `_LIKE`.
    beside
        Options that it needs.
    rows
        For the tasks.
    table
        Makes the table that is there.
    times
        How often it is written.
    wrong
        A value that it cannot have; None: there is none.
    wrong_is
        How that is refused.
    """

    text: str
    seen: Callable[[Path], Any]
    outcomes: Mapping[str, Any]
    beside: Texts = field(default_factory=dict)
    rows: Sequence[pa.RecordBatch] = TWO_TASKS
    table: Callable[[Path], Any] = _table("p")
    times: int = 1
    wrong: str | None = None
    wrong_is: Refused = ILLEGAL

    def outcome(self, kind: str) -> Any:
        return self.outcomes[kind] if kind in self.outcomes else self.outcomes[_LIKE[kind]]


def _rows(path: Path) -> list[dict[str, Any]]:
    return DeltaLog(path).snapshot().scan().to_arrow().sort_by("id").to_pylist()  # type: ignore[no-any-return]


def _ids(path: Path) -> list[int]:
    return [row["id"] for row in _rows(path)]


def _layout(path: Path) -> tuple[str, str, str]:
    """Columns, those of partitions and those of clusters."""
    snapshot = DeltaLog(path).snapshot()
    clusters = [".".join(column) for column in snapshot.clustering_columns]
    return " ".join(snapshot.schema.names), " ".join(snapshot.partition_columns), " ".join(clusters)


def _adds(path: Path) -> list[dict[str, Any]]:
    return actions(path, DeltaLog(path).snapshot().version, "add")


def _codecs(path: Path) -> set[str]:
    return {pq.read_metadata(path / add["path"]).row_group(0).column(0).compression for add in _adds(path)}


def _transactions(path: Path) -> list[tuple[str, int]]:
    versions = range(DeltaLog(path).snapshot().version + 1)
    return [(txn["appId"], txn["version"]) for version in versions for txn in actions(path, version, "txn")]


def _everywhere(seen: Any) -> dict[str, Any]:
    return {NEW: seen, ADDED: seen, REPLACED: seen}


_TRANSACTION = {
    "seen": _transactions, "outcomes": _everywhere([("a", 7)]), "times": 2,
}  # fmt: skip
# Any property of a table may be among the options.
_PROPERTY = "delta.appendOnly"
_DESCRIPTION = NewTableOptions("CREATE TABLE AS SELECT", description="told").text()

# What is replaced follows from written rows: a command of a session has to find it, and plans here have none.
_MADE = Refused("DELTA_DFV2_CREATE_REPLACE_INCOMPATIBLE_REPLACE_ON_OR_USING")
_NONE_THERE = Refused("DELTA_PATH_DOES_NOT_EXIST")
MATCHES = {
    NEW: [10, 11, 12], NEW_OVER: _NONE_THERE, ADDED: [1, 2, 10, 11, 12], TABLE: _MADE,
    REPLACED: Refused("DELTA_REPLACE_ON_OR_USING_NEEDS_SESSION"),
    PARTITIONS: Refused("DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING"),
}  # fmt: skip

ASKED: dict[str, Asked] = {
    "path": Asked("{folder}", _ids, {**_everywhere(ILLEGAL), NEW_STREAM: ILLEGAL, STREAM: ILLEGAL}),
    "mergeSchema": Asked(
        "TRUE", _layout, {NEW: ("id p x", "", ""), ADDED: ("id p x", "p", ""), REPLACED: ("id p x", "p", "")},
        rows=EXTRA, wrong="maybe",
    ),
    "overwriteSchema": Asked(
        "true", _layout, {NEW: ("id p x", "", ""), ADDED: MISMATCH, REPLACED: ("id p x", "", "")},
        rows=EXTRA, wrong="maybe",
    ),
    "replaceWhere": Asked(
        "id = 1 or id > 9", _ids,
        {
            NEW: [10, 11, 12], ADDED: [1, 2, 10, 11, 12], REPLACED: [2, 10, 11, 12], TABLE: [2, 10, 11, 12],
            PARTITIONS: Refused("DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE"),
        },
    ),
    "replaceUsing": Asked("id", _ids, MATCHES, wrong="id,"),
    "replaceOn": Asked("t.id = p", _ids, MATCHES, beside={"targetAlias": "t"}),
    "targetAlias": Asked(
        "t", _ids,
        {
            NEW: [10, 11, 12], ADDED: [1, 2, 10, 11, 12], REPLACED: [2, 10, 11, 12], TABLE: [2, 10, 11, 12],
            PARTITIONS: Refused("DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE"),
        },
        beside={"replaceWhere": "t.id = 1 or T.ID > 9"},
    ),
    "partitionOverwriteMode": Asked(
        "Dynamic", _ids, {NEW: [10, 11, 12], ADDED: [1, 2, 10, 11, 12], REPLACED: [2, 10, 11, 12]}, wrong="some",
    ),
    "partitionBy": Asked(
        "p", _layout, {NEW: ("id p", "p", ""), ADDED: MISMATCH, REPLACED: MISMATCH}, table=_table(), wrong="`p",
    ),
    "clusterBy": Asked(
        "id", _layout,
        {
            NEW: ("id p", "", "id"), ADDED: Refused("DELTA_CLUSTERING_COLUMNS_MISMATCH"),
            REPLACED: Refused("DELTA_CLUSTERING_COLUMNS_MISMATCH"),
        },
        table=_table(), wrong="`id",
    ),
    "txnAppId": Asked("a", beside={"txnVersion": "7"}, **_TRANSACTION),
    "txnVersion": Asked("7", beside={"txnAppId": "a"}, wrong="-1", **_TRANSACTION),
    "userMetadata": Asked("told", lambda path: DeltaLog(path).history()[0]["userMetadata"], _everywhere("told")),
    "maxRecordsPerFile": Asked("1", lambda path: len(_adds(path)), _everywhere(3), wrong="x"),
    "optimizeWrite": Asked("true", lambda path: len(_adds(path)), _everywhere(1), wrong="maybe"),
    "dataChange": Asked(
        "false", lambda path: {add["dataChange"] for add in _adds(path)},
        {**_everywhere({False}), NEW: Refused("DELTA_DATA_CHANGE_FALSE"), TABLE: {False}}, wrong="maybe",
    ),
    "compression": Asked("GZip", _codecs, _everywhere({"GZIP"}), wrong="rar"),
    "timeZone": Asked(
        "America/New_York", lambda path: _rows(path)[-1].get("d"),
        {NEW: None, ADDED: date(1969, 12, 31), REPLACED: date(1969, 12, 31)}, rows=AT, table=_dated,
        wrong="Mars/Base", wrong_is=Refused("INVALID_TIMEZONE"),
    ),
    "ifExists": Asked(
        "error", _ids,
        {
            NEW: [10, 11, 12], NEW_OVER: ILLEGAL, ADDED: Refused("DELTA_PATH_EXISTS"), REPLACED: ILLEGAL,
            TABLE: ILLEGAL,
        },
        wrong="maybe",
    ),
    "replaceTable": Asked(
        "true", _layout, {NEW: ILLEGAL, NEW_OVER: ("id p", "", ""), ADDED: ILLEGAL, REPLACED: ("id p", "", "")},
        wrong="maybe",
    ),
    "newTable": Asked(
        _DESCRIPTION, lambda path: DeltaLog(path).snapshot().metadata.description,
        {NEW: "told", ADDED: None, REPLACED: None}, wrong="[]",
    ),
    "readVersion": Asked(
        "0", lambda path: DeltaLog(path).history()[0]["isBlindAppend"],
        {**_everywhere(False), NEW: Refused("DELTA_TABLE_NOT_FOUND"), TABLE: False}, wrong="x",
    ),
    "numberOfTasks": Asked(
        "2", lambda path: [row.get("k") for row in _rows(path)],
        {NEW: [None, None], ADDED: [1, 3], REPLACED: [1, 3]}, rows=TWO_TASKS[:1], table=_numbered, wrong="0",
    ),
    _PROPERTY: Asked(
        "true", lambda path: DeltaLog(path).snapshot().metadata.configuration.get(_PROPERTY),
        {NEW: "true", ADDED: None, REPLACED: None}, wrong="maybe",
        wrong_is=Refused("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"),
    ),
    "reportFolder": Asked("{folder}", lambda path: len(list(_folder(path).iterdir())), _everywhere(1)),
}  # fmt: skip

# Where delta-spark drops an option, which is told by an event here: it counts where a table may be there.
# Source: delta-spark, `DeltaCatalog.createDeltaTable`; the records of `test_recorded_writes`.
PASSED_OVER: dict[tuple[str, str, str], Any] = {
    ("userMetadata", "saveAsTable", NEW): None,
    ("userMetadata", "CREATE TABLE AS, writeTo.create", NEW): None,
    ("userMetadata", "REPLACE TABLE AS, writeTo.replace", TABLE): None,
}
# A statement, or a call, that makes a table has no rows to replace.
PASSED_OVER |= {
    (option, way, kind): _MADE
    for option in ("replaceUsing", "replaceOn")
    for way, kind in (
        ("saveAsTable", NEW), ("CREATE TABLE AS, writeTo.create", NEW),
        ("CREATE OR REPLACE TABLE AS, writeTo.createOrReplace", NEW_OVER),
    )
}  # fmt: skip
# In one process the rows of both sides are at hand.
PASSED_OVER[("replaceUsing", "DeltaLog.write", REPLACED)] = [1, 2, 10, 11, 12]
# What a call says is not said once more, but for that of `overwritePartitions`, as in delta-spark.
OVERRULED = ("partitionOverwriteMode",)
_SETTINGS = {option.name: option.setting for option in WRITE_OPTIONS if option.setting is not None}


def _folder(path: Path) -> Path:
    return path.parent / "folder"


def _made(root: Path, asked: Asked) -> Path:
    """The table that is there, made once."""
    path = root / "made"
    if not path.exists():
        asked.table(path)
    return path


def _outcome(root: Path, asked: Asked, call: Call, kind: str, options: Texts, settings: Texts) -> Any:
    """What a write comes to in a fresh folder; a refused one has to leave the table as it was."""
    path = root / f"{len(list(root.iterdir()))}" / "t"
    _folder(path).mkdir(parents=True)
    if kind not in _WITHOUT_TABLE:
        shutil.copytree(_made(root, asked), path)
    before = sorted(path.rglob("*"))
    texts = {name: text.replace("{folder}", str(_folder(path))) for name, text in options.items()}
    try:
        for _ in range(asked.times):
            call.write(path, asked.rows, texts, settings)
    except DeltaError as error:
        assert sorted(path.rglob("*")) == before
        return Refused(error.condition)
    return asked.seen(path)


def _expected(option: str, way: str, kind: str, call: Call) -> Any:
    if (option in call.says and option not in OVERRULED) or (kind in _STREAMS and option in BATCH_ONLY):
        return ILLEGAL
    return PASSED_OVER.get((option, way, kind), ASKED[option].outcome(kind))


def test_every_option_and_every_way_has_its_cells() -> None:
    assert set(ASKED) - {_PROPERTY} == {option.name for option in WRITE_OPTIONS}
    named = {way for way in vars(request).values() if isinstance(way, Way)}
    assert {call.way for _, _, call in CALLS} - {None} == named


@pytest.mark.parametrize("option", ASKED)
def test_an_option_comes_to_the_same_in_every_way(tmp_path: Path, option: str) -> None:
    asked = ASKED[option]
    options = {**asked.beside, option: asked.text}
    found = {(way, kind): _outcome(tmp_path, asked, call, kind, options, {}) for way, kind, call in CALLS}
    assert found == {(way, kind): _expected(option, way, kind, call) for way, kind, call in CALLS}


@pytest.mark.parametrize("option", _SETTINGS)
def test_a_setting_stands_for_its_option_in_every_way_that_has_a_session(tmp_path: Path, option: str) -> None:
    asked = ASKED[option]
    settings = {_SETTINGS[name]: text for name, text in {**asked.beside, option: asked.text}.items()}
    for way, kind, call in CALLS:
        if not call.has_session:
            continue
        # What holds for one write is not taken for the batches of a stream.
        other = kind in _STREAMS and option in BATCH_ONLY
        wanted = [("query", 0)] if other else asked.outcome(kind)
        assert _outcome(tmp_path, asked, call, kind, {}, settings) == wanted, (way, kind)


def test_the_session_has_one_time_zone_in_every_way(tmp_path: Path) -> None:
    asked = ASKED["timeZone"]
    for way, kind, call in CALLS:
        if call.has_session:
            found = _outcome(tmp_path, asked, call, kind, {}, {TIME_ZONE: asked.text})
            assert found == asked.outcome(kind), (way, kind)


_ALL_ROWS, _NEW_ROWS = [1, 2, 10, 11, 12], [10, 11, 12]
_DYNAMIC = {"partitionOverwriteMode": "dynamic"}


@pytest.mark.parametrize("by_option", [False, True])
def test_dynamic_overwrites_are_refused_in_every_way_of_a_session_that_disables_them(
    tmp_path: Path, by_option: bool
) -> None:
    asked = ASKED["partitionOverwriteMode"]
    disabled = {DYNAMIC_OVERWRITE.full_name: "false"}
    settings, options = (disabled, _DYNAMIC) if by_option else ({**disabled, OVERWRITE_MODE: "dynamic"}, {})
    refused = Refused("DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED")
    of_table = {ADDED: refused, REPLACED: refused, PARTITIONS: refused, STREAM: _ALL_ROWS}
    for way, kind, call in CALLS:
        if call.has_session:
            found = _outcome(tmp_path, asked, call, kind, options, settings)
            batches_only = by_option and kind in _STREAMS
            assert found == (ILLEGAL if batches_only else of_table.get(kind, _NEW_ROWS)), (way, kind)


def test_other_overwrites_are_as_ever_in_a_session_that_disables_dynamic_ones(tmp_path: Path) -> None:
    asked = ASKED["partitionOverwriteMode"]
    settings = {DYNAMIC_OVERWRITE.full_name: "false"}
    refused = Refused("DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED")
    of_table = {ADDED: _ALL_ROWS, REPLACED: _NEW_ROWS, PARTITIONS: refused, STREAM: _ALL_ROWS}
    for way, kind, call in CALLS:
        if call.has_session:
            found = _outcome(tmp_path, asked, call, kind, {}, settings)
            assert found == of_table.get(kind, _NEW_ROWS), (way, kind)


def test_commands_are_no_overwrites(tmp_path: Path) -> None:
    facts = SessionFacts({DYNAMIC_OVERWRITE.full_name: "false", OVERWRITE_MODE: "dynamic"})
    _table("p")(tmp_path / "t")
    plan_write(
        find_target(command_intent(str(tmp_path / "t"), facts)), schema_from_arrow(TWO_TASKS[0].schema)
    )


@pytest.mark.parametrize(
    ("options", "setting", "allowed", "refused"),
    [
        ({"delta.logRetentionDuration": "1 day"}, RETENTION_COMPATIBILITY, "false", ILLEGAL),
        ({"delta.made.up": "1"}, ARBITRARY_PROPERTIES, "true", Refused("DELTA_UNKNOWN_CONFIGURATION")),
    ],
)
def test_properties_are_those_that_the_session_allows_in_every_way(
    tmp_path: Path, options: Texts, setting: Setting, allowed: str, refused: Refused
) -> None:
    (name,) = options
    asked = replace(ASKED[_PROPERTY], seen=lambda path: name in DeltaLog(path).snapshot().properties)
    for way, kind, call in CALLS:
        assert _outcome(tmp_path, asked, call, kind, options, {}) == refused, (way, kind)
        if call.has_session:
            found = _outcome(tmp_path, asked, call, kind, options, {setting.full_name: allowed})
            assert found is (kind in (*_WITHOUT_TABLE, TABLE)), (way, kind)


@pytest.mark.parametrize("option", [name for name, asked in ASKED.items() if asked.wrong is not None])
def test_a_wrong_value_is_refused_by_one_condition_in_every_way(tmp_path: Path, option: str) -> None:
    asked = ASKED[option]
    options = {**asked.beside, option: cast(str, asked.wrong)}
    for way, kind, call in CALLS:
        twice = option in call.says and option not in OVERRULED
        wanted = ILLEGAL if twice or (kind in _STREAMS and option in BATCH_ONLY) else asked.wrong_is
        assert _outcome(tmp_path, asked, call, kind, options, {}) == wanted, (way, kind)


def test_a_mistyped_name_is_refused_in_every_way(tmp_path: Path) -> None:
    for way, kind, call in CALLS:
        options = {"mergeShema": "true"}
        assert _outcome(tmp_path, ASKED["mergeSchema"], call, kind, options, {}) == ILLEGAL, (way, kind)


_OF_COMMANDS = [name for name in _SETTINGS if name not in ("txnAppId", "txnVersion")]


def test_the_transaction_of_a_command_is_not_that_of_its_rows() -> None:
    settings = {_SETTINGS["txnAppId"]: "app"}
    assert command_intent("/t", SessionFacts(settings)).options.txn is None


@pytest.mark.parametrize("option", _OF_COMMANDS)
def test_rows_of_commands_are_written_as_the_session_says(option: str) -> None:
    asked = ASKED[option]
    options = {**asked.beside, option: asked.text}
    settings = {_SETTINGS[name]: text for name, text in options.items()}
    target = next(record.target for record in WRITE_OPTIONS if record.name == option)
    of_call = batch_intent({**options, "path": "/t"}, APPEND)
    facts = SessionFacts(settings)
    # The codec is looked at where files are written: `test_codecs.py` asks the commands.
    of_command = (
        checked_codec(facts.codec)
        if option == "compression"
        else getattr(command_intent("/t", facts).options, target)
    )
    assert of_command == getattr(of_call.options, target)
