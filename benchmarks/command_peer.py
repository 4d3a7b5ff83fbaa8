"""The measured process of the part `commands` for deltalake, run by its own environment's interpreter.

    python -m benchmarks.command_peer '{"command": "delete", "table": "plain", ...}'

The same settings, cases and records as `command_worker`; deltalake changes copy-on-write tables only.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import deltalake
import pyarrow.dataset

from benchmarks.command_worker import linked_copy, warm_cache
from benchmarks.measure import MARK
from benchmarks.process_tree import Watch

_SPREAD = "id % 100 = 7"
_SET = {"amount": "amount + 1", "city": "'Essen'"}


def _one_range(rows: int) -> str:
    first = rows // 2
    return f"id BETWEEN {first} AND {first + rows // 100 - 1}"


def _merge(table: deltalake.DeltaTable, source: str) -> object:
    rows = pyarrow.dataset.dataset(source).to_table()
    merge = table.merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
    return merge.when_matched_update_all().when_not_matched_insert_all().execute()


Case = Callable[[deltalake.DeltaTable, int, str], object]
COMMANDS: dict[str, dict[str, Case]] = {
    "delete": {
        "delete 1 %, lying together": lambda t, rows, _: t.delete(_one_range(rows)),
        "delete 1 %, spread over all files": lambda t, rows, _: t.delete(_SPREAD),
    },
    "update": {
        "update 1 %, lying together": lambda t, rows, _: t.update(_SET, predicate=_one_range(rows)),
        "update 1 %, spread over all files": lambda t, rows, _: t.update(_SET, predicate=_SPREAD),
    },
    "merge": {"merge, half of the source matched": lambda t, _, source: _merge(t, source)},
    "compaction": {"compaction": lambda t, _, source: t.optimize.compact()},
}


def main(settings: Mapping[str, Any]) -> None:
    for name, case in COMMANDS[settings["command"]].items():
        for size in [*settings["warm"], *["large"] * settings["rounds"]]:
            tables = settings["tables"][size]
            rows = settings["sizes"][size]["rows"]
            with linked_copy(tables[settings["table"]], settings["folder"]) as path:
                warm_cache(path)
                os.sync()
                with Watch() as watch:
                    case(deltalake.DeltaTable(path), rows, tables.get("source", ""))
            record = {"case": name, "size": size, **asdict(watch.used), "answer": "", "shown": ""}
            print(MARK + json.dumps(record), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
