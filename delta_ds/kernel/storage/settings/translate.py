"""What was given for a store, in any vocabulary, to the options of its filesystem.

Options go before settings of the session, these before variables of the environment, and these before what a client
finds by itself: profiles, and the roles of containers and instances.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.storage.settings.hdfs import is_hdfs_setting, settings_of_hdfs
from delta_ds.kernel.storage.settings.record import Refused, Setting, find, put
from delta_ds.kernel.storage.settings.vocabulary import (
    names_java_class,
    owner,
    place,
    unknown_option,
    vocabulary,
)
from delta_ds.kernel.storage.store_options import STORE_OPTIONS, is_cloud_name, is_hadoop_setting
from delta_ds.kernel.storage.uri import Address
from delta_ds.records import dataclass

_OWN = {name.lower(): name for name in STORE_OPTIONS}


@dataclass(frozen=True, slots=True)
class _Value:
    name: str
    value: Any
    special: bool  # for this bucket or account alone


def to_filesystem_options(address: Address, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of fsspec's filesystem, and of this package, that mean the same as what was given.

    What is in these words already stays as it is.

    Raises
    ------
    InvalidOptionError
        A name that is not known or has no counterpart, a value that cannot be, or two names of one setting with
        different values. Values are never named.
    """
    options: dict[str, Any] = {}
    found: dict[tuple[str, ...], _Value] = {}
    account = _account_named(address, given)
    for name, value in given.items():
        if names_java_class(name, value, address):
            continue
        setting = _setting(address, name)
        if value is None:
            continue
        if setting is None:
            _put_plain(options, name, value)
        elif (one := _value(setting, name, value, address)) is not None:
            _agree(found, setting.target, one)
    if account:
        options.setdefault("account_name", account)
    for target, one in found.items():
        there = find(options, target)
        if there is not None and there != one.value:
            raise _twice(".".join(target), one.name)
        put(options, target, one.value)
    for target, one in _from_environment(address, options, credentials=False).items():
        put(options, target, one)
    vocabulary(address.scheme).complete(options, address)
    return options


