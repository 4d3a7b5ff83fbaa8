"""A folder of its own for what is written, below one that the user gives; it goes when the work is done, or fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from delta_ds.kernel.log.filenames import LOG_DIRECTORY
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import BENCH_FILES
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage

PREFIX = "pydelta-bench-"


@contextmanager
def scratch_folder(place: str, options: dict[str, str], table: Storage | None) -> Iterator[str]:
    """The address of a new folder.

    Parameters
    ----------
    place
        Where it is made: a folder that is there, or a URL.
    table
        The table that is measured; None: none.

    Raises
    ------
    typer.BadParameter
        The place is no folder, or belongs to a table.
    StorageError
        Something in the folder could not be deleted afterwards.
    """
    parent = open_storage(place, options)
    _check_place(parent, table)
    name = f"{PREFIX}{os.urandom(8).hex()}"
    try:
        yield f"{place.rstrip('/')}/{name}"
    finally:
        deleter.delete_below(parent, BENCH_FILES, name)


def _check_place(place: Storage, table: Storage | None) -> None:
    if place.address.scheme == "file" and not os.path.isdir(place.address.path):
        raise typer.BadParameter(f"{place.url} is no folder", param_hint="--scratch")
    owner = table.url if table is not None and _lies_in(place, table) else _table_around(place)
    if owner is not None:
        raise typer.BadParameter(
            f"{place.url} belongs to the table {owner}, which nothing is written to: give another folder",
            param_hint="--scratch",
        )


def _lies_in(place: Storage, table: Storage) -> bool:
    inner, outer = (f"{storage.url.rstrip('/')}/" for storage in (place, table))
    return inner.startswith(outer)


def _table_around(place: Storage) -> str | None:
    if place.exists(LOG_DIRECTORY):
        return place.url
    if place.address.scheme == "file":
        folder = os.path.realpath(place.address.path)
        while folder != os.path.dirname(folder):
            if os.path.isdir(os.path.join(folder, LOG_DIRECTORY)):
                return folder
            folder = os.path.dirname(folder)
    return None
