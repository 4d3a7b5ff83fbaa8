"""What may be secret, and how no text shows it: by its name or place in a text, and by its value in every spelling.

`safe_addresses` is for texts of this package, which name addresses; `redacted` for those of others, which may quote
anything; `without` takes out values that are known. Imported by whoever makes a text: most processes make none.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

HIDDEN = "***"
_LONG = 12  # parts of shorter ones might be parts of other words
_SHORTEST = 3  # to replace shorter texts would garble a message and hide nothing


# --- by name and place

# Not a Windows drive, and no scheme of which what stands before the `@` is no login.
_SCHEME = r"\b(?P<scheme>(?!file:)[a-z][a-z0-9+.-]+:/{1,3})"
# Of a login `user:password@` the password may hold slashes that should have been encoded, and is no port.
_LOGIN = rf"{_SCHEME}(?P<login>[^\s/'\"`<>@:\[]*:(?!\d+(?:[/?#,;\s'\"`)\]}}]|\Z))[^\s'\"`<>@]*@(?:[^\s/'\"`<>@]*@)*)"
_USER = (
    r"\b(?P<open>(?!(?:abfss?|wasbs?|adl|az|azure|hdfs|viewfs|har|file):)[a-z][a-z0-9+.-]+://)"
    r"(?P<user>[^\s/'\"`<>@:?#]+)@"
)
_VALUE = r"(?P<{}>[^\s&;,'\"`<>)\]}}\\]+)"
# Parameters of signed addresses and parts of connection strings, wherever they stand.
_SIGNED = (
    r"(?P<signed>x-(?:amz|goog)-(?:signature|credential|security-token)|sharedaccesskey|accountkey"
    r"|sharedaccesssignature|awsaccesskeyid|sas[_-]?token|access[_-]token)(?P<is>=|%3d)"
) + _VALUE.format("signature")
# Shorter names, which are words of other things as well, where an address has its parameters.
_PARAMETER = (
    r"(?P<before>[?&;]|%3f|%26|%3b)(?P<parameter>sig|signature|token|delegation|key|code|secret|client_secret"
    r"|passw(?:or)?d|pwd)(?P<equals>=|%3d)"
) + _VALUE.format("value")
_BARE_SIGNATURE = r"\b(?P<bare>sig=)(?:[^\s&;,'\"`<>)\]}]{16,}|[^\s&;,'\"`<>)\]}]+(?=&))"
_HEADER = (
    r"(?P<header>\bauthorization\b['\"]?\s*[:=]\s*b?['\"]?\s*(?:[\w-]+\s+)?)"
    r"[^\s,;'\"]+(?:,\s*\w+=[^\s,;'\"]+)*"
)
_BEARER = r"(?P<bearer>\b(?:bearer|basic)\s+)(?=\S*[\d=._-])(?P<ticket>[\w.~+/=-]{8,})"
_PRIVATE = r"-----BEGIN (?P<kind>[A-Z ]*PRIVATE KEY)-----.*?(?:-----END (?P=kind)-----|\Z)"
# What follows such a name is nobody's business, in whatever somebody else's text.
_NAMED = (
    r"(?P<name>(?:\b|_)[\w.-]*(?:secret|token|passw(?:or)?d|passphrase|account[._-]?key|access[._-]?key|master[._-]?key"
    r"|private[._-]?key|encryption[._-]?key|customer[._-]?key|shared[._-]?key|api[._-]?key|sas[._-]?key|signature"
    r"|credential|connection[._-]?string|delegation)[\w.-]*|\bsig|\bpwd)"
    r"(?P<so>\"?'?\s*(?:[=:]|->)\s*)(?:b?(?P<quote>[\"'])(?:\\.|(?!(?P=quote)).)*(?P=quote)|[^\s&;,\"'})]+)"
)
_HINT = r"secret|token|passw|pwd|key|sig|credential|authoriz|bearer|basic|delegation|connection"


@functools.cache
def _compiled(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)


def safe_addresses(text: str) -> str:
    """A text without the logins and signatures of the addresses in it.

    >>> safe_addresses("no bucket at s3://AKIA:se/cret@bucket/t and https://host/t?sv=1&sig=abc")
    'no bucket at s3://***@bucket/t and https://host/t?sv=1&sig=***'
    >>> safe_addresses("hdfs://host:8020/t@v5 and abfss://container@account.dfs.core.windows.net/t")
    'hdfs://host:8020/t@v5 and abfss://container@account.dfs.core.windows.net/t'
    """
    if ":/" in text or "@" in text:
        text = _compiled(_LOGIN, _USER).sub(_hide, text)
    if "=" in text or "%3" in text or "PRIVATE" in text:
        text = _compiled(_SIGNED, _PARAMETER, _BARE_SIGNATURE, _PRIVATE).sub(_hide, text)
    return text


def redacted(text: str) -> str:
    """A text of others without passwords, keys, tokens and signatures, as far as names or places tell them.

    >>> redacted("token=abc, Authorization: Bearer x.y.z, client_secret='a b'")
    "token=***, Authorization: Bearer ***, client_secret='***'"
    """
    text = safe_addresses(text)
    if _compiled(_HINT).search(text) is None:
        return text
    return _compiled(_HEADER, _BEARER, _NAMED).sub(_hide, text)


def _hide(match: re.Match[str]) -> str:
    parts = match.groupdict()
    harmless = (
        "scheme",
        "open",
        "signed",
        "is",
        "before",
        "parameter",
        "equals",
        "bare",
        "header",
        "bearer",
        "name",
        "so",
    )
    shown = "".join(parts.get(part) or "" for part in harmless)
    quote = parts.get("quote") or ""
    return f"{shown}{quote}{HIDDEN}{quote}" + ("@" if parts.get("scheme") or parts.get("open") else "")


def safe_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an error, as `safe_addresses` has texts."""
    return {name: _safe(value) for name, value in values.items()}


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return safe_addresses(value)
    if type(value) is dict:
        return {_safe(name): _safe(inner) for name, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_safe, value))
    return value


