"""`TableVersion`: what a scan needs of a version of a table; `Snapshot` is one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Protocol as Interface

if TYPE_CHECKING:
    from delta_ds.kernel.actions import Metadata
    from delta_ds.kernel.log.live_files import FileFilter, LiveFiles
    from delta_ds.kernel.schema.types import StructType
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.table_state import TableState


class TableVersion(Interface):
    """One version of a table: see the attributes of `Snapshot`, which go by the same names."""

    storage: Storage
    table_state: TableState

    @property
    def version(self) -> int: ...

    @property
    def metadata(self) -> Metadata: ...

    @property
    def schema(self) -> StructType: ...

    @property
    def mapping_mode(self) -> str: ...

    @property
    def partition_columns(self) -> list[str]: ...

    @property
    def physical_partition_columns(self) -> tuple[str, ...]: ...

    def live_files(self) -> LiveFiles: ...

    def select_files(self, keep: FileFilter) -> LiveFiles: ...

    @property
    def statistics_count_nan(self) -> bool: ...
