"""Measure the matrix of engines: print what each made of each table; `--record` writes them into docs/engines.json."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from spark_tests.engines.interop.engines.matrix import RECORD, measure, merged, worse
from spark_tests.engines.interop.engines.readers import READERS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m spark_tests.engines.interop.engines", description=__doc__
    )
    parser.add_argument(
        "--record", action="store_true", help="write what was measured into docs/engines.json"
    )
    parser.add_argument("--engine", action="append", choices=list(READERS), help="only this engine")
    parser.add_argument("--table", default="", help="only tables whose names have this text in them")
    given = parser.parse_args()
    whole = not given.engine and not given.table
    with tempfile.TemporaryDirectory(prefix="engines-") as folder:
        measured = measure(Path(folder), given.engine or tuple(READERS), given.table)
    for engine, told in measured["engines"].items():
        print(f"{engine}: {told['versions']} {told['note']} {told.get('failed', '')}".rstrip())
    for row in measured["features"]:
        for engine, (grade, detail) in row["cells"].items():
            print(f"{row['title']} | {engine} | {grade}{': ' if detail else ''}{detail}")
    if given.record:
        if not whole:
            measured = merged(measured, json.loads(RECORD.read_text()))
        RECORD.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
        return 0
    found = worse(measured, json.loads(RECORD.read_text()))
    print("\n".join(["", "worse than recorded:", *found]) if found else "\nno cell is worse than recorded")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
