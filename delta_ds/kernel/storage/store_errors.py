"""What errors of stores come to: no such bucket, no or wrong credentials, no permission, no network.

Each client says it in its own way, and wraps what the store said. The whole chain of an error is looked at.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from delta_ds.conditions.record import ErrorCondition
from delta_ds.conditions.storage import (
    ACCESS_DENIED,
    BUCKET_NOT_FOUND,
    CREDENTIALS_EXPIRED,
    INVALID_CREDENTIALS,
    NO_CREDENTIALS,
    TLS_FAILED,
    UNREACHABLE,
    WRONG_REGION,
)
from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage.uri import Address
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from delta_ds.kernel.storage.remote_files import Filesystem

# --- messages of failed writes: what, where, why, what is there now, and what to do

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


# --- waiting times between attempts

_FIRST = 0.05  # seconds
_LONGEST = 2.0

_sleep = time.sleep


def pause(attempt: int) -> None:
    """Wait longer with each attempt (0, 1, ...), by chance, so that rivals do not meet again."""
    import random

    _sleep(random.uniform(0, min(_LONGEST, _FIRST * 2.0**attempt)))


# --- what errors of stores come to: no such bucket, no or wrong credentials, no permission, no network

Condition = ErrorCondition[StorageError]

# What stores answer.
_CODES: dict[str, Condition] = {
    **dict.fromkeys(("NoSuchBucket", "ContainerNotFound", "FilesystemNotFound"), BUCKET_NOT_FOUND),
    **dict.fromkeys(
        (
            "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSecurity", "InvalidToken", "InvalidClientTokenId",
            "UnrecognizedClientException", "AuthenticationFailed", "InvalidAuthenticationInfo", "InvalidTokenId",
        ),
        INVALID_CREDENTIALS,
    ),
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"), CREDENTIALS_EXPIRED),
    **dict.fromkeys(
        (
            "AccessDenied", "AllAccessDisabled", "AccountProblem", "AuthorizationFailure", "AccessDeniedException",
            "AuthorizationPermissionMismatch", "InsufficientAccountPermissions", "PublicAccessNotPermitted",
        ),
        ACCESS_DENIED,
    ),
    **dict.fromkeys(
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"), WRONG_REGION
    ),
}  # fmt: skip
_SAYS_LESS_THAN_TEXT = frozenset({"AuthorizationFailure", "AuthenticationFailed"})
# What clients raise before they ask, by the names of their classes.
_TYPES: dict[str, Condition] = {
    **dict.fromkeys(
        (
            "NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "CredentialRetrievalError",
            "DefaultCredentialsError", "CredentialUnavailableError", "NoAuthTokenError", "UnauthorizedSSOTokenError",
        ),
        NO_CREDENTIALS,
    ),
    "RefreshError": INVALID_CREDENTIALS,
    **dict.fromkeys(("SSLError", "ClientConnectorSSLError", "ClientConnectorCertificateError"), TLS_FAILED),
    **dict.fromkeys(
        (
            "EndpointConnectionError", "ConnectTimeoutError", "ClientConnectorError", "ClientConnectorDNSError",
            "ConnectTimeout", "NewConnectionError", "NameResolutionError",
        ),
        UNREACHABLE,
    ),
}  # fmt: skip
# Parts of texts, where neither code nor class says it.
_TEXTS: tuple[tuple[str, Condition], ...] = (
    ("Signature not valid in the specified time frame", CREDENTIALS_EXPIRED),
    ("Server failed to authenticate the request", INVALID_CREDENTIALS),
    ("Signature did not match", INVALID_CREDENTIALS),
    ("HTTP request to an HTTPS server", TLS_FAILED),
    ("plain HTTP request was sent to HTTPS port", TLS_FAILED),
    ("Anonymous caller does not have", NO_CREDENTIALS),
    ("failed to retrieve a token from the included credentials", NO_CREDENTIALS),
    ("Token has expired", CREDENTIALS_EXPIRED),
    ("AADSTS", INVALID_CREDENTIALS),
)
_STATUSES: dict[int, Condition] = {401: INVALID_CREDENTIALS, 403: ACCESS_DENIED, 301: WRONG_REGION}
# S3 answers so to requests that it refuses, those with an expired token among them; an answer to HEAD says no more.
_REFUSED = 400

_HOW = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or fs.s3a.access.key and fs.s3a.secret.key",
    "abfs": "AZURE_STORAGE_ACCOUNT_KEY, azure_storage_sas_token, or azure_client_id with azure_client_secret",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or fs.gs.auth.service.account.json.keyfile",
}
_KINDS = {"abfs": "container"}
_OTHER_SCHEME = "one side speaks http and the other https: correct the scheme of its address"
_NOT_TRUSTED = "its certificate is not trusted: set SSL_CERT_FILE, AWS_CA_BUNDLE or REQUESTS_CA_BUNDLE"
_LONGEST_REASON = 300


class BucketMissingError(Exception):
    """The store has no such bucket, though its client only says that it found nothing."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a store did not do what it was asked.

    Attributes
    ----------
    condition
        The error condition.
    reason
        The client's or the store's own words, in one line; they may hold secrets.
    plain
        Whether it was the bare status of an answer without a body, behind which several causes may stand.
    """

    condition: Condition
    reason: str
    plain: bool = False

    def error(
        self,
        address: Address,
        path: str,
        verb: str,
        store: str,
        hide: Callable[[str], str],
        outcome: str = "",
    ) -> StorageError:
        """The error that says so.

        Parameters
        ----------
        address, store
            Of the table, and of the server as far as it is known.
        path, verb
            What could not be read, written or deleted.
        hide
            Takes secrets out of a text.
        outcome
            What may have happened all the same.
        """
        mismatch = "WRONG_VERSION" in self.reason or "HTTP request" in self.reason
        found = self.condition(
            verb=verb,
            path=path,
            kind=_KINDS.get(address.scheme, "bucket"),
            bucket=address.authority.rpartition("@")[0] or address.authority,
            store=hide(store) or f"the store of {address.scheme}://{address.authority}",
            how=_HOW.get(address.scheme, "options of the store"),
            advice=_OTHER_SCHEME if mismatch else _NOT_TRUSTED,
            # Cut after that: a part of a secret would not be known again.
            reason=hide(self.reason)[:_LONGEST_REASON],
        )
        if not outcome:
            return found
        return StorageError(
            f"{found.text}; {outcome}", condition=found.condition, parameters=found.parameters
        )


def raise_alone(error: Exception) -> NoReturn:
    """Raise an error that leads to no other: what it was made of may hold what its own text does not."""
    try:
        raise error from None
    finally:
        # `from None` only keeps it from being printed.
        error.__context__ = None


def problem_of(error: BaseException) -> Problem | None:
    """What an error comes to; None where it is none of these."""
    parts = list(_chain(error))
    for look in (_by_code, _by_class, _by_text, _by_status):
        for part in parts:
            condition = look(part)
            if condition is not None:
                return Problem(condition, one_line(part), plain=look is _by_status)
    return None


def is_bare_refusal(error: BaseException) -> bool:
    """Whether a store has refused a request in an answer without a body, which does not say why."""
    return problem_of(error) is None and any(_status(part) == _REFUSED for part in _chain(error))


def one_line(error: BaseException) -> str:
    """The first line of an error's text, behind the name of its class."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # gcsfs says in the second one what the store said.
    words = " ".join(lines[:2] if lines and lines[0].startswith("Forbidden") else lines[:1])
    return f"{type(error).__name__}: {words}".removesuffix(": ")


