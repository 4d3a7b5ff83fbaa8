"""Where tables are made once for all tests, and where the work of tests is done two at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

from spark_tests.engines.interop.catalogue import CASES
from spark_tests.engines.interop.delta_spark import DeltaSpark
from spark_tests.engines.interop.written import Written


class Workshop:
    """The tables of the catalogue, each written when it is first asked for; tests must not change them.

    Parameters
    ----------
    folder
        For everything that is made here.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tables: dict[str, Written] = {}
        self._folders = 0
        self._lock = Lock()

    def written(self, name: str) -> Written:
        """A table of the catalogue."""
        with self._lock:
            if name not in self._tables:
                table = Written(self._new_folder() / name)
                CASES[name].build(table)
                self._tables[name] = table
            return self._tables[name]

    def folder(self) -> Path:
        """A new one, which is there already."""
        with self._lock:
            return self._new_folder()

    def _new_folder(self) -> Path:
        self._folders += 1
        made = self._folder / str(self._folders)
        made.mkdir()
        return made


Work: TypeAlias = Callable[[str, Workshop, DeltaSpark], None]


class Workers:
    """Does the work of tests ahead of them: a query on a tiny table keeps one processor busy, mostly with planning.

    Parameters
    ----------
    workshop, delta_spark
        Handed to each work.
    names
        By the name of a test: what it will be asked to do, in that order.
    """

    def __init__(
        self, workshop: Workshop, delta_spark: DeltaSpark, names: Mapping[str, Sequence[str]]
    ) -> None:
        self._tools = (workshop, delta_spark)
        self._names = names
        self._pool = ThreadPoolExecutor(2)
        self._started: dict[str, dict[str, Future[Any]]] = {}

    def outcome(self, test: str, work: Work, name: str) -> None:
        """Wait for the work of a test; raises what it raised."""
        if test not in self._started:
            self._started[test] = {n: self._pool.submit(work, n, *self._tools) for n in self._names[test]}
        self._started[test][name].result()

    def close(self) -> None:
        """Forget what has not been begun."""
        self._pool.shutdown(cancel_futures=True)