def with_credentials_of_environment(address: Address, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with credentials that the environment has under names which the store's own client does not know."""
    credentials = _from_environment(address, options, credentials=True)
    if not credentials:
        return dict(options)
    complete = copy.deepcopy(dict(options))
    for target, one in credentials.items():
        put(complete, target, one)
    vocabulary(address.scheme).complete(complete, address)
    return complete


def settings_of_session(
    properties: Mapping[str, str],
    address: Address,
    given: Mapping[str, Any],
    is_default: Callable[[str], bool],
) -> dict[str, str]:
    """Those properties of a session that say how a store is opened, as far as options do not.

    Parameters
    ----------
    properties
        All of Hadoop's, by name.
    address
        The table's.
    given
        The options of the call, in any vocabulary.
    is_default
        Whether a property has Hadoop's own default, which says nothing about what the user wants.

    Raises
    ------
    InvalidOptionError
        The session sets something without a counterpart that decides who asks the store, or what it stores.
    """
    if address.scheme == "hdfs":
        return settings_of_hdfs(properties, given, is_default)
    words = vocabulary(address.scheme)
    taken = {setting.target for name in given if (setting := words.by_name.get(place(name)[0]))}
    named = {_OWN.get(name.lower(), name) for name in given}
    targets = {setting.target for setting in words.by_name.values()}
    taken |= {target for target in targets if target[0] in named}
    taken |= {
        words.nested[key]
        for value in given.values()
        if isinstance(value, Mapping)
        for key in value
        if key in words.nested
    }
    taken |= {target for same in words.same if taken & same for target in same}
    credentials = (
        bool(address.userinfo)
        or any(name.lower() in words.who_asks for name in given)
        or any(s.credential and s.target in taken for s in words.by_name.values())
    )
    settings: dict[tuple[str, ...], tuple[tuple[bool, bool, int], str, str]] = {}
    refused: dict[str, Refused] = {}
    for name, value in properties.items():
        plain, of = place(name)
        if not value.strip() or not _is_for(address, of):
            continue
        refusal = words.refusal(plain)
        if refusal is not None and refusal.in_session and not credentials:
            refused[name] = refusal
        setting = words.by_name.get(plain)
        if (
            setting is None
            or setting.target in taken
            or (setting.credential and credentials)
            or is_default(name)
        ):
            continue
        # As Hadoop looks: what is for this bucket alone first, its own names before others, newer ones before older.
        order = (
            not of,
            plain.startswith("fs.s3a.") and not name.lower().startswith("fs.s3a."),
            setting.hadoop.index(plain) if plain in setting.hadoop else 99,
        )
        if setting.target not in settings or order < settings[setting.target][0]:
            settings[setting.target] = (order, plain, value)
    for name, refusal in refused.items():
        if not is_default(name) and properties[name].strip().lower() != "false":
            raise _refused(name, refusal)
    texts = words.of_session({name: value for _, name, value in settings.values()})
    if any(name.startswith("delta.logstore.") for name in texts):
        return texts
    # An application may name the table for other stores: it is the log store that decides.
    return {name: value for name, value in texts.items() if not name.startswith("io.delta.storage.")}


def names_in_key_stores(address: Address) -> list[str]:
    """The names under which Hadoop looks for secrets of a store in key stores, those of the bucket first."""
    plain = [
        name
        for setting in dict.fromkeys(vocabulary(address.scheme).by_name.values())
        if setting.secret
        for name in setting.hadoop
    ]
    if address.scheme == "s3":
        own = [name.replace("fs.s3a.", f"fs.s3a.bucket.{address.authority}.", 1) for name in plain]
        return [*own, *plain]
    host = address.authority.rpartition("@")[2]
    return [f"{name}.{host}" for name in plain] if host else plain


def _setting(address: Address, name: str) -> Setting | None:
    """The setting of a name; None for the filesystem's own names."""
    if address.scheme == "hdfs" and is_hdfs_setting(name):
        return None
    words = vocabulary(address.scheme)
    plain, _ = place(name)
    setting = words.by_name.get(plain)
    if setting is not None:
        # The filesystem's own name may be a short name of delta-rs as well, with the same meaning.
        return None if setting.target == (name,) else setting
    if plain in _OWN:
        return None
    refusal = words.refusal(plain)
    if refusal is not None:
        raise _refused(name, refusal)
    if is_hadoop_setting(name) or is_cloud_name(name):
        other = owner(plain, address.scheme)
        if other is not None:
            raise InvalidOptionError(
                f"the option {name!r} is for stores of {other}://, and the table is {address}",
                parameters={"option": name},
            )
        raise unknown_option(name, words.by_name, f"stores of {address.scheme}:// take")
    return None


def _put_plain(options: dict[str, Any], name: str, value: Any) -> None:
    name = _OWN.get(name.lower(), name)
    if name in options and options[name] != value:
        raise _twice(name, name)
    options[name] = copy.deepcopy(value) if isinstance(value, dict) else value


def _value(setting: Setting, name: str, value: Any, address: Address) -> _Value | None:
    of = place(name)[1]
    if not _is_for(address, of):
        return None
    try:
        parsed = value if isinstance(value, dict) else setting.parse(str(value))
    except ValueError as error:
        shown = "" if setting.credential else f" {str(value)!r}"
        raise InvalidOptionError(
            f"invalid value{shown} for the storage option {name!r}: {error}", parameters={"option": name}
        ) from None
    return _Value(name, parsed, bool(of))


def _account_named(address: Address, given: Mapping[str, Any]) -> str:
    """The account that an address such as az://container/table leaves out and settings of Hadoop name; else empty."""
    if address.scheme != "abfs" or "@" in address.authority:
        return ""
    accounts = sorted({of for name in given if (of := place(name)[1])})
    if len(accounts) > 1:
        raise InvalidOptionError(
            f"{address} names no account, and the options name several: {', '.join(accounts)}; use "
            "abfss://container@account.dfs.core.windows.net/path",
            parameters={"option": "account_name"},
        )
    return accounts[0] if accounts else ""


def _agree(values: dict[tuple[str, ...], _Value], target: tuple[str, ...], one: _Value) -> None:
    before = values.get(target)
    if before is None or (one.special and not before.special):
        values[target] = one
    elif before.value != one.value and before.special == one.special:
        raise _twice(before.name, one.name)


def _is_for(address: Address, of: str) -> bool:
    """Whether a setting of a bucket or account is for this address; one without an account is for any."""
    if not of:
        return True
    if address.scheme == "abfs":
        account = (
            address.authority.rpartition("@")[2].partition(".")[0].lower() if "@" in address.authority else ""
        )
        return account in ("", of)
    return address.authority.lower() == of


def _from_environment(
    address: Address, options: Mapping[str, Any], *, credentials: bool
) -> dict[tuple[str, ...], Any]:
    settings: Iterable[Setting] = dict.fromkeys(vocabulary(address.scheme).by_name.values())
    if credentials and any(s.credential and find(options, s.target[:1]) is not None for s in settings):
        return {}
    values: dict[tuple[str, ...], Any] = {}
    for setting in settings:
        is_set = find(options, setting.target) is not None or any(
            key in options for key in setting.settled_by
        )
        if setting.credential != credentials or is_set:
            continue
        for variable in setting.environment:
            text = os.environ.get(variable, "")
            if text.strip():
                one = _value(setting, variable, text, address)
                if one is not None:
                    values.setdefault(setting.target, one.value)
    return values


def _twice(name: str, other: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"{name!r} and {other!r} mean the same and have different values; give one of them",
        parameters={"option": name, "other": other},
    )


def _refused(name: str, refusal: Refused) -> InvalidOptionError:
    return InvalidOptionError(
        f"the setting {name!r} has no counterpart here: {refusal.why}", parameters={"option": name}
    )
