"""Settings of Google Cloud Storage."""

from __future__ import annotations

from typing import Any

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.storage import store_options as own
from delta_ds.kernel.storage.settings.record import Refused, Setting, flag, seconds
from delta_ds.kernel.storage.uri import Address

_ACCOUNT = ("fs.gs.auth.service.account.", "google.cloud.auth.service.account.")
_TYPE = "fs.gs.auth.type"
_WAY_OUT = "give fs.gs.auth.service.account.json.keyfile, or GOOGLE_APPLICATION_CREDENTIALS"


def _account(name: str) -> tuple[str, ...]:
    return tuple(prefix + name for prefix in _ACCOUNT)


def _json(text: str) -> dict[str, Any]:
    from delta_ds.kernel.base.json_text import parse_json

    try:
        found = parse_json(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError("it is the JSON of a service account's key")
    return found


SETTINGS = (
    Setting(("project",), "project", ("fs.gs.project.id",)),
    Setting(
        ("token",), "file with the key of a service account, `google_default`, `cloud` or `anon`",
        _account("json.keyfile"),
        ("google_service_account", "google_service_account_path", "google_application_credentials"),
        ("service_account", "service_account_path", "application_credentials"), credential=True,
        environment=("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"),
    ),
    Setting(
        ("_key",), "the key of a service account itself, as JSON", (), ("google_service_account_key",),
        ("service_account_key",), _json, credential=True, environment=("GOOGLE_SERVICE_ACCOUNT_KEY",),
    ),
    Setting(("_bearer",), "token of OAuth as it is", (), ("google_bearer_token",), ("bearer_token",), credential=True),
    Setting(
        ("_anon",), "ask without credentials", ("fs.gs.auth.null.enable",), ("google_skip_signature",),
        ("skip_signature",), flag, credential=True,
    ),
    Setting(("_auth", "type"), "where credentials come from", (_TYPE,), credential=True),
    Setting(
        ("_auth", "enable"), "`false`: no service account is used", _account("enable"), parse=flag,
        credential=True
    ),
    Setting(("_auth", "client_email"), "a service account's address", _account("email"), credential=True),
    Setting(("_auth", "private_key_id"), "id of its private key", _account("private.key.id"), credential=True),
    Setting(("_auth", "private_key"), "its private key", _account("private.key"), credential=True),
    Setting(
        ("endpoint_url",), "address of the store", ("fs.gs.storage.root.url",), ("google_base_url",),
        ("base_url", "endpoint"),
        # Hadoop's ends in a slash; to gcsfs it would begin every path, and no bucket would be found.
        lambda text: text.rstrip("/"),
    ),
    Setting(
        ("requester_pays",), "project that pays for requests", ("fs.gs.requester.pays.project.id",),
    ),
    Setting(
        (own.ALLOW_HTTP,), "`false`: refuse an address with http://", (), ("google_allow_http", "allow_http"),
        parse=flag,
    ),
    Setting(
        ("requests_timeout",), "longest time of a request", (), ("google_timeout",),
        parse=seconds,
    ),
)  # fmt: skip

REFUSED = (
    Refused(r"fs\.gs\.auth\.access\.token\.provider(\.impl)?", _WAY_OUT),
    Refused(r"(fs\.gs\.auth|google\.cloud\.auth)\.impersonation\..*", _WAY_OUT),
    Refused(r"(fs\.gs\.auth|google\.cloud\.auth)\.(client\.(id|secret|file)|refresh\.token)", _WAY_OUT),
    Refused(r"fs\.gs\.auth\.workload\.identity\..*", _WAY_OUT),
    Refused(
        r"(fs\.gs\.auth|google\.cloud\.auth)\.service\.account\.keyfile", "P12 keys are not read; " + _WAY_OUT
    ),
    Refused(r"fs\.gs\.encryption\..*", "keys of the customer's own are not sent"),
)

# What `fs.gs.auth.type` says -> what gcsfs calls the same; None: the key file.
_TYPES = {
    "SERVICE_ACCOUNT_JSON_KEYFILE": None,
    "APPLICATION_DEFAULT": "google_default",
    "COMPUTE_ENGINE": "cloud",
    "UNAUTHENTICATED": "anon",
}
_TOKEN_URI = "https://oauth2.googleapis.com/token"


def complete(options: dict[str, Any], address: Address) -> None:
    """Make options of the notes that settings left.

    Raises
    ------
    InvalidOptionError
        Settings that contradict each other or have no counterpart.
    """
    auth = options.pop("_auth", {})
    tokens = {"token": options.get("token")}
    if "_key" in options:
        tokens["google_service_account_key"] = options.pop("_key")
    if "_bearer" in options:
        options[own.TOKEN_CREDENTIAL] = {"kind": own.BEARER_TOKEN, "token": options.pop("_bearer")}
    if options.pop("_anon", False):
        tokens["google_skip_signature"] = "anon"
    if "private_key" in auth:
        tokens["fs.gs.auth.service.account.private.key"] = _service_account(auth)
    if "type" in auth:
        _type(auth["type"], tokens)
    elif auth.get("enable") is False and not any(tokens.values()) and own.TOKEN_CREDENTIAL not in options:
        raise InvalidOptionError(
            "fs.gs.auth.service.account.enable is false, which leaves a user's own login; " + _WAY_OUT,
            parameters={"option": "fs.gs.auth.service.account.enable"},
        )
    given = {name: token for name, token in tokens.items() if token}
    if len({str(token) for token in given.values()}) > 1:
        first, second, *_ = given
        raise InvalidOptionError(
            f"{first!r} and {second!r} name different credentials; give one of them",
            parameters={"option": second},
        )
    if given:
        options["token"] = next(iter(given.values()))


def _type(kind: str, tokens: dict[str, Any]) -> None:
    if kind.upper() not in _TYPES:
        raise InvalidOptionError(
            f"invalid value {kind!r} for {_TYPE!r}: those with a counterpart are {', '.join(_TYPES)}; {_WAY_OUT}",
            parameters={"option": _TYPE},
        )
    token = _TYPES[kind.upper()]
    if token is not None:
        tokens.clear()
        tokens["token"] = token
    elif not any(tokens.values()):
        raise InvalidOptionError(
            f"{_TYPE!r} is {kind}, which needs fs.gs.auth.service.account.json.keyfile",
            parameters={"option": _TYPE},
        )


def _service_account(auth: dict[str, Any]) -> dict[str, str]:
    if "client_email" not in auth:
        raise InvalidOptionError(
            "fs.gs.auth.service.account.private.key needs fs.gs.auth.service.account.email",
            parameters={"option": "fs.gs.auth.service.account.email"},
        )
    return {
        "type": "service_account",
        "client_email": auth["client_email"],
        "private_key": auth["private_key"].replace("\\n", "\n"),
        "private_key_id": auth.get("private_key_id", ""),
        "token_uri": _TOKEN_URI,
    }
