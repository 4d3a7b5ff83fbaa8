"""The one spelling of a table's address by which a coordinator tells locations apart."""

from __future__ import annotations

import os

from delta_ds.kernel.storage.uri import Address, parse_address


def canonical_location(location: str) -> str:
    """An address in one spelling: a local path is absolute and without links, schemes of one store are one.

    Raises
    ------
    StorageError
        It is empty or malformed.
    """
    address = parse_address(location)
    if address.scheme == "file":
        return os.path.realpath(address.path)
    return str(Address(address.scheme, address.authority, address.path))
