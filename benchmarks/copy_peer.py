"""The measured process of the part `copies` for deltalake, in its own environment: SOURCE FOLDER ROUNDS [COLUMN]."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pyarrow.dataset as ds
from deltalake import write_deltalake
from measure import MARK  # beside this file
from process_tree import Watch


def main(source: str, folder: str, rounds: str, *partition_by: str) -> None:
    found = []
    for _ in range(int(rounds) + 1):
        path = Path(folder) / "target"
        os.sync()
        with Watch() as watch:
            rows = ds.dataset(source).scanner().to_reader()
            write_deltalake(str(path), rows, partition_by=list(partition_by) or None)
        found.append([watch.used.seconds, watch.used.cpu_s, watch.used.peak_mb])
        shutil.rmtree(path)
    print(MARK + json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
