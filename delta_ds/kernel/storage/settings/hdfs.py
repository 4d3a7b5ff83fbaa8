"""Settings of HDFS: its client reads Hadoop's own files, so nothing of these is an option."""

from __future__ import annotations

from typing import Any

from delta_ds.kernel.storage.settings.record import Refused, Setting
from delta_ds.kernel.storage.uri import Address

SETTINGS: tuple[Setting, ...] = ()

REFUSED = (
    Refused(
        r"(dfs|hadoop\.security|hadoop\.rpc)\..*|fs\.(hdfs|defaultfs).*",
        "HDFS is asked as core-site.xml and hdfs-site.xml in HADOOP_CONF_DIR say; put it there",
        in_session=False,
    ),
)


def complete(options: dict[str, Any], address: Address) -> None:
    """Nothing to do."""
