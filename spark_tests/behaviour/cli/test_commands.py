"""The commands of `pydelta`, as they are typed: what they print, as text and as JSON, and their exit status."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len

from delta_ds import DeltaLog
from delta_ds.__main__ import main
from delta_ds.cli.ui.files import first_rows
from delta_ds.cli.ui.view import TableView

SALES = Path(__file__).resolve().parents[3] / "examples" / "data" / "sales"


@pytest.fixture
def sales(tmp_path: Path) -> str:
    shutil.copytree(SALES, tmp_path / "sales")
    return str(tmp_path / "sales")


class Shell:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, status: int = 0) -> str:
        found = main(arguments)
        out, err = self._capsys.readouterr()
        assert found == status, err
        return out + err

    def json(self, *arguments: str, status: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", status=status))


@pytest.fixture
def pydelta(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def test_detail_is_that_of_the_kernel(pydelta: Shell, sales: str) -> None:
    found = pydelta.json("detail", sales)
    snapshot = DeltaLog(sales).snapshot()
    assert found["version"] == snapshot.version
    assert found["numFiles"] == snapshot.detail()["numFiles"]
    assert [column["name"] for column in found["columns"]] == snapshot.schema.names
    assert snapshot.metadata.id in pydelta("detail", sales)


def test_blame_shows_rows_with_their_commits(pydelta: Shell, tmp_path: Path) -> None:
    log, table = DeltaLog(tmp_path / "t"), str(tmp_path / "t")
    log.write(pa.table({"id": [1, 2]}), options={"delta.enableRowTracking": "true"})
    log.write(pa.table({"id": [3]}), options={"userMetadata": "late rows"})
    (row,) = pydelta.json("blame", table, "--where", "id = 3")
    assert (row["id"], row["_row_id"], row["_commit_version"]) == (3, 2, 1)
    assert row["_commit_user_metadata"] == "late rows"
    told = pydelta("blame", table, "-c", "id", "-n", "2")
    assert told.split()[:2] == ["id", "version"] and "only the first 2 rows" in told
    assert [row["_commit_version"] for row in pydelta.json("blame", f"{table}@v0")] == [0, 0]


def test_blame_of_a_table_that_does_not_track_rows_says_what_to_set(pydelta: Shell, sales: str) -> None:
    assert "delta.enableRowTracking" in pydelta("blame", sales, status=3)


@pytest.mark.parametrize("how", [("--version", "3"), ("-v", "3"), ()])
def test_a_version_is_named_by_an_option_or_the_path(
    pydelta: Shell, sales: str, how: tuple[str, ...]
) -> None:
    table = sales if how else f"{sales}@v3"
    assert pydelta.json("detail", table, *how)["version"] == 3
    assert "both say when" in pydelta("detail", f"{sales}@v3", "-v", "2", status=2).replace(
        "\n", " "
    ).replace("│", "")


def test_history_is_newest_first(pydelta: Shell, sales: str) -> None:
    entries = pydelta.json("history", sales, "--limit", "2")
    assert [entry["version"] for entry in entries] == [7, 6]
    assert "MERGE" in pydelta("history", sales)


def test_files_are_those_that_a_predicate_reads(pydelta: Shell, sales: str) -> None:
    found = pydelta.json("files", sales, "--where", "country = 'DE'")
    assert {row["partitionValues"]["country"] for row in found} == {"DE"}
    assert all(row["numRecords"] for row in found)
    why = pydelta.json("files", sales, "--where", "country = 'DE'", "--explain")
    assert len(why) > len(found) == sum(row["kept"] for row in why)
    assert "6 of 18 files are read" in pydelta("files", sales, "-w", "country = 'DE'")


def test_show_prints_rows(pydelta: Shell, sales: str) -> None:
    rows = pydelta.json("show", sales, "-w", "country = 'DE'", "-c", "order_id,country", "-n", "3")
    assert [list(row) for row in rows] == [["order_id", "country"]] * 3
    assert "only the first 3 rows" in pydelta("show", sales, "-n", "3")
    everything = pydelta.json("show", sales, "-n", "100000")
    assert len(everything) == DeltaLog(sales).snapshot().scan().to_arrow().num_rows


@pytest.mark.parametrize("values", ["plain", "inside"])
def test_values_that_python_has_no_object_for_are_shown_as_texts(
    pydelta: Shell, tmp_path: Path, values: str
) -> None:
    text = pa.Array.from_buffers(pa.binary(), 1, pa.array([b"\xffa"]).buffers()).view(pa.string())
    columns = {
        "d": pa.array([2**30], pa.date32()),
        "t": pa.array([4 * 10**17], pa.timestamp("us", "UTC")),
        "n": pa.array([-(10**17)], pa.timestamp("us")),
        "s": text,
    }
    expected = {
        "d": "+2941775-04-07", "t": "+14645-06-30 15:06:40Z", "n": "-1199-02-15 14:13:20", "s": "\\xffa",
    }  # fmt: skip
    rows = pa.table(columns)
    if values == "inside":
        one = pa.StructArray.from_arrays(list(columns.values()), list(columns))
        rows = pa.table({"l": pa.ListArray.from_arrays([0, 1], one)})
    log = DeltaLog(tmp_path)
    log.write(rows, options={"delta.enableChangeDataFeed": "true"})
    for command in (["show"], ["changes", "--from", "0"]):
        (found,) = pydelta.json(command[0], str(tmp_path), *command[1:])
        assert (found["l"][0] if values == "inside" else {name: found[name] for name in expected}) == expected
    assert "+2941775-04-07" in pydelta("show", str(tmp_path))
    page = first_rows(TableView(log), 0, "", 5)
    assert "+2941775-04-07" in str(page["rows"])


def test_changes_are_netted_by_key(pydelta: Shell, sales: str) -> None:
    net = DeltaLog(sales).changes(3, 6, net="net", keys=["order_id"]).to_arrow()
    rows = pydelta.json(
        "changes", sales, "--from", "3", "--to", "6", "--net", "--key", "order_id", "-n", "100000"
    )
    assert len(rows) == net.num_rows > 0
    latest = pydelta.json(
        "changes", sales, "--from", "3", "--to", "6", "--latest", "--key", "order_id", "-n", "9999"
    )
    assert len(latest) == len({row["order_id"] for row in latest}) >= len({row["order_id"] for row in rows})
    both = ("--net", "--latest", "--key", "order_id")
    assert "give one of" in pydelta("changes", sales, "--from", "3", *both, status=2)
    assert "DELTA_NET_CHANGES_WITHOUT_KEYS" in pydelta("changes", sales, "--from", "3", "--net", status=3)


def test_changes_are_those_of_the_feed(pydelta: Shell, sales: str) -> None:
    rows = pydelta.json("changes", sales, "--from", "5", "--to", "5", "-n", "100000")
    assert len(rows) == DeltaLog(sales).changes(5, 5).to_arrow().num_rows
    assert {row["_commit_version"] for row in rows} == {5}


def test_without_a_first_version_the_changes_are_those_of_the_last_one(pydelta: Shell, sales: str) -> None:
    newest = DeltaLog(sales).snapshot().version
    for arguments, version in (((), newest), (("--to", "5"), 5)):
        rows = pydelta.json("changes", sales, *arguments, "-n", "100000")
        assert {row["_commit_version"] for row in rows} <= {version}
        assert len(rows) == DeltaLog(sales).changes(version, version).to_arrow().num_rows


def test_log_prints_the_actions_of_a_version(pydelta: Shell, sales: str) -> None:
    actions = pydelta.json("log", sales, "-v", "0")
    assert {name for action in actions for name in action} >= {"commitInfo", "protocol", "metaData"}
    assert "metaData" in pydelta("log", f"{sales}@v0")


def test_properties_are_set_and_unset(pydelta: Shell, sales: str) -> None:
    found = pydelta.json(
        "properties", sales, "--set", "delta.logRetentionDuration=interval 9 days", "--set", "a=1"
    )
    assert (found["delta.logRetentionDuration"], found["a"]) == ("interval 9 days", "1")
    assert "a" not in pydelta.json("properties", sales, "--unset", "a")
    assert "delta.logRetentionDuration" in pydelta(
        "properties", sales, "--set", "delta.logRetentionDuratoin=1", status=3
    )


def test_diff_names_columns_properties_files_and_rows(pydelta: Shell, tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "t")
    log.write(pa.table({"id": [1, 2, None], "x": [1.0, float("nan"), 3.0], "tags": [["a"], None, []]}))
    log.write(
        pa.table(
            {"id": [1, 2, 4], "x": [1.5, float("nan"), 3.0], "tags": [["a"], ["b"], []], "new": ["n"] * 3}
        ),
        "overwrite",
        {"overwriteSchema": "true"},
    )
    one, two = f"{tmp_path / 't'}@v0", f"{tmp_path / 't'}@v1"
    found = pydelta.json("diff", one, two, "--key", "id")
    assert found["schema"]["added"] == {"new": "string"}
    assert (len(found["files"]["added"]), len(found["files"]["removed"])) == (1, 1)
    assert [row["id"] for row in found["rows"]["added"]] == [4]
    assert [row["id"] for row in found["rows"]["removed"]] == [None]
    assert found["rows"]["changed"] == [
        {"id": 1, "columns": {"x": {"from": 1.0, "to": 1.5}}},
        {"id": 2, "columns": {"tags": {"from": None, "to": ["b"]}}},
    ]
    assert "x 1.0 -> 1.5" in pydelta("diff", one, two, "--key", "id", "--exit-code", status=1)
    assert pydelta("diff", one, one, "--key", "id", "--exit-code") == "nothing differs\n"


def test_diff_refuses_a_key_that_is_not_unique(pydelta: Shell, tmp_path: Path) -> None:
    DeltaLog(tmp_path).write(pa.table({"id": [1, 1]}))
    assert "not unique" in " ".join(
        pydelta("diff", str(tmp_path), str(tmp_path), "-k", "id", status=2).split()
    )


def test_fsck_tells_damage_by_its_status(pydelta: Shell, sales: str) -> None:
    assert pydelta("fsck", sales, "--contents") == "no damage found\n"
    gone = DeltaLog(sales).open_snapshot().live_files().table["path"][0].as_py()
    (Path(sales) / gone).unlink()
    found = pydelta.json("fsck", sales, status=1)
    assert [(each["kind"], each["path"]) for each in found["findings"]] == [("missing_file", gone)]
    assert "missing_file: 1" in pydelta("fsck", sales, status=1)


def test_health_names_what_is_due(pydelta: Shell, sales: str, tmp_path: Path) -> None:
    assert pydelta.json("health", sales)["num_rows"] == DeltaLog(sales).snapshot().scan().count()
    log = DeltaLog(tmp_path / "t")
    for number in range(25):
        log.write(pa.table({"id": [number]}))
    found = pydelta.json("health", str(tmp_path / "t"))
    assert (found["files_to_join"], found["files_after"]) == (25, 1)
    assert [each["command"] for each in found["due"]] == ["OPTIMIZE"]
    assert "due: OPTIMIZE: joins 25 files into 1" in pydelta("health", str(tmp_path / "t"))


def test_maintain_does_what_health_names(pydelta: Shell, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    DeltaLog(path).write(pa.table({"id": range(25)}), options={"maxRecordsPerFile": 1})
    assert "OPTIMIZE: planned: joins 25 files into 1" in pydelta("maintain", path, "--dry-run")
    done = pydelta.json("maintain", path)
    assert [(step["command"], step["outcome"], step["version"]) for step in done["steps"]] == [
        ("OPTIMIZE", "done", 1)
    ]
    assert pydelta("maintain", path, "--vacuum").splitlines()[1] == "  nothing is due"


def test_checkpoint_is_written(pydelta: Shell, sales: str) -> None:
    assert pydelta.json("checkpoint", sales) == {"version": 7}
    assert list(Path(sales, "_delta_log").glob("*7.checkpoint*"))


def test_vacuum_deletes_what_a_dry_run_names(pydelta: Shell, sales: str) -> None:
    named = pydelta.json("vacuum", sales, "--dry-run", "--retain-hours", "0", "--force")
    assert named["dryRun"] and named["numFiles"] > 0
    assert all((Path(sales) / path).exists() for path in named["paths"])
    assert "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT" in pydelta(
        "vacuum", sales, "--retain-hours", "0", status=3
    )
    done = pydelta.json("vacuum", sales, "--retain-hours", "0", "--force")
    assert sorted(done["paths"]) == sorted(named["paths"])
    assert not any((Path(sales) / path).exists() for path in named["paths"])


def test_restore_commits_an_earlier_version(pydelta: Shell, sales: str) -> None:
    rows = DeltaLog(sales).snapshot(2).scan().to_arrow().num_rows
    assert pydelta.json("restore", sales, "--version", "2")["version"] == 8
    assert DeltaLog(sales).snapshot().scan().to_arrow().num_rows == rows
    assert "nothing to do" in pydelta("restore", sales, "--version", "8")
    pydelta("restore", sales, status=2)


def test_convert_makes_a_table_of_a_folder(pydelta: Shell, tmp_path: Path) -> None:
    for country in ("DE", "FR"):
        folder = tmp_path / "f" / "year=2026" / f"country={country}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2]}), folder / "part.parquet")
    folder = str(tmp_path / "f")
    pydelta("convert", folder, "--partition-by", "year WORD, country STRING", status=2)
    assert pydelta.json("convert", folder, "--partition-by", "year INT, country STRING") == {
        "version": 0,
        "numFiles": 2,
    }
    rows = pydelta.json("show", folder)
    assert {(row["year"], row["country"]) for row in rows} == {(2026, "DE"), (2026, "FR")}
    assert "already" in pydelta("convert", folder)


# --- what goes wrong


def test_errors_are_one_line_or_json_on_the_error_stream(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["detail", str(tmp_path / "no")]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: [DELTA_TABLE_NOT_FOUND]") and err.count("\n") == 1
    assert main(["detail", str(tmp_path / "no"), "--json"]) == 3
    assert json.loads(capsys.readouterr().err)["condition"] == "DELTA_TABLE_NOT_FOUND"


@pytest.mark.parametrize(
    "wrong", [["show"], ["nope"], ["show", "t", "--limit", "x"], ["show", "t", "-o", "key"]]
)
def test_a_wrong_command_line_has_status_2(wrong: list[str], pydelta: Shell) -> None:
    pydelta(*wrong, status=2)


def test_a_mistyped_option_of_the_store_is_refused(pydelta: Shell) -> None:
    assert "aws_region" in pydelta("detail", "s3://bucket/t", "-o", "aws_regoin=eu-west-1", status=3)


def test_secrets_of_options_are_never_printed(pydelta: Shell) -> None:
    options = ("-o", "aws_access_key_id=AKIAHIDDEN", "-o", "aws_secret_access_key=verysecret")
    told = pydelta("detail", "s3://b/t", *options, "-o", "aws_endpoint_url=http://127.0.0.1:9", status=3)
    assert "verysecret" not in told


def test_the_module_is_the_program_and_its_output_can_be_cut_off(sales: str) -> None:
    command = f"{sys.executable} -m delta_ds show {sales} -n 100000 | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stdout.startswith("order_id")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["show", "t"], ["--version"], []])
def test_without_the_extra_one_line_says_what_to_install(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1
    assert "typer" in told.err and "pip install 'delta-ds[cli]'" in told.err and "connect-server" in told.err


def test_without_a_command_help_is_shown(pydelta: Shell) -> None:
    assert "Look at a table" in pydelta(status=2)


def test_help_names_every_command(pydelta: Shell) -> None:
    told = pydelta("--help")
    for name in (
        "detail",
        "history",
        "files",
        "show",
        "diff",
        "changes",
        "blame",
        "log",
        "fsck",
        "checkpoint",
        "vacuum",
    ):
        assert f" {name} " in told
    assert "connect-server" in told


def test_history_fits_80_columns_whatever_commits_say(pydelta: Shell, sales: str, tmp_path: Path) -> None:
    told = pydelta("history", sales)
    assert max(map(len, told.splitlines())) <= 80
    assert "+60 rows, +3 files" in told and "CREATE TABLE" in told and "partitionBy" in told
    log = DeltaLog(tmp_path / "t")
    log.write(pa.table({"id": [1]}), options={"userMetadata": "x" * 200})
    log.set_properties({"odd." + "\x1b表" * 60: "y" * 200})
    lines = pydelta("history", str(tmp_path / "t")).splitlines()
    assert len(lines) == 3 and max(cell_len(line) for line in lines) <= 80
    assert lines[1].endswith("…")


def test_history_has_all_of_it_where_it_may_be_wide(pydelta: Shell, sales: str) -> None:
    told = pydelta("history", sales, "--wide")
    assert "matchedPredicates=" in told and "numTargetRowsUpdated=" in told and "Apache-Spark" in told


def test_health_looks_for_missing_files_and_never_says_nothing_beside_one(pydelta: Shell, sales: str) -> None:
    clean = pydelta("health", sales)
    gone = DeltaLog(sales).open_snapshot().live_files().table["path"][0].as_py()
    (Path(sales) / gone).unlink()
    assert "missing files" in clean and "due: fsck" not in clean
    told = pydelta("health", sales, status=1)
    assert "due: fsck: 1 files that the log names are missing or of another size" in told
    assert "nothing is due" not in told
    found = pydelta.json("health", sales, status=1)
    assert (found["missing_files"], found["due"][0]["command"]) == (1, "fsck")
    by_log = pydelta("health", sales, "--log-only")
    assert "fsck" not in by_log and "\nnothing is due" not in by_log
    assert pydelta.json("health", sales, "--log-only")["missing_files"] is None


def test_every_exit_status_is_one_of_the_table(
    pydelta: Shell, sales: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """128 + the number of a signal aside, which shells make of programs that are killed."""
    from delta_ds.cli import tables
    from delta_ds.cli.output import DONE, FAILED, FOUND, INTERRUPTED, STATUSES, UNREAD, USAGE

    reached = {
        DONE: main(["detail", sales]),
        FOUND: main(["diff", f"{sales}@v3", sales, "--exit-code"]),
        USAGE: main(["detail", sales, "--nonsense"]),
        FAILED: main(["detail", str(tmp_path / "nothing")]),
        UNREAD: subprocess.run(
            f"set -o pipefail; '{sys.executable}' -m delta_ds log '{sales}' -v 0 --json | true",
            shell=True,
            executable="/bin/bash",
            cwd=Path(__file__).resolve().parents[3],
        ).returncode,
    }

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "open_log", interrupted)
    reached[INTERRUPTED] = main(["history", sales])
    assert reached == {status: status for status in STATUSES}
