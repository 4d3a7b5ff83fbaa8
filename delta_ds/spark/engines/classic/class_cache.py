"""Java classes that were compiled in an earlier session, kept on disk for the next one of the same user.

Compiling is most of what `register` costs. An entry is of its texts, of one Java, and of the class path of the driver:
every file in it with its size and time, since what a text is compiled to depends on Spark's classes. Entries lie in the
folder of the snapshot cache, which is this user's alone (0700) or not used, and are read only if their hash is right.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from delta_ds.events.spark import COMPILED_CLASSES_IGNORED, COMPILED_CLASSES_NOT_KEPT
from delta_ds.kernel.log.cache import cache_folder

if TYPE_CHECKING:
    from delta_ds.spark.base.kinds.java_object import JavaObject

_FORMAT = b"1"
_FOLDER = "classes"
_MOST_ENTRIES = 64
_ENTRY = re.compile(r"[0-9a-f]{64}\.classes")
_HASH_BYTES = hashlib.sha256().digest_size

_platforms: WeakKeyDictionary[JavaObject, str | None] = WeakKeyDictionary()
_looking = threading.Lock()


def compiled(
    jvm: JavaObject,
    gateway: JavaObject,
    texts: Mapping[str, str],
    compile_them: Callable[[], Mapping[str, bytes]],
) -> dict[str, bytes]:
    """The classes of some texts: those that are kept, or else new ones, which are kept from now on.

    Parameters
    ----------
    jvm, gateway
        See `Jvm`.
    texts
        By the names of their files.
    compile_them
        Compiles them, and gives the classes' code by name. What it raises is raised.

    Returns
    -------
    dict
        From the name of a class to its code, with the names that `compile_them` gives.
    """
    file = _file_of(jvm, gateway, texts)
    kept = None if file is None else _read(file)
    if kept is not None:
        return kept
    made = {str(name): bytes(code) for name, code in compile_them().items()}
    if file is not None:
        _write(file, made)
    return made


def _file_of(jvm: JavaObject, gateway: JavaObject, texts: Mapping[str, str]) -> Path | None:
    """Where the classes of the texts are kept; None where none are."""
    folder = cache_folder()
    platform = None if folder is None else _platform(jvm, gateway)
    if folder is None or platform is None:
        return None
    described = json.dumps([platform, sorted(texts.items())])
    return folder / _FOLDER / f"{hashlib.sha256(described.encode()).hexdigest()}.classes"


def _platform(jvm: JavaObject, gateway: JavaObject) -> str | None:
    """What classes are compiled against; None if the driver's class path is not to be seen from here."""
    with _looking:
        if gateway not in _platforms:
            asked = jvm.java.lang.System.getProperty
            path = str(asked("java.class.path")).split(str(asked("path.separator")))
            _platforms[gateway] = _described(str(asked("java.version")), path)
        return _platforms[gateway]


def _described(java: str, class_path: list[str]) -> str | None:
    try:
        seen = [_seen(entry) for entry in class_path]
    except FileNotFoundError:  # a driver on another machine, or a jar that goes while we look
        return None
    return hashlib.sha256(json.dumps([_FORMAT.decode(), java, seen]).encode()).hexdigest()


def _seen(entry: str) -> list[str | int]:
    if not entry.endswith(".jar") and not os.path.exists(entry):
        return [entry]  # such as the folder of settings, which need not be there
    status = os.stat(entry)
    return [entry, status.st_size, status.st_mtime_ns]


def _read(file: Path) -> dict[str, bytes] | None:
    try:
        data = file.read_bytes()
        body = data[_HASH_BYTES:]
        if hashlib.sha256(_FORMAT + body).digest() != data[:_HASH_BYTES]:
            raise ValueError("its content is damaged")
        os.utime(file)
        return {name: base64.b64decode(code) for name, code in json.loads(body).items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        COMPILED_CLASSES_IGNORED.log(file=file, reason=error)
        return None


def _write(file: Path, classes: Mapping[str, bytes]) -> None:
    """Keep classes; a failure is logged and otherwise of no matter."""
    body = json.dumps({name: base64.b64encode(code).decode() for name, code in classes.items()}).encode()
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".entry-", dir=file.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(hashlib.sha256(_FORMAT + body).digest() + body)
            os.replace(temporary, file)
        except BaseException:
            os.unlink(temporary)
            raise
        _forget_old(file.parent)
    except OSError as error:
        COMPILED_CLASSES_NOT_KEPT.log(file=file, reason=error)


def _forget_old(folder: Path) -> None:
    """Delete the least recently used entries but some."""
    entries = [entry for entry in folder.glob("*.classes") if _ENTRY.fullmatch(entry.name)]
    entries.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
    for entry in entries[_MOST_ENTRIES:]:
        entry.unlink(missing_ok=True)
