"""Delete many files, several requests at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

import pyarrow as pa

from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.uri import unambiguous

# As many as S3 deletes in one request; the stores that take one file a request share them out themselves.
_FILES_A_REQUEST = 1_000
_REQUESTS_AT_ONCE = 4


def delete_files(storage: Storage, paths: pa.ChunkedArray, tell: Callable[[int, int], None]) -> None:
    """Delete files; missing ones are fine.

    Parameters
    ----------
    paths
        Relative to the table and not encoded.
    tell
        Is called with the files deleted so far, and of how many.

    Raises
    ------
    StorageError
        Some could not be deleted; that did not stop the requests for the others.
    """

    def delete(start: int) -> int:
        names = paths.slice(start, _FILES_A_REQUEST).to_pylist()
        storage.delete([unambiguous(name) for name in names])
        return len(names)

    total, done = len(paths), 0
    problem: Exception | None = None
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        waiting = [pool.submit(delete, start) for start in range(0, total, _FILES_A_REQUEST)]
        for future in as_completed(waiting):
            failure = future.exception()
            if isinstance(failure, Exception):
                problem = problem or failure
            else:
                done += future.result()
            tell(done, total)
    if problem is not None:
        raise problem
