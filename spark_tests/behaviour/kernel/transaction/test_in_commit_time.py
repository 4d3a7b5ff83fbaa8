"""In-commit timestamps: monotonic, and their enablement on record."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.transaction import transaction as module
from spark_tests.behaviour.kernel.transaction.tables import (
    LEGACY,
    add,
    bodies,
    features,
    info,
    make_table,
    metadata,
    read_commit,
    write_commit,
)

ON = {"delta.enableInCommitTimestamps": "true"}
STAMPED = features("inCommitTimestamp")
SINCE = "delta.inCommitTimestampEnablementVersion"
MOMENT = "delta.inCommitTimestampEnablementTimestamp"


def _stamp(path: Path, version: int) -> int:
    info = read_commit(path, version)[0]["commitInfo"]
    assert next(iter(info)) == "inCommitTimestamp"
    return int(info["inCommitTimestamp"])


def test_timestamp_is_first_and_above_the_previous_commit_when_clocks_go_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_table(tmp_path, protocol=STAMPED, configuration=ON)
    log.start_transaction().commit("Manual Update")
    monkeypatch.setattr(module, "_now", lambda: 5)
    log.start_transaction().commit("Manual Update")
    assert _stamp(tmp_path, 2) == _stamp(tmp_path, 1) + 1


def test_the_property_has_no_effect_where_the_protocol_lacks_the_feature(tmp_path: Path) -> None:
    log = make_table(tmp_path, protocol=LEGACY, configuration=ON)
    assert log.start_transaction().commit("Manual Update") == 1
    assert "inCommitTimestamp" not in read_commit(tmp_path, 1)[0]["commitInfo"]
    file = tmp_path / "_delta_log" / f"{1:020d}.json"
    assert log.snapshot().timestamp == file.stat().st_mtime_ns // 1_000_000


def test_new_table_is_stamped_without_a_record_of_enablement(tmp_path: Path) -> None:
    transaction = DeltaLog(tmp_path).start_transaction(create=True)
    transaction.set_protocol(STAMPED).set_metadata(metadata(ON)).commit("CREATE TABLE")
    assert abs(_stamp(tmp_path, 0) - time.time() * 1000) < 60_000
    (written,) = bodies(read_commit(tmp_path, 0), "metaData")
    assert written["configuration"] == ON


def test_enabling_records_version_and_moment_above_the_time_of_the_file(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    future = time.time() + 1000
    os.utime(tmp_path / "_delta_log" / f"{0:020d}.json", (future, future))
    log.start_transaction().set_protocol(STAMPED).set_metadata(metadata(ON)).commit("SET TBLPROPERTIES")
    stamp = _stamp(tmp_path, 1)
    assert stamp > future * 1000 - 1
    (written,) = bodies(read_commit(tmp_path, 1), "metaData")
    assert written["configuration"] == {**ON, SINCE: "1", MOMENT: str(stamp)}
    assert log.snapshot().timestamp == stamp


def test_enabling_after_a_lost_race_records_the_later_version(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    enabling = log.start_transaction().set_protocol(STAMPED).set_metadata(metadata(ON))
    write_commit(tmp_path, 1, [info(blind=True), {"add": add("a", 1)}])
    future = time.time() + 1000
    os.utime(tmp_path / "_delta_log" / f"{1:020d}.json", (future, future))
    assert enabling.commit("SET TBLPROPERTIES") == 2
    stamp = _stamp(tmp_path, 2)
    assert stamp > future * 1000 - 1
    (written,) = bodies(read_commit(tmp_path, 2), "metaData")
    assert (written["configuration"][SINCE], written["configuration"][MOMENT]) == ("2", str(stamp))


def test_append_that_meets_the_enablement_is_stamped_behind_it(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    appending = log.start_transaction().add(add("a", 1))
    enabling = log.start_transaction().set_protocol(STAMPED).set_metadata(metadata(ON))
    assert (enabling.commit("SET TBLPROPERTIES"), appending.commit("WRITE")) == (1, 2)
    assert _stamp(tmp_path, 2) > _stamp(tmp_path, 1)


def test_record_of_enablement_survives_new_metadata(tmp_path: Path) -> None:
    since = {SINCE: "0", MOMENT: "7"}
    log = make_table(tmp_path, protocol=STAMPED, configuration={**ON, **since})
    log.start_transaction().set_metadata(metadata(ON)).commit("REPLACE TABLE")
    (written,) = bodies(read_commit(tmp_path, 1), "metaData")
    assert written["configuration"] == {**ON, **since}


def test_table_without_timestamps_gets_none(tmp_path: Path) -> None:
    log = make_table(tmp_path, protocol=LEGACY)
    log.start_transaction().commit("Manual Update")
    assert "inCommitTimestamp" not in read_commit(tmp_path, 1)[0]["commitInfo"]
