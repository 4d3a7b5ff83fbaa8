"""Settings of HDFS: Hadoop's own, as they stand, since the names of nameservices are parts of theirs.

What is not given is read from `core-site.xml` and `hdfs-site.xml` in `HADOOP_CONF_DIR`.
"""

from __future__ import annotations

import re
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
    return name.startswith(_PREFIXES) or name.lower() == _DEFAULT.lower()


def settings_of_hdfs(
    properties: Mapping[str, str], given: Mapping[str, Any], is_default: Callable[[str], bool]
) -> dict[str, str]:
    """See `translate.settings_of_session`. A default filesystem that is another store says nothing of HDFS."""
    taken = {name.lower() for name in given}
    found = {
        name: value
        for name, value in properties.items()
        if is_hdfs_setting(name) and name.lower() not in taken and value.strip() and not is_default(name)
    }
    if not found.get(_DEFAULT, "").startswith("hdfs:"):
        found.pop(_DEFAULT, None)
    return found


def complete(options: dict[str, Any], address: Address) -> None:
    """Give names the case that Hadoop knows them in: Spark hands options to Python's processes in lower case.

    Nameservices and namenodes end the names of their settings, and stand in values as they are written.
    """
    words = {_DEFAULT.lower(): _DEFAULT}
    for name, value in options.items():
        if name == "dfs.nameservices" or name.startswith("dfs.ha.namenodes."):
            words.update({word.lower(): word for word in re.split(r"[,\s]+", str(value)) if word})
    for name in list(options):
        cased = words.get(name) or _with_words(name, words)
        if cased != name:
            value = options.pop(name)
            options.setdefault(cased, value)


def _with_words(name: str, words: Mapping[str, str]) -> str:
    if not name.startswith("dfs."):
        return name
    head, *tail = name.rsplit(".", 2)
    return ".".join([head, *(words.get(word, word) for word in tail)])
