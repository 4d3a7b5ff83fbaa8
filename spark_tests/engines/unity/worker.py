"""A writer as a process of its own: appends a row a commit, and says which it knows to be done.

    python -m spark_tests.engines.unity.worker URL NAME FIRST COUNT

Says `begun N` before and `done N` after each; `lost N` where it cannot know, `failed N` where nothing happened.
"""

from __future__ import annotations

import sys
import time

import pyarrow as pa

from delta_ds import UncertainWriteError
from delta_ds.exceptions import DeltaError
from spark_tests.engines.unity.contract import Place


def main(url: str, name: str, first: int, count: int) -> None:
    log = None
    for number in range(first, first + count):
        print(f"begun {number}", flush=True)
        try:
            log = log or Place(url).log(name)
            log.write(pa.table({"id": [number]}))
        except UncertainWriteError:
            print(f"lost {number}", flush=True)
        except DeltaError as error:
            print(f"failed {number} {error.condition}", flush=True)
            time.sleep(0.5)
        else:
            print(f"done {number}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
