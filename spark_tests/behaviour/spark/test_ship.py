"""`ship` gives the package to workers; only the same version of it takes what is sent."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import delta_ds
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.storage.open import open_storage
from delta_ds.spark.base import processes
from delta_ds.spark.base.kinds import environment
from delta_ds.spark.base.kinds.environment import tasks_problem
from delta_ds.spark.base.processes import OfThisVersion
from delta_ds.spark.engines.seam.shipping import bring_package, package_archive
from delta_ds.spark.errors.translation import as_delta_error


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> str:
    return package_archive(str(tmp_path_factory.mktemp("archive")))


class TestArchive:
    def test_is_imported_from_compiled(self, archive: str, tmp_path: Path) -> None:
        code = (
            "import delta_ds; from delta_ds.spark.engines.portable import source; "
            "print(source.__file__, delta_ds.__version__)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": archive},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.stdout.split() == [
            f"{archive}/delta_ds/spark/engines/portable/source.pyc",
            delta_ds.__version__,
        ], done.stderr

    def test_has_every_module_and_what_spark_finds_data_sources_by(self, archive: str) -> None:
        root = Path(delta_ds.__file__).parent
        names = set(zipfile.ZipFile(archive).namelist())
        assert {str(file.relative_to(root.parent)) for file in root.rglob("*.py")} <= names
        assert "pyspark_pydelta.py" in names

    def test_of_the_same_files_is_the_same_and_has_its_name(self, archive: str, tmp_path: Path) -> None:
        again = Path(package_archive(str(tmp_path)))
        assert again.name == Path(archive).name
        assert again.read_bytes() == Path(archive).read_bytes()


class TestAnotherVersion:
    @pytest.mark.parametrize("pickler", [pickle, cloudpickle])
    def test_takes_nothing(self, pickler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        sent = pickler.dumps(OfThisVersion(len))
        assert pickle.loads(sent)("abc") == 3
        monkeypatch.setattr(processes, "__version__", "0.0.1")
        with pytest.raises(
            UnsupportedOperationError, match=r"delta-ds .*, and a Python worker of Spark 0\.0\.1: .*ship"
        ):
            pickle.loads(sent)

    def test_takes_no_reader_or_writer(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from delta_ds.spark.engines.portable.writer import DeltaWriter

        plan = SimpleNamespace(storage=open_storage(str(tmp_path)))
        sent = cloudpickle.dumps(DeltaWriter(plan))  # type: ignore[arg-type]
        assert pickle.loads(sent)._plan.storage.url == plan.storage.url
        monkeypatch.setattr(processes, "__version__", "0.0.1")
        with pytest.raises(UnsupportedOperationError):
            pickle.loads(sent)

    def test_is_told_with_the_class_that_it_was_raised_with(self) -> None:
        said = (
            "delta_ds.exceptions.UnsupportedOperationError: [DELTA_PYTHON_WORKERS_WITHOUT_PACKAGE] this has 2"
        )
        error = as_delta_error(RuntimeError(f"Traceback (most recent call last):\n{said}\n"))
        assert isinstance(error, UnsupportedOperationError)


class Application:
    """What `tasks_problem` asks of a session on a cluster, whose tasks run here."""

    def __init__(self, *executors: str) -> None:
        self.executors = list(executors)
        self.jobs = 0
        self.master, self.applicationId, self.defaultParallelism = "spark://x", f"app-{id(self)}", 2
        ids = SimpleNamespace(mkString=lambda sign: sign.join(self.executors))
        self.sent: list[str] = []
        self._temp_dir = Path()
        self.addPyFile = self.sent.append
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(getExecutorIds=lambda: ids))

    def parallelize(self, numbers: range, tasks: int) -> Any:
        def collect_of(function: Any) -> Any:
            self.jobs += 1
            return SimpleNamespace(collect=lambda: [row for _ in numbers for row in function(iter(()))])

        return SimpleNamespace(mapPartitions=collect_of)

    @property
    def session(self) -> SparkSession:
        return SimpleNamespace(sparkContext=self)  # type: ignore[return-value]


class TestExecutors:
    def test_are_asked_once_and_again_when_others_have_come(self) -> None:
        application = Application("1", "2")
        assert tasks_problem(application.session) is None
        application.executors = ["1"]
        assert tasks_problem(application.session) is None
        assert application.jobs == 1
        application.executors = ["1", "3"]
        assert tasks_problem(application.session) is None
        assert application.jobs == 2

    def test_that_have_not_come_yet_are_asked_when_they_have(self) -> None:
        application = Application()
        assert tasks_problem(application.session) is None
        application.executors = ["1"]
        assert tasks_problem(application.session) is None
        assert application.jobs == 2

    def test_are_asked_again_after_a_task_has_failed_for_the_want_of_the_package(self) -> None:
        application = Application("1")
        assert tasks_problem(application.session) is None
        as_delta_error(RuntimeError("ModuleNotFoundError: No module named 'delta_ds'"))
        assert tasks_problem(application.session) is None
        assert application.jobs == 2

    def test_are_asked_again_after_the_job_that_asks_was_cancelled(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        application = Application("1")
        cancelled = "def probe(_):\n    raise RuntimeError('[SPARK_JOB_CANCELLED] Job 1 cancelled')"
        with monkeypatch.context() as patch:
            patch.setattr(environment, "_PROBE", cancelled)
            with pytest.raises(RuntimeError, match="Job 1 cancelled"):
                tasks_problem(application.session)
        assert tasks_problem(application.session) is None

    def test_of_a_local_cluster_are_processes_of_their_own(self) -> None:
        application = Application("1")
        application.master = "local-cluster[2,1,1024]"
        assert tasks_problem(application.session) is None
        assert application.jobs == 1

    def test_that_lack_something_or_have_another_version_are_told(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(environment, "__version__", "9.9")
        problem = tasks_problem(Application("1").session)
        assert problem is not None
        assert (
            f"executors have delta-ds {delta_ds.__version__}, and this is 9.9: call delta_ds.ship(spark)"
            in problem
        )
        monkeypatch.setattr(
            environment, "_PROBE", "def probe(_):\n    return [(['delta_ds'], None), (['sqlglot'], '1')]"
        )
        problem = tasks_problem(Application("1").session)
        assert problem is not None
        assert problem.startswith("executors lack delta_ds, sqlglot: install delta-ds on every machine")
        assert len(problem.splitlines()) == 1

    def test_that_cannot_be_asked_count_as_without(self, monkeypatch: pytest.MonkeyPatch) -> None:
        application = Application("1")
        monkeypatch.setattr(application, "parallelize", lambda *_: 1 / 0)
        assert (
            tasks_problem(application.session) == "executors cannot be asked what they have: division by zero"
        )


class TestRowCommands:
    """What commands that change rows do before their tasks run: `bring_package`."""

    def test_send_the_package_to_executors_that_lack_it_and_only_to_these(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        application = Application("1")
        application._temp_dir = tmp_path
        bring_package(application.session, "DELETE", "/t")
        assert application.sent == []
        monkeypatch.setattr(environment, "_PROBE", "def probe(_):\n    return [(['delta_ds'], None)]")
        monkeypatch.setattr(application, "addPyFile", lambda path: _has_come(application, path, monkeypatch))
        application.executors = ["2"]
        with caplog.at_level("INFO", "delta_ds"):
            bring_package(application.session, "DELETE", "/t")
        (path,) = application.sent
        assert "delta_ds/spark/engines/seam/shipping.py" in zipfile.ZipFile(path).namelist()
        assert [r.getMessage() for r in caplog.records if r.getMessage().startswith("package_shipped ")]
        bring_package(application.session, "DELETE", "/t")
        assert len(application.sent) == 1

    def test_are_refused_where_executors_lack_more(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        application = Application("1")
        application._temp_dir = tmp_path
        monkeypatch.setattr(environment, "_PROBE", "def probe(_):\n    return [(['pyarrow'], None)]")
        with pytest.raises(UnsupportedOperationError, match="UPDATE of /t .* lack pyarrow: install") as error:
            bring_package(application.session, "UPDATE", "/t")
        assert error.value.condition == "DELTA_PYTHON_WORKERS_WITHOUT_PACKAGE"


def _has_come(application: Application, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    application.sent.append(path)
    found = f"def probe(_):\n    return [([], {delta_ds.__version__!r})]"
    monkeypatch.setattr(environment, "_PROBE", found)
