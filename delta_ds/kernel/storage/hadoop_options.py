"""Which names are settings of stores, told from other options: Hadoop's, delta-storage's, delta-rs' and the clouds'."""

from __future__ import annotations

import re

_BROKER = "io.delta.storage.s3dynamodblogstore."
_LOG_STORE = re.compile(r"delta\.logstore\.s3[an]?\.impl")
_HADOOP = ("fs.", "google.cloud.auth.", "dfs.", "hadoop.")
_CLOUDS = ("aws_", "azure_", "google_", "delta_dynamo_")
_WHOLE = frozenset({"allow_http", "allow_invalid_certificates"})


def is_hadoop_setting(name: str) -> bool:
    """Whether an option's name is a setting of Hadoop's file systems or delta-storage's log stores."""
    folded = name.lower()
    if folded.startswith(_HADOOP):
        return True
    plain = folded.removeprefix("spark.")
    return plain.startswith(_BROKER) or _LOG_STORE.fullmatch(plain) is not None


def is_cloud_name(name: str) -> bool:
    """Whether an option has a name that delta-rs and the clouds' own tools use, such as `AWS_ACCESS_KEY_ID`."""
    folded = name.lower()
    return folded.startswith(_CLOUDS) or folded in _WHOLE


def name_patterns(*more: str) -> tuple[str, str]:
    """Regular expressions, also Java's, of all these names, and of what a text has that may hold some.

    Parameters
    ----------
    more
        Beginnings of further names.
    """
    beginnings = [re.escape(one) for one in (*_HADOOP, *_CLOUDS, *more)]
    delta = [rf"(?:spark\.)?{re.escape(_BROKER)}", rf"(?:spark\.)?{_LOG_STORE.pattern}"]
    whole = "|".join(map(re.escape, sorted(_WHOLE)))
    begun = "|".join([*beginnings, delta[0]])
    return rf"(?is)(?:{begun}).*|{delta[1]}|{whole}", rf"(?i)(?<![\w.])(?:{begun}|{delta[1]}|{whole})"
