"""`pydelta bench`: what it measures, where it writes, and that nothing of it stays."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_ds import DeltaLog
from delta_ds.__main__ import main
from delta_ds.cli import bench_measures as measures
from delta_ds.cli.bench_measures import Measurement, WatchedStorage, quantile
from delta_ds.kernel.storage.open import open_storage

SALES = Path(__file__).resolve().parents[3] / "examples" / "data" / "sales"
FEW = ("--rounds", "2", "--commits", "12", "--rows", "2000")


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SALES, tmp_path / "sales"))


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def bench(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> Any:
    found = main(["bench", *map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert found == status, err
    return json.loads(out) if status == 0 else err


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_table_of_the_user_is_read_and_never_written_to(
    capsys: pytest.CaptureFixture[str], sales: Path, scratch: Path
) -> None:
    before = files_of(sales)
    found = bench(capsys, sales, "--where", "country = 'DE'", "--scratch", scratch, *FEW)
    assert files_of(sales) == before
    assert list(scratch.iterdir()) == []
    assert (found["version"], found["numFiles"]) == (7, DeltaLog(sales).open_snapshot().live_files().num_rows)
    by_name = {each["name"]: each for each in found["measurements"]}
    assert {name: each["rounds"] for name, each in by_name.items()} == {
        "load": 2, "plan": 2, "scan": 2, "commit": 12, "create": 12, "create_refused": 12,
    }  # fmt: skip
    for each in found["measurements"]:
        taken = each["seconds"]
        assert 0 < taken["p50"] <= taken["p95"] <= taken["max"]
    # Six files have rows of DE.
    assert by_name["scan"]["calls"]["open"]["count"] == 6
    assert by_name["scan"]["rowsPerSecond"] > 0 and by_name["scan"]["bytesPerSecond"] > 0
    assert by_name["create"]["calls"] == {"put-if-absent": by_name["create"]["calls"]["put-if-absent"]}
    assert by_name["create"]["dominatedBy"] == "put-if-absent"


def test_without_a_place_to_write_only_reads_are_measured(
    capsys: pytest.CaptureFixture[str], sales: Path
) -> None:
    found = bench(capsys, sales, "--rounds", "1")
    assert [each["name"] for each in found["measurements"]] == ["load", "plan", "scan"]
    assert main(["bench", str(sales), "--rounds", "1"]) == 0
    told = capsys.readouterr().out
    assert "18 files" in told and "nothing was written: --scratch" in told


def test_without_a_table_one_is_made(capsys: pytest.CaptureFixture[str], scratch: Path) -> None:
    found = bench(capsys, "--scratch", scratch, *FEW)
    assert found["table"] is None and found["numFiles"] == 10
    assert [each["name"] for each in found["measurements"]][:2] == ["write", "load"]
    assert list(scratch.iterdir()) == []


def test_a_scan_is_cut_off_in_time(sales: Path) -> None:
    log = measures.open_table(str(sales), {})
    scan = measures.reads(log, None, "UTC", 1, 0.0, lambda *_: None)[2]
    everything = log.snapshot().scan().count()
    assert 0 < scan.rows[0] < everything


@pytest.mark.parametrize("inside", ["", "_delta_log", "country=DE"])
def test_a_place_that_belongs_to_a_table_is_refused(
    capsys: pytest.CaptureFixture[str], sales: Path, inside: str
) -> None:
    before = files_of(sales)
    for table in ([sales], []):
        told = bench(capsys, *table, "--scratch", sales / inside, status=2)
        assert "belongs to the table" in " ".join(told.replace("│", " ").split())
    assert files_of(sales) == before


def test_a_place_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bench(capsys, "--scratch", tmp_path / "nowhere", status=2)
    assert not (tmp_path / "nowhere").exists()
    bench(capsys, status=2)


def test_a_failure_leaves_nothing_and_says_what_it_was(
    capsys: pytest.CaptureFixture[str], scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from delta_ds.exceptions import StorageError

    def fail(*_: object) -> list[Measurement]:
        raise StorageError("the store is gone")

    monkeypatch.setattr(measures, "creations", fail)
    told = bench(capsys, "--scratch", scratch, *FEW, status=3)
    assert json.loads(told)["message"] == "the store is gone"
    assert list(scratch.iterdir()) == []


def test_a_store_that_overwrites_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from delta_ds.exceptions import StorageError
    from delta_ds.kernel.storage.local import LocalStorage

    def overwrite(self: LocalStorage, path: str, data: bytes, *, durable: bool = True) -> None:
        (tmp_path / path).write_bytes(data)

    monkeypatch.setattr(LocalStorage, "create", overwrite)
    with pytest.raises(StorageError, match="was overwritten, though it was there"):
        measures.creations(open_storage(str(tmp_path)), 1, lambda *_: None)


def test_commits_decided_by_dynamodb_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    told = bench(capsys, "--scratch", "s3://bucket/x", "-o", "logStore=dynamodb", status=2)
    assert "leave entries" in " ".join(told.replace("│", " ").split())


# --- the clock


def test_calls_in_calls_and_of_other_threads_are_counted_once(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    storage.write("a", b"1")
    watched = WatchedStorage(storage)
    threads = [threading.Thread(target=storage.read_many, args=(["a", "a"],)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: call.count for name, call in watched.taken().items()} == {"read": 3}
    assert watched.taken() == {}


def test_what_takes_the_time_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(str(tmp_path))
    storage.write("a", b"1")
    monkeypatch.setattr(storage, "read", lambda path: time.sleep(0.2))
    watched = WatchedStorage(storage)
    found = {}
    for name, action in {
        "read": lambda: storage.read("a"),
        "waiting": lambda: time.sleep(0.2),
        "processor": lambda: sum(range(2_000_000)),
    }.items():
        measured = Measurement(name, name)
        with measured.round(watched):
            action()
        found[name] = measured.dominated_by()
    assert found["read"] == "read" and found["waiting"] == "waiting"
    assert found["processor"] in ("processor", "waiting")  # Other programs may have the processors.


def test_a_round_that_fails_counts_for_nothing(tmp_path: Path) -> None:
    measured = Measurement("a", "a")
    with pytest.raises(ZeroDivisionError), measured.round(WatchedStorage(open_storage(str(tmp_path)))):
        _ = 1 / 0
    assert measured.seconds == []


def test_quantiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [quantile(values, part) for part in (0.5, 0.95, 1.0)] == [50.0, 95.0, 100.0]


# --- a store


@pytest.fixture
def s3() -> Iterator[dict[str, str]]:
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    server = pytest.importorskip("moto.server", reason="moto[server] is not installed").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    server.start()
    host, port = server.get_host_and_port()
    yield {"key": "test-key", "secret": "test-secret", "endpoint_url": f"http://{host}:{port}"}
    server.stop()


@pytest.mark.stores
def test_a_store_is_measured_and_left_as_it_was(
    capsys: pytest.CaptureFixture[str], s3: dict[str, str]
) -> None:
    import s3fs

    filesystem = s3fs.S3FileSystem(use_listings_cache=False, **s3)
    filesystem.mkdir("bench")
    filesystem.pipe_file("bench/place/other", b"of somebody else")
    given = [word for name, value in s3.items() for word in ("-o", f"{name}={value}")]
    found = bench(capsys, "--scratch", "s3://bench/place", *FEW, *given)
    by_name = {each["name"]: each for each in found["measurements"]}
    assert by_name["commit"]["calls"]["put-if-absent"]["count"] >= 1
    assert filesystem.find("bench") == ["bench/place/other"]
