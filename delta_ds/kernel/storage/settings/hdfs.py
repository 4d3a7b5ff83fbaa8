"""Settings of HDFS: Hadoop's own, as they stand, since the names of nameservices are parts of theirs.

What is not given is read from `core-site.xml` and `hdfs-site.xml` in `HADOOP_CONF_DIR`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from delta_ds.kernel.storage.settings.record import Refused, Setting
from delta_ds.kernel.storage.uri import Address

# What hdfs-native takes beside settings of Hadoop.
LOGIN = ("kerberos_principal", "kerberos_keytab", "kerberos_cache")

_PREFIXES = ("dfs.", "hadoop.security.", "hadoop.rpc.")
_DEFAULT = "fs.defaultFS"

SETTINGS: tuple[Setting, ...] = ()

REFUSED: tuple[Refused, ...] = ()


def is_hdfs_setting(name: str) -> bool:
    """Whether a name is one of a client of HDFS; names of nameservices in it keep their case."""
    return name.startswith(_PREFIXES) or name == _DEFAULT


def settings_of_hdfs(
    properties: Mapping[str, str], given: Mapping[str, Any], is_default: Callable[[str], bool]
) -> dict[str, str]:
    """See `translate.settings_of_session`. A default filesystem that is another store says nothing of HDFS."""
    found = {
        name: value
        for name, value in properties.items()
        if is_hdfs_setting(name) and name not in given and value.strip() and not is_default(name)
    }
    if not found.get(_DEFAULT, "").startswith("hdfs:"):
        found.pop(_DEFAULT, None)
    return found


def complete(options: dict[str, Any], address: Address) -> None:
    """Nothing to do."""
