"""Commit files that are torn, odd, or hold what no writer should write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from delta_ds.exceptions import (
    CorruptLogFileError,
    DeltaError,
    LogError,
    SchemaError,
    UnsupportedFeatureError,
    VersionsNotContiguousError,
)
from delta_ds.testing import TableBuilder, json_lines, metadata_action
from spark_tests.faults.corrupted.tables import (
    IDS,
    SCHEMA,
    add_line,
    assert_read_or_refused,
    assert_refused,
    read_ids,
)

HUGE = 50 * 1024 * 1024


def test_commit_cut_in_a_line_is_refused_and_named(table: TableBuilder) -> None:
    file = table.commit_file(2)
    file.write_bytes(file.read_bytes()[:-20])
    assert_refused(table, CorruptLogFileError, match="00000000000000000002")


def test_commit_cut_in_a_line_before_a_checkpoint_is_not_needed(table: TableBuilder) -> None:
    table.checkpoint()
    table.commit_file(2).write_bytes(b'{"add":')
    assert read_ids(table) == IDS


def test_version_after_an_empty_commit_keeps_the_rows_before(table: TableBuilder) -> None:
    table.raw_commit(b"")
    assert_read_or_refused(table, IDS)


def test_commit_of_blank_lines_only_adds_nothing(table: TableBuilder) -> None:
    table.raw_commit(b"\n\n  \n")
    assert_read_or_refused(table, IDS)


def test_blank_lines_between_actions_are_passed_over(table: TableBuilder) -> None:
    table.raw_commit(b"\n\n" + json_lines([add_line(table, 7)]).replace(b"\n", b"\n\n \n"))
    assert read_ids(table) == [*IDS, 7]


def test_lines_that_end_with_carriage_returns_are_read(table: TableBuilder) -> None:
    lines = json_lines([add_line(table, 7), add_line(table, 8)])
    table.raw_commit(lines.replace(b"\n", b"\r\n"))
    assert read_ids(table) == [*IDS, 7, 8]


def test_last_line_without_line_end_is_read(table: TableBuilder) -> None:
    table.raw_commit(json_lines([add_line(table, 7), add_line(table, 8)]).rstrip(b"\n"))
    assert read_ids(table) == [*IDS, 7, 8]


@pytest.mark.parametrize(
    "line", [b"[1]", b'"text"', b"3", b"true", b"{}{}", b"{,}", b"nonsense", b"\x00", b"}"]
)
def test_line_that_is_no_object_is_refused(table: TableBuilder, line: bytes) -> None:
    table.raw_commit(line + b"\n")
    assert_refused(table, CorruptLogFileError)


@pytest.mark.parametrize("line", [b"null", b"{}", b'{"add":null}', b'{"commitInfo":null,"add":null}'])
def test_line_that_says_nothing_changes_nothing(table: TableBuilder, line: bytes) -> None:
    table.raw_commit(line + b"\n")
    assert_read_or_refused(table, IDS)


@pytest.mark.parametrize("body", [3, "text", [], [{}], True])
@pytest.mark.parametrize("kind", ["add", "remove", "metaData", "protocol"])
def test_action_whose_body_is_no_object_is_refused(table: TableBuilder, kind: str, body: Any) -> None:
    table.raw_commit(json.dumps({kind: body}).encode() + b"\n")
    assert_refused(table)


def test_unknown_actions_and_fields_are_ignored(table: TableBuilder) -> None:
    add = add_line(table, 7)
    add["add"]["futureField"] = {"deep": [1, {"a": None}]}
    table.commit({"futureAction": {"path": "nowhere"}}, add, {"futureText": "text"})  # type: ignore[dict-item]
    assert read_ids(table) == [*IDS, 7]


def test_unknown_field_beside_an_action_is_ignored(table: TableBuilder) -> None:
    table.raw_commit(json.dumps({**add_line(table, 7), "future": 1}).encode())
    assert read_ids(table) == [*IDS, 7]


@pytest.mark.parametrize("path", [None, 7, "", [], {}, True])
def test_add_without_a_path_is_refused(table: TableBuilder, path: Any) -> None:
    add = add_line(table, 7)
    add["add"]["path"] = path
    table.commit(add)
    assert_refused(table)


def test_add_that_lacks_its_path_is_refused(table: TableBuilder) -> None:
    add = add_line(table, 7)
    del add["add"]["path"]
    table.commit(add)
    assert_refused(table, CorruptLogFileError)


def test_remove_that_lacks_its_path_is_refused(table: TableBuilder) -> None:
    table.commit({"remove": {"deletionTimestamp": 1, "dataChange": True}})
    assert_refused(table, CorruptLogFileError)


@pytest.mark.parametrize("key", ["size", "modificationTime", "dataChange", "partitionValues", "stats"])
def test_add_that_lacks_what_a_read_can_do_without(table: TableBuilder, key: str) -> None:
    add = add_line(table, 7)
    del add["add"][key]
    table.commit(add)
    assert_read_or_refused(table, [*IDS, 7])


@pytest.mark.parametrize("size", ["{size}", "{size}.0", "-1", "1e3", '"{size}"', "9" * 30, "null"])
def test_size_in_another_spelling_never_changes_rows(table: TableBuilder, size: str) -> None:
    add = add_line(table, 7)
    number = add["add"]["size"]
    text = json.dumps({"add": {**add["add"], "size": "@"}}).replace('"@"', size.format(size=number))
    table.raw_commit(text.encode() + b"\n")
    assert_read_or_refused(table, [*IDS, 7])


def test_numbers_as_strings_are_read(table: TableBuilder) -> None:
    add = add_line(table, 7)
    for key in ("size", "modificationTime"):
        add["add"][key] = str(add["add"][key])
    table.commit(add)
    assert read_ids(table) == [*IDS, 7]


def test_duplicate_keys_with_one_value_are_read(table: TableBuilder) -> None:
    line = json.dumps(add_line(table, 7))
    table.raw_commit(line.replace('"dataChange": true', '"dataChange": true, "dataChange": true').encode())
    assert read_ids(table) == [*IDS, 7]


def test_two_paths_in_one_add_mean_the_last_or_nothing(table: TableBuilder) -> None:
    first, last = add_line(table, 7), add_line(table, 8)
    also = json.dumps(first["add"]["path"])
    line = json.dumps(last).replace('{"path"', f'{{"path": {also}, "path"')
    table.raw_commit(line.encode())
    assert_read_or_refused(table, [*IDS, 8])


@pytest.mark.parametrize("where", ["stats", "tags", "commitInfo", "futureField"])
def test_line_of_50_megabytes_is_read(table: TableBuilder, where: str) -> None:
    add = add_line(table, 7)
    actions: list[Any] = [add]
    if where == "stats":
        add["add"]["stats"] = json.dumps({"numRecords": 1, "maxValues": {"name": "x" * HUGE}})
    elif where == "tags":
        add["add"]["tags"] = {"tag": "y" * HUGE}
    elif where == "futureField":
        add["add"]["future"] = {"deep": ["z" * HUGE]}
    else:
        actions.insert(0, {"commitInfo": {"operation": "WRITE", "notes": "n" * HUGE}})
    table.raw_commit(json_lines(actions))
    assert read_ids(table) == [*IDS, 7]


def test_value_nested_beyond_every_stack_is_no_crash(table: TableBuilder) -> None:
    depth = 100_000
    nested = b'{"commitInfo":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}\n"
    table.raw_commit(nested + json_lines([add_line(table, 7)]))
    assert_read_or_refused(table, [*IDS, 7])


@pytest.mark.parametrize("where", ["path", "stats", "action"])
def test_invalid_utf8_is_refused_or_harmless(table: TableBuilder, where: str) -> None:
    add = add_line(table, 7)
    if where == "action":
        content = json_lines([{"commitInfo": {"operation": "@@"}}, add])
    else:
        add["add"][where] = "@@"
        content = json_lines([add])
    table.raw_commit(content.replace(b"@@", b"\xc3\x28\xff"))
    if where == "path":
        assert_refused(table)
    else:
        assert_read_or_refused(table, [*IDS, 7])


def test_byte_order_mark_is_refused_or_passed_over(table: TableBuilder) -> None:
    table.raw_commit(b"\xef\xbb\xbf" + json_lines([add_line(table, 7)]))
    assert_read_or_refused(table, [*IDS, 7])


def test_missing_commit_is_a_gap_that_is_named(table: TableBuilder) -> None:
    table.commit_file(2).unlink()
    assert_refused(table, VersionsNotContiguousError, match="1.*3")


def test_missing_first_commit_is_refused(table: TableBuilder) -> None:
    table.commit_file(0).unlink()
    assert_refused(table, LogError)


def test_folder_in_place_of_a_commit_is_refused(table: TableBuilder) -> None:
    table.commit_file(4).mkdir()
    assert_read_or_refused(table, IDS)


def test_foreign_files_in_the_log_are_ignored(table: TableBuilder) -> None:
    for name in (
        "00000000000000000004.json.tmp", ".00000000000000000004.json.crc", "4.json", "abc.json", "README",
        "00000000000000000004.json.bak", "00000000000000000004.checkpoint.parquet.tmp",
        ".tmp.00000000000000000004.json", "000000000000000000004.json",
        "00000000000000000004.8c8b0e2c-5b1a-4b7e-9b8b-2f3a4c5d6e7f.json",
    ):  # fmt: skip
        (table.log / name).write_bytes(b"garbage")
    (table.log / "_commits").mkdir()
    (table.log / "_staged_commits").mkdir()
    assert read_ids(table) == IDS


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (None, SchemaError),
        ("", SchemaError),
        ("not json", SchemaError),
        ("[]", SchemaError),
        ('"long"', SchemaError),
        ('{"type":"struct"}', SchemaError),
        ('{"type":"struct","fields":[{"name":"id"}]}', SchemaError),
        ('{"type":"struct","fields":[{"type":"long"}]}', SchemaError),
        ('{"type":"struct","fields":[{"name":1,"type":"long"}]}', SchemaError),
        ('{"type":"struct","fields":{"name":"id"}}', SchemaError),
        ('{"type":"struct","fields":[]}', SchemaError),
        ('{"type":"struct","fields":[{"name":"id","type":"int128"}]}', UnsupportedFeatureError),
        ('{"type":"struct","fields":[{"name":"id","type":"interval year"}]}', UnsupportedFeatureError),
        ('{"type":"struct","fields":[{"name":"id","type":{"type":"set"}}]}', UnsupportedFeatureError),
        ('{"type":"struct","fields":[{"name":"id","type":"decimal(99,2)"}]}', DeltaError),
        ('{"type":' * 50_000, DeltaError),
    ],
)
def test_schema_that_means_nothing_is_refused(
    table: TableBuilder, schema: str | None, kind: type[DeltaError]
) -> None:
    metadata = metadata_action(SCHEMA)
    if schema is None:
        del metadata["metaData"]["schemaString"]
    else:
        metadata["metaData"]["schemaString"] = schema
    table.commit(metadata)
    assert_refused(table, kind)


@pytest.mark.parametrize(
    "change",
    [
        {"partitionColumns": "id"},
        {"partitionColumns": [1]},
        {"partitionColumns": ["nowhere"]},
        {"configuration": ["a"]},
        {"schemaString": 3},
        {"schemaString": {"type": "struct", "fields": []}},
        {"format": "parquet"},
        {"format": {"provider": "orc"}},
    ],
)
def test_metadata_of_wrong_shape_is_refused(table: TableBuilder, change: dict[str, Any]) -> None:
    metadata = metadata_action(SCHEMA)
    metadata["metaData"].update(change)
    table.commit(metadata)
    assert_refused(table)


@pytest.mark.parametrize(
    "protocol",
    [
        {},
        {"minReaderVersion": 1},
        {"minReaderVersion": None, "minWriterVersion": None},
        {"minReaderVersion": "many", "minWriterVersion": 2},
        {"minReaderVersion": 99, "minWriterVersion": 2},
        {"minReaderVersion": -1, "minWriterVersion": 2},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": "deletionVectors"},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [1], "writerFeatures": [1]},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["new"], "writerFeatures": ["new"]},
    ],
)
def test_protocol_that_cannot_be_met_is_refused(table: TableBuilder, protocol: dict[str, Any]) -> None:
    table.commit({"protocol": protocol})
    assert_refused(table)


@pytest.mark.parametrize("kind", ["protocol", "metaData"])
def test_table_without_protocol_or_metadata_is_refused(table: TableBuilder, kind: str) -> None:
    lines = table.commit_file(0).read_bytes().splitlines(keepends=True)
    table.commit_file(0).write_bytes(b"".join(line for line in lines if kind.encode() not in line))
    assert_refused(table, LogError)
