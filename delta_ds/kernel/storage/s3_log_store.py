"""The log store of tables on S3: conditional puts, and a look for writers who decide commits in another way.

Those who ask DynamoDB leave temporary commits in the log. Old versions of this package and delta-spark then put commits
in their places unconditionally, over what is there: they cannot be kept from it here, but they can be named.
"""

from __future__ import annotations

from delta_ds.events.storage import DYNAMODB_NOT_LOOKED_FOR, DYNAMODB_WRITERS_FOUND
from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import ConditionalLogStore

_TEMPORARY = "_delta_log/.tmp"

_looked_at: set[str] = set()


class S3LogStore(ConditionalLogStore):
    """Publishes by conditional puts; at the first commit to a table in a process it looks for other writers."""

    def publish(self, version: int, data: bytes) -> None:
        if self.storage.url not in _looked_at:
            _looked_at.add(self.storage.url)
            _look_for_dynamodb(self.storage, version)
        super().publish(version, data)


def _look_for_dynamodb(storage: Storage, version: int) -> None:
    """Tell of commits that others are making by DynamoDB, or have made last. Older ones may be of times gone by."""
    try:
        found = storage.list_from(_TEMPORARY, f"{max(version - 1, 0):020}.json.")
    except FileNotFoundError:
        return
    except StorageError as error:
        # The commit does not depend on it: who may not list here commits all the same.
        DYNAMODB_NOT_LOOKED_FOR.log(table=storage.url, reason=error)
        return
    if found:
        DYNAMODB_WRITERS_FOUND.log(table=storage.url, path=found[-1].path)