# --- by value


def without(text: str, secrets: Iterable[str]) -> str:
    """A text without values, as they are, encoded for addresses, escaped as in JSON or Python, or in base64.

    >>> without("denied for a%2Fb%3d and YS9iPQ==", ["a/b="])
    'denied for *** and ***'
    """
    for spelling in sorted({s for secret in secrets for s in _spellings(secret)}, key=len, reverse=True):
        text = _alike(spelling).sub(HIDDEN, text)
    return text


def _spellings(secret: str) -> Iterator[str]:
    from urllib.parse import unquote

    plain = unquote(secret)
    for spelling in dict.fromkeys((secret, plain)):
        if len(spelling) >= _SHORTEST:
            yield spelling
            yield from _in_base64(spelling.encode("utf-8", "surrogatepass"))
    # A key of several lines may be told line by line.
    yield from (line for line in plain.split() if len(line) >= 2 * 8 and line != plain)


def _in_base64(secret: bytes) -> Iterator[str]:
    """Its letters in base64: alone, and where it is the middle of a text, which may begin within three bytes."""
    from base64 import b64encode

    yield b64encode(secret).decode().rstrip("=")
    for before in range(3) if len(secret) >= _LONG else ():
        whole = len(secret) - (3 - before) % 3
        yield b64encode(secret[len(secret) - whole :][: whole // 3 * 3]).decode()


@functools.lru_cache(maxsize=256)
def _alike(secret: str) -> re.Pattern[str]:
    """What may stand for a secret: each of its characters as it is, escaped, or percent-encoded once or twice."""
    return re.compile("".join(map(_character, secret)) + "=*")


def _character(one: str) -> str:
    if one.isalnum() and one.isascii():
        return one
    ways = [re.escape(one), rf"\\{re.escape(one)}"]
    encoded = "".join(f"%{byte:02x}" for byte in one.encode("utf-8", "surrogatepass"))
    ways += [f"(?i:{encoded})", f"(?i:{encoded.replace('%', '%25')})"]
    if one.isspace():
        ways += [r"\s+", r"\\+[nrt]", r"\+"]
    if not (one.isascii() and one.isprintable()):
        ways += [f"(?i:{re.escape(escaped[1:-1])})" for escaped in (ascii(one), json.dumps(one))]
    return f"(?:{'|'.join(ways)})"
