"""One engine in a process of its own: asked by lines of JSON, answers by lines of JSON and files of Arrow.

Engines that fail may take their process along; whoever asks starts the next one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from spark_tests.engines.interop.engines.readers import READERS, NotAsked, Reader


def main() -> None:
    # Engines print to the standard output: the answers have a channel of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        reader = READERS[sys.argv[1]](Path(sys.argv[2]))
    except Exception as error:
        _tell(answers, {"failed": f"{type(error).__name__}: {error}"})
        return
    _tell(answers, {"versions": reader.versions(), "note": reader.note()})
    for line in sys.stdin:
        _tell(answers, _answer(reader, json.loads(line)))


def _answer(reader: Reader, asked: dict[str, Any]) -> dict[str, str]:
    try:
        if asked["first"]:
            reader.run(asked["first"])
        if asked["files"] is not None:
            found = reader.files(asked["files"])
        else:
            found = reader.table(asked["path"], asked["version"])
        rows = pa.table(found) if not isinstance(found, pa.Table) else found
        with pa.ipc.new_file(asked["out"], rows.schema) as file:
            file.write_table(rows)
    except NotAsked as error:
        return {"not asked": str(error)}
    except BaseException as error:  # panics of Rust are no Exceptions
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return {"refused": f"{type(error).__name__}: {error}"}
    return {"rows": str(rows.num_rows)}


def _tell(answers: TextIO, message: dict[str, str]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
