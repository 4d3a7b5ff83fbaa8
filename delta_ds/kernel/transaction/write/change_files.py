"""Change files of a commit whose changes its file actions do not tell.

Source: PROTOCOL.md, "Add CDC File"; protocol-checklist section 33.
"""

from __future__ import annotations

import pyarrow as pa

from delta_ds.kernel.files.write.write_spec import WriteSpec
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.format.actions import AddCDCFile
from delta_ds.kernel.format.schema.types import STRING, StructField
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import replace

CHANGE_TYPE = "_change_type"
FOLDER, _PREFIX = "_change_data", "cdc"


class ChangeWriter:
    """Writes rows with the kind of their change; used like a `FileWriter`.

    Parameters
    ----------
    storage, plan, task
        As for `FileWriter`.
    folder
        Below that of change files; none by default.
    """

    def __init__(self, storage: Storage, plan: WriteSpec, task: int = 0, folder: str = "") -> None:
        extra = (*plan.extra_columns, StructField(CHANGE_TYPE, STRING))
        self._writer = FileWriter(
            storage,
            replace(plan, extra_columns=extra),
            task=task,
            folder=f"{FOLDER}/{folder}" if folder else FOLDER,
            prefix=_PREFIX,
        )

    def write(self, rows: pa.RecordBatch, kind: str) -> None:
        """Record rows under one kind: `insert`, `delete`, `update_preimage` or `update_postimage`."""
        kinds = pa.repeat(pa.scalar(kind, pa.string()), rows.num_rows)
        self._writer.write(rows.append_column(pa.field(CHANGE_TYPE, pa.string()), kinds))

    def close(self) -> list[AddCDCFile]:
        """The bodies of the `cdc` actions."""
        return [
            {
                "path": add["path"],
                "partitionValues": add["partitionValues"],
                "size": add["size"],
                "dataChange": False,
            }
            for add in self._writer.close()
        ]

    def abort(self) -> None:
        """Delete what was written."""
        self._writer.abort()
