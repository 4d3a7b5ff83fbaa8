"""Write options: parsed, checked, refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.format.options.settings import REFUSE, SETTINGS_OPTION
from delta_ds.kernel.format.options.write import WRITE_OPTIONS, WriteOptions, parse_write_options


def write(overwrite: bool = False, **options: Any) -> WriteOptions:
    return parse_write_options({"path": "/t", **options}, overwrite=overwrite)


def refusal(overwrite: bool = False, **options: Any) -> InvalidOptionError:
    with pytest.raises(InvalidOptionError) as caught:
        write(overwrite, **options)
    return caught.value


def test_a_path_alone_gives_the_defaults() -> None:
    assert write() == WriteOptions(path="/t")
    assert write().data_change is True


def test_every_option_is_a_field() -> None:
    assert {option.target for option in WRITE_OPTIONS} <= set(WriteOptions.__dataclass_fields__)


def test_table_properties_are_kept_apart() -> None:
    assert write(**{"delta.appendOnly": "true"}).properties == {"delta.appendOnly": "true"}


@pytest.mark.parametrize(
    ("options", "condition", "says"),
    [
        ({"megreSchema": "true"}, "DELTA_ILLEGAL_OPTION", "did you mean 'mergeSchema'"),
        ({"mergeSchema": "yes"}, "DELTA_ILLEGAL_OPTION", "true or false"),
        ({"partitionOverwriteMode": "some"}, "DELTA_ILLEGAL_OPTION", "static or dynamic"),
        ({"compression": "rar"}, "DELTA_ILLEGAL_OPTION", "zstd"),
        ({"txnAppId": "a"}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", "both"),
        ({"txnVersion": "1"}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", "both"),
        ({"txnAppId": "a", "txnVersion": "x"}, "DELTA_ILLEGAL_OPTION", "number"),
        ({"txnAppId": "a", "txnVersion": "-1"}, "DELTA_ILLEGAL_OPTION", "not negative"),
        ({"txnAppId": "a", "txnVersion": str(2**63)}, "DELTA_ILLEGAL_OPTION", "not negative"),
        ({"partitionBy": "a", "clusterBy": "b"}, "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY", "exclude"),
        ({"path": " "}, "DELTA_ILLEGAL_OPTION", "path"),
    ],
)
def test_wrong_values_and_conflicting_options_are_refused(
    options: dict[str, str], condition: str, says: str
) -> None:
    error = refusal(True, **options)
    assert error.condition == condition
    assert says in str(error)


def test_secrets_are_not_shown_and_survive_pickling() -> None:
    options = write(**{"storage.key": "s3cr3t-value"})
    assert "s3cr3t-value" not in repr(options)
    assert pickle.loads(pickle.dumps(options)).storage_options == {"key": "s3cr3t-value"}


@given(st.text(min_size=1).filter(lambda s: s.lower() not in {o.name.lower() for o in WRITE_OPTIONS}))
def test_no_unknown_name_passes_where_all_are_refused(name: str) -> None:
    if name.lower().startswith(("storage.", "delta.", "fs.", "spark.hadoop.fs.")) or name.lower() in (
        "paths",
        SETTINGS_OPTION.lower(),
    ):
        return
    with pytest.raises(InvalidOptionError, match="unknown write option"):
        parse_write_options({"path": "/t", name: "1"}, overwrite=False, unknown=REFUSE)


@pytest.mark.parametrize("option", ["partitionBy", "clusterBy"])
@pytest.mark.parametrize("names", [["a"], ("a", "b`c"), ["a, b", "c"]])
def test_names_come_as_a_list_as_well_as_in_a_text(option: str, names: Any) -> None:
    found = parse_write_options({"path": "/t", option: names}, overwrite=False)
    assert tuple(found.partition_by or found.cluster_by or ()) == tuple(names)


@pytest.mark.parametrize("option", [*(option.name for option in WRITE_OPTIONS), "delta.appendOnly"])
@pytest.mark.parametrize("value", [[1], {"a"}, {"a": 1}, b"a"])
def test_a_collection_is_never_taken_for_its_text(option: str, value: Any) -> None:
    with pytest.raises(InvalidOptionError, match="not a (list|set|dict|bytes)"):
        parse_write_options({option: value}, overwrite=False)


@pytest.mark.parametrize(
    ("text", "columns"),
    [("id", ("id",)), (" id , K,id", ("id", "K")), ("`a, b`, `c``d`", ("a, b", "c`d")), ("a.b", ("a.b",))],
)
def test_key_columns_are_listed_each_once(text: str, columns: tuple[str, ...]) -> None:
    found = parse_write_options({"path": "/t", "replaceUsing": text}, overwrite=True)
    assert (found.replace_using, found.key_columns, found.replaces_matches) == (text, columns, True)


@pytest.mark.parametrize("text", ["", ",", "id,", " , id", "`id"])
def test_key_columns_without_a_name_are_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="replaceUsing"):
        parse_write_options({"path": "/t", "replaceUsing": text}, overwrite=True)
