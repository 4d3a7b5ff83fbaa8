"""Messages of failed writes: what, where, why, what is there now, and what to do."""

from __future__ import annotations

import errno

from delta_ds.exceptions import StorageError

NOTHING_WRITTEN = "nothing was written"
NOTHING_COMMITTED = "nothing was committed"
NOT_REFERENCED = "the file is not complete and no version of the table refers to it"

# Advice by the operating system's error number, where there is more to say than its own text.
_ADVICE = {
    errno.ENOSPC: "free space on the device, then run it again",
    errno.EDQUOT: "the quota of the user is used up: free space, then run it again",
    errno.EACCES: "give this user write permission on the folder",
    errno.EPERM: "give this user write permission on the folder",
    errno.EROFS: "the filesystem is mounted read-only: mount it for writing, or write somewhere else",
    errno.EMFILE: "this process has too many open files: raise its limit (ulimit -n)",
    errno.ENFILE: "this machine has too many open files",
    errno.ENAMETOOLONG: "use a shorter path",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EIO: "the device reports an error: check it before anything else is written",
}


def cannot_write(address: str, error: BaseException, outcome: str = NOTHING_WRITTEN) -> StorageError:
    """The error to raise for an operating system's error.

    Parameters
    ----------
    address
        What was to be written, without credentials.
    error
        What the operating system said.
    outcome
        What is there now, in half a sentence.
    """
    number = getattr(error, "errno", None)
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    advice = _ADVICE.get(number or 0)
    text = f"cannot write {address}: {reason}; {outcome}"
    return StorageError(
        f"{text}; {advice}" if advice else text, parameters={"path": address, "errno": number}
    )