def require_bucket(scheme: str, fs: Filesystem, located: str) -> None:
    """Raise if what was looked for is not there because its bucket is not.

    For clients that do not tell the one from the other. Who may not list the bucket gets no answer here.

    Raises
    ------
    BucketMissingError
        There is no such bucket.
    """
    bucket = located.strip("/").partition("/")[0]
    ask = _ASKED.get(scheme)
    if ask is not None and ask(fs, bucket):
        raise BucketMissingError(f"the store has no {bucket!r}")


def asked_again(scheme: str, fs: Filesystem, located: str) -> Problem | None:
    """Ask S3 in a way that it answers with a reason: it gives none for the existence of an object."""
    if scheme != "s3":
        return None
    bucket, _, key = located.partition("/")
    try:
        fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=key, MaxKeys=1)
    except Exception as error:
        return problem_of(error)
    return None


def _missing_on_google(fs: Filesystem, bucket: str) -> bool:
    try:
        fs.call("GET", "b/{}/o", bucket, maxResults=1, json_out=True)
    except FileNotFoundError:
        return True
    except Exception:
        return False  # not allowed to list: no answer
    return False


def _missing_on_azure(fs: Filesystem, container: str) -> bool:
    from fsspec.asyn import sync  # type: ignore[import-untyped,unused-ignore]

    async def first_page() -> None:
        async with fs.service_client.get_container_client(container) as client:
            async for _ in client.list_blob_names(results_per_page=1).by_page():
                return

    try:
        sync(fs.loop, first_page)
    except Exception as error:
        found = problem_of(error)
        return found is not None and found.condition is BUCKET_NOT_FOUND
    return False


_ASKED: dict[str, Callable[[Filesystem, str], bool]] = {"gs": _missing_on_google, "abfs": _missing_on_azure}


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        error = error.__cause__ or error.__context__


def _by_code(error: BaseException) -> Condition | None:
    if isinstance(error, BucketMissingError):
        return BUCKET_NOT_FOUND
    response = getattr(error, "response", None)
    code = (
        response.get("Error", {}).get("Code")
        if isinstance(response, dict)
        else getattr(error, "error_code", None)
    )
    text = str(getattr(code, "value", code))
    # Azurite says of wrong keys what Azure says of missing permissions, and Azure of old signatures what of wrong keys.
    return None if text in _SAYS_LESS_THAN_TEXT and _by_text(error) else _CODES.get(text)


def _by_class(error: BaseException) -> Condition | None:
    import socket
    import ssl

    if isinstance(error, ssl.SSLError):
        return TLS_FAILED
    if isinstance(error, (socket.gaierror, ConnectionRefusedError)):
        return UNREACHABLE
    name = type(error).__name__
    if name == "ClientConnectorError" and isinstance(error.__cause__, ssl.SSLError):
        return TLS_FAILED
    return _TYPES.get(name)


def _by_text(error: BaseException) -> Condition | None:
    text = str(error)
    return next((condition for part, condition in _TEXTS if part in text), None)


def _by_status(error: BaseException) -> Condition | None:
    status = _status(error)
    return None if status is None else _STATUSES.get(status)


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    status: Any
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
    if isinstance(error, OSError) and str(error).startswith("Forbidden"):  # as gcsfs has it
        status = 403
    return status if isinstance(status, int) else None
