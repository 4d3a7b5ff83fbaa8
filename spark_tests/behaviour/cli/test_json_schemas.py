"""What commands print with `--json` fits the schema that `pydelta schema` shows of it, whatever the table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds import DeltaLog
from delta_ds.__main__ import main
from delta_ds.cli.json_schemas import SCHEMAS, schema_of
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.cli.commands import all_commands, command_line

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")

SALES = Path(__file__).resolve().parents[3] / "examples" / "data" / "sales"
_SERVES = {"ui"}  # until it is ended: test_ui


def _sales(folder: Path) -> None:
    shutil.copytree(SALES, folder)


def _odd(folder: Path) -> None:
    """Row tracking, deletion vectors, files without statistics, commits that say nothing of themselves."""
    log = DeltaLog(folder)
    options = {
        "delta.enableRowTracking": "true",
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
    }
    log.write(
        pa.table({"id": [1, 2, 3], "at": pa.array([1, None, 3], pa.timestamp("us", "UTC"))}), options=options
    )
    log.write(pa.table({"id": [4]}), options={"userMetadata": "late"})
    delete(log, "id = 2")
    log.set_properties({"delta.dataSkippingNumIndexedCols": "0"})
    log.write(pa.table({"id": [5, 6]}))


def _bare(folder: Path) -> None:
    table = TableBuilder(folder)
    table.create(pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    table.append(pa.table({"id": [2]}))


TABLES = {"sales": _sales, "odd": _odd, "bare": _bare}


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    status = main([*arguments, "--json"])
    out, err = capsys.readouterr()
    return json.loads(out if status in (0, 1) else err)


def test_every_command_has_a_schema_and_takes_json() -> None:
    assert set(SCHEMAS) == all_commands() | {"error"}
    for name in SCHEMAS:
        jsonschema.Draft202012Validator.check_schema(schema_of(name))


# Tables that a command refuses: it prints an error, which has a schema too.
_REFUSED = {("blame", "sales"), ("blame", "bare"), ("changes", "bare")}


@pytest.mark.parametrize("name", sorted(SCHEMAS.keys() - _SERVES - {"error", "convert"}))
@pytest.mark.parametrize("table", TABLES)
def test_what_is_printed_fits(
    name: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "sql":
        pytest.importorskip("duckdb", reason="the extra duckdb is not installed")
    TABLES[table](tmp_path / "t")
    line = command_line(name, tmp_path / "t")
    if (name, table) == ("diff", "sales"):
        line[line.index("id")] = "order_id"
    jsonschema.validate(printed(capsys, *line), schema_of("error" if (name, table) in _REFUSED else name))


@pytest.mark.parametrize(
    "more",
    [
        ("files", "--explain"),
        ("diff",),
        ("health", "--log-only"),
        ("vacuum", "--dry-run"),
        ("maintain", "--dry-run"),
    ],
)
def test_what_is_printed_fits_with_other_options(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _odd(tmp_path / "t")
    name, *options = more
    tables = [f"{tmp_path / 't'}@v0", f"{tmp_path / 't'}"] if name == "diff" else [str(tmp_path / "t")]
    jsonschema.validate(printed(capsys, name, *tables, *options), schema_of(name))


def test_what_does_nothing_fits_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _bare(tmp_path / "t")
    jsonschema.validate(printed(capsys, "restore", str(tmp_path / "t"), "-v", "2"), schema_of("restore"))
    jsonschema.validate(printed(capsys, "convert", str(tmp_path / "t")), schema_of("convert"))
    (tmp_path / "files").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "files" / "a.parquet")
    found = printed(capsys, "convert", str(tmp_path / "files"))
    assert found["numFiles"] == 1
    jsonschema.validate(found, schema_of("convert"))


def test_findings_of_damage_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _bare(tmp_path / "t")
    next((tmp_path / "t").glob("*.parquet")).unlink()
    found = printed(capsys, "fsck", str(tmp_path / "t"))
    assert found["damage"] == 1
    jsonschema.validate(found, schema_of("fsck"))
    jsonschema.validate(printed(capsys, "show", str(tmp_path / "t")), schema_of("error"))


def test_a_schema_refuses_what_is_not_of_its_command() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": "one"}, schema_of("checkpoint"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([{"version": 1}], schema_of("history"))


def test_a_mistyped_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "histroy"]) == 2
    assert "did you mean history?" in " ".join(capsys.readouterr().err.replace("│", "").split())
    assert printed(capsys, "schema", "history")["title"] == "pydelta history --json"
