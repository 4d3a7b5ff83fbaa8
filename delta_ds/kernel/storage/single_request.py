"""Conditional puts as one request each: clients of stores repeat requests on their own, and then know too little.

A refusal of the third request says nothing of the first, which may have been done and its answer lost, or may still be
on its way. So nobody repeats a request here but who judges every answer: `RemoteStorage.create` and the log store.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delta_ds.kernel.storage.fsspec_types import Filesystem

_once: ContextVar[bool] = ContextVar("delta_ds_once", default=False)
_HOOK = "delta-ds-once"


def put_s3(fs: Filesystem, path: str, data: bytes) -> None:
    """`PutObject` with `If-None-Match: *` through s3fs."""
    from fsspec.asyn import sync  # type: ignore[import-untyped,unused-ignore]

    # Not `pipe_file`: older s3fs do not know its `mode` and would overwrite.
    bucket, key, _ = fs.split_path(path)
    sync(fs.loop, _put_s3, fs, {"Bucket": bucket, "Key": key, "Body": data, "IfNoneMatch": "*"})
    fs.invalidate_cache(path)


async def _put_s3(fs: Filesystem, request: dict[str, Any]) -> None:
    await fs.set_session()
    client = await fs.get_s3(request["Bucket"])
    client.meta.events.register_first("needs-retry.s3.PutObject", _end_at_once, unique_id=_HOOK)
    token = _once.set(True)
    try:
        await client.put_object(**fs._get_s3_method_kwargs(client.put_object, **request))
    finally:
        _once.reset(token)


def _end_at_once(
    response: Any = None, caught_exception: Exception | None = None, operation: Any = None, **_: Any
) -> None:
    """Botocore asks whether to repeat: raise instead, but where S3 says that the bucket lives elsewhere."""
    if not _once.get():
        return
    if caught_exception is not None:
        raise caught_exception
    answer, parsed = response
    if answer.status_code >= 500 or answer.status_code in (408, 429):
        from botocore.exceptions import ClientError  # type: ignore[import-untyped,unused-ignore]

        raise ClientError(parsed, operation.name)


def put_gs(fs: Filesystem, path: str, data: bytes) -> None:
    """An upload with `ifGenerationMatch=0` through gcsfs."""
    request = getattr(fs._request, "__wrapped__", None)
    if request is None:  # a gcsfs that repeats in another way
        fs.pipe_file(path, data, mode="create")
        return
    from fsspec.asyn import sync  # type: ignore[import-untyped,unused-ignore]

    # The same filesystem but for its requests, which are not repeated.
    once = object.__new__(type(fs))
    once.__dict__.update(fs.__dict__, _request=request.__get__(once))
    sync(fs.loop, once._pipe_file, path, data, mode="create")


def put_azure(fs: Filesystem, path: str, data: bytes) -> None:
    """Put Blob with `If-None-Match: *` through adlfs."""
    fs.pipe_file(path, data, overwrite=False, retry_total=0)
