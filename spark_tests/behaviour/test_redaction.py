"""What looks like a secret, or is known as one, is in no text; what looks like none stays."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.exceptions import DeltaError, NotADeltaTableError, SchemaError
from delta_ds.records import dataclass
from delta_ds.redaction import redacted, safe_addresses, without
from spark_tests.full_form import examples

SPELLINGS: list[Callable[[str], str]] = [
    str, quote, lambda s: quote(s, safe=""), quote_plus, lambda s: quote(quote(s, safe=""), safe=""),
    lambda s: "".join(c if c.isalnum() else quote(c, safe="").lower() for c in s), json.dumps, repr, ascii,
    lambda s: json.dumps(s).replace("/", "\\/"), lambda s: base64.b64encode(s.encode()).decode(),
    lambda s: base64.b64encode(s.encode()).decode().rstrip("="), lambda s: f"x{s}y", lambda s: f"{s}=",
]  # fmt: skip
SECRETS = st.text(
    st.sampled_from("abcXYZ019/+=%&@:~.-_ \n\"'\\") | st.characters(exclude_categories=["Cs"]), min_size=4
).filter(lambda secret: len(secret.strip()) >= 4)


@settings(max_examples=examples(300), deadline=None)
@given(SECRETS, st.sampled_from(SPELLINGS), st.text(max_size=20), st.text(max_size=20))
def test_a_known_secret_is_in_no_text_however_it_is_spelled(
    secret: str, spelled: Callable[[str], str], before: str, after: str
) -> None:
    said = spelled(secret)
    inner = said[1:-1] if spelled in (json.dumps, repr, ascii) else said.strip("=xy")
    found = without(f"{before}<{said}>{after}", [secret])
    assert "***" in found
    assert f"<{inner}>" not in found


@settings(max_examples=examples(200), deadline=None)
@given(
    st.text(st.sampled_from("abcXYZ019/+_-"), min_size=12, max_size=60),
    st.binary(max_size=5),
    st.binary(max_size=5),
)
def test_a_long_secret_is_found_in_the_base64_of_more(secret: str, before: bytes, after: bytes) -> None:
    whole = base64.b64encode(before + secret.encode() + after).decode()
    found = without(whole, [secret])
    assert "***" in found
    assert len(whole) - len(found.replace("***", "")) >= (len(secret) - 2) // 3 * 4


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=40))
def test_a_text_without_the_secret_stays(text: str) -> None:
    assert without(text, ["S3CR3T/not+here"]) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://AKIA:se/cr/et@bucket/t@v5", "s3://***@bucket/t@v5"),
        ("s3:/AKIA:secret@bucket/t", "s3:/***@bucket/t"),
        ("at 's3a://K:p@ss@b/t'", "at 's3a://***@b/t'"),
        ("https://ghp_abc@host/x", "https://***@host/x"),
        ("abfss://box:secret@account.dfs.core.windows.net/t", "abfss://***@account.dfs.core.windows.net/t"),
        ("https://a.blob/c?sv=1&sig=abc%2F&se=2", "https://a.blob/c?sv=1&sig=***&se=2"),
        ("https%3A%2F%2Fa%3Fsv%3D1%26sig%3Dabc", "https%3A%2F%2Fa%3Fsv%3D1%26sig%3D***"),
        (
            "https://b/x?X-Amz-Credential=A/1&X-Amz-Signature=00",
            "https://b/x?X-Amz-Credential=***&X-Amz-Signature=***",
        ),
        ("sv=2020&sig=0123456789abcdef", "sv=2020&sig=***"),
        (
            "http://h:9870/webhdfs/v1/t?op=OPEN&delegation=KAAK",
            "http://h:9870/webhdfs/v1/t?op=OPEN&delegation=***",
        ),
        ("AccountName=a;AccountKey=abc==;", "AccountName=a;AccountKey=***;"),
        ("key -----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY----- end", "key *** end"),
    ],
)
def test_addresses_are_shown_without_logins_and_signatures(text: str, shown: str) -> None:
    assert safe_addresses(text) == shown == redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "abfss://box@account.dfs.core.windows.net/t@v5", "hdfs://host:8020/user/me@corp/t", "/data/a:b@c/t",
        "s3://bucket/a:b@c", "file:/data/a:b@c", "http://[::1]:80/a@b", "webhdfs://host:9870/t@v5", "C:/a:b@c",
        "token = 'abc' and key = 5", "a predicate sig=5", "design=3", "the option 'token' is missing: give it",
    ],
)  # fmt: skip
def test_other_texts_of_this_package_stay(text: str) -> None:
    assert safe_addresses(text) == text
    assert str(SchemaError(text)) == f"[DELTA_INVALID_SCHEMA] {text}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer a.b.c, x", "Authorization: Bearer ***, x"),
        (
            "'Authorization': 'AWS4-HMAC-SHA256 Credential=A/1, SignedHeaders=h, Signature=0'",
            "'Authorization': '***'",
        ),
        ("Proxy-Authorization: Basic dTpwYXNzd29yZA==", "Proxy-Authorization: Basic ***"),
        ("bearer eyJhbGciOi.J9", "bearer ***"),
        ("{'SSECustomerKey': b'a b', 'Key': 't/x'}", "{'SSECustomerKey': '***', 'Key': 't/x'}"),
        ('"private_key": "MII\\n", "a": 1', '"private_key": "***", "a": 1'),
        (
            "fs.azure.account.key.a.dfs.core.windows.net -> abc, b",
            "fs.azure.account.key.a.dfs.core.windows.net -> ***, b",
        ),
        ("aws_secret_access_key=abc", "aws_secret_access_key=***"),
        ("x-amz-security-token:abc", "x-amz-security-token:***"),
    ],
)
def test_texts_of_others_are_shown_without_what_a_name_gives_away(text: str, shown: str) -> None:
    found = redacted(text)
    assert found == shown or (shown == "'Authorization': '***'" and "Signature=0" not in found)


def test_every_error_is_without_them_and_so_are_its_parameters() -> None:
    address = "s3://AKIA:secret@bucket/t"
    error = NotADeltaTableError(
        f"nothing at {address}", parameters={"path": address, "more": [{"a": address}], "n": 1}
    )
    assert "secret" not in f"{error} {error!r} {error.text} {error.args} {error.parameters}"
    assert error.parameters["n"] == 1
    again = pickle.loads(pickle.dumps(error))
    assert (again.text, again.parameters) == (error.text, error.parameters)
    assert isinstance(error, DeltaError)


def test_records_are_shown_without_them() -> None:
    @dataclass
    class Place:
        path: str

    assert repr(Place("s3://AKIA:secret@bucket/t")).endswith("Place(path='s3://***@bucket/t')")
