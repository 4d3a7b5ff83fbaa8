"""Read options: parsed, checked, refused."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.format.options.parsing import STORAGE_PREFIX, is_of_store
from delta_ds.kernel.format.options.read import (
    READ_OPTIONS,
    ReadOptions,
    parse_read_options,
    split_path_suffix,
    with_path_suffix,
)
from delta_ds.kernel.format.options.settings import SETTINGS_OPTION, UNKNOWN_OPTIONS, SessionFacts
from delta_ds.kernel.storage.store_options import name_patterns

UTC = timezone.utc
SECRET = "s3cr3t-value"


def read(session_time_zone: str = "UTC", **options: Any) -> ReadOptions:
    return parse_read_options({"path": "/t", **options}, session_time_zone)


def refusal(**options: Any) -> InvalidOptionError:
    with pytest.raises(InvalidOptionError) as caught:
        read(**options)
    return caught.value


def test_a_path_alone_gives_the_defaults() -> None:
    assert read() == ReadOptions(path="/t")
    assert read().max_partition_bytes == 128 * 1024 * 1024


def test_names_are_taken_in_any_case() -> None:
    assert parse_read_options({"PATH": "/t", "versionasof": "3"}).version == 3
    assert read(VERSIONASOF="3").version == 3


def test_plain_python_values_are_taken_as_their_text() -> None:
    moment = datetime(2024, 1, 31, 12, tzinfo=timezone(timedelta(hours=1)))
    assert read(versionAsOf=3).version == 3
    assert read(versionAsOf=None).version is None
    assert read(timestampAsOf=moment).timestamp == moment
    assert read(readChangeFeed=True, startingVersion=0).change_feed is True


def test_every_option_fills_a_field_of_read_options() -> None:
    fields = set(ReadOptions.__slots__)  # type: ignore[attr-defined]
    assert {option.target for option in READ_OPTIONS} == fields - {"storage_options", "facts"}
    assert all(option.meaning and option.type for option in READ_OPTIONS)


@pytest.mark.parametrize(
    ("given", "nearest"),
    [("verionAsOf", "versionAsOf"), ("timestampAsof1", "timestampAsOf"), ("startVersion", "startingVersion"),
     ("column", "columns"), ("readChangedata1", "readChangeFeed")],
)  # fmt: skip
def test_an_unknown_option_is_refused_with_the_nearest_name(given: str, nearest: str) -> None:
    error = refusal(**{given: "1"})
    assert repr(given) in str(error)
    assert f"did you mean {nearest!r}?" in str(error)


def test_an_option_like_nothing_known_is_refused_with_the_list_of_names_where_the_session_says_so() -> None:
    facts = SessionFacts({UNKNOWN_OPTIONS: "refuse"})
    assert "known are path, versionAsOf" in str(refusal(zzz="1", **{SETTINGS_OPTION: facts.text()}))


@pytest.mark.parametrize("value", ["-x", "1.5", "latest", "", "１", "9" * 30, "9" * 5000])
def test_a_version_that_is_no_natural_number_is_refused(value: str) -> None:
    assert refusal(versionAsOf=value).condition == "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE"
    assert refusal(readChangeFeed="true", startingVersion=value).condition == "DELTA_VERSION_INVALID"


def test_a_version_below_0_is_one_that_no_table_has() -> None:
    assert parse_read_options({"path": "/t", "versionAsOf": " -1 "}).version == -1
    assert refusal(readChangeFeed="true", startingVersion="-1").condition == "DELTA_VERSION_INVALID"


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2024-01-31", "UTC", datetime(2024, 1, 31, tzinfo=UTC)),
        ("2024-1-3", "UTC", datetime(2024, 1, 3, tzinfo=UTC)),
        ("2024", "UTC", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-01-31 13:05:09", "UTC", datetime(2024, 1, 31, 13, 5, 9, tzinfo=UTC)),
        (" 2024-01-31T13:05:09.5 ", "UTC", datetime(2024, 1, 31, 13, 5, 9, 500_000, tzinfo=UTC)),
        ("2024-01-31 13:05:09.1234567", "UTC", datetime(2024, 1, 31, 13, 5, 9, 123_456, tzinfo=UTC)),
        ("2024-01-31 13:05", "UTC", datetime(2024, 1, 31, 13, 5, tzinfo=UTC)),
        ("2024-01-31T13:05:09Z", "Asia/Tokyo", datetime(2024, 1, 31, 13, 5, 9, tzinfo=UTC)),
        ("2024-01-31T13:05:09+05:30", "UTC", datetime(2024, 1, 31, 7, 35, 9, tzinfo=UTC)),
        ("2024-01-31 13:05:09 UTC", "Asia/Tokyo", datetime(2024, 1, 31, 13, 5, 9, tzinfo=UTC)),
        ("2024-01-31 13:05:09 Asia/Tokyo", "UTC", datetime(2024, 1, 31, 4, 5, 9, tzinfo=UTC)),
        ("2024-01-31", "Asia/Tokyo", datetime(2024, 1, 30, 15, tzinfo=UTC)),
        ("2024-07-01 00:00:00", "America/New_York", datetime(2024, 7, 1, 4, tzinfo=UTC)),
        # As in Java: the hour that summer time skips moves on, of the one it repeats the first is meant.
        ("2024-03-10 02:30:00", "America/New_York", datetime(2024, 3, 10, 7, 30, tzinfo=UTC)),
        ("2024-11-03 01:30:00", "America/New_York", datetime(2024, 11, 3, 5, 30, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_timestamps_are_read_as_spark_casts_them(text: str, zone: str, expected: datetime) -> None:
    found = read(zone, timestampAsOf=text).timestamp
    assert found == expected
    assert found is not None and found.tzinfo is UTC
    assert read("UTC", timestampAsOf=text, timeZone=zone).timestamp == expected


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2024-13-01", "2024-02-30", "2024-01-01 25:00:00", "2024-01-01 24:00:00", "12024-01-01",
     "1700000000000", "2024-01-01 00:00:00 Nowhere/City", "0001-01-01 00:00:00+10:00", "0000-01-01"],
)  # fmt: skip
def test_a_text_that_is_no_timestamp_is_refused(text: str) -> None:
    assert refusal(timestampAsOf=text).condition in ("DELTA_TIMESTAMP_INVALID", "INVALID_TIMEZONE")


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)), st.sampled_from(["UTC", "+05:30", "Asia/Tokyo"])
)
def test_a_timestamp_written_in_a_zone_is_the_same_moment(moment: datetime, zone: str) -> None:
    from delta_ds.kernel.format.expressions.zones import zone as zone_of

    aware = moment.replace(tzinfo=UTC)
    local = aware.astimezone(zone_of(zone)).replace(tzinfo=None)
    found = read(zone, timestampAsOf=local.isoformat(sep=" ")).timestamp
    assert found == local.replace(tzinfo=zone_of(zone)).astimezone(UTC)


@given(st.text())
def test_any_text_is_a_timestamp_or_an_invalid_option(text: str) -> None:
    try:
        assert read(timestampAsOf=text).timestamp is not None
    except InvalidOptionError as error:
        assert error.condition in ("DELTA_TIMESTAMP_INVALID", "INVALID_TIMEZONE")


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"versionAsOf": "1", "timestampAsOf": "2024"}, "DELTA_ONEOF_IN_TIMETRAVEL"),
        ({"readChangeFeed": "true"}, "DELTA_NO_START_FOR_CDC_READ"),
        ({"readChangeFeed": "true", "endingVersion": "3"}, "DELTA_NO_START_FOR_CDC_READ"),
        ({"readChangeFeed": "true", "startingVersion": "1", "startingTimestamp": "2024"},
         "DELTA_MULTIPLE_CDC_BOUNDARY"),
        ({"readChangeFeed": "true", "startingVersion": "1", "endingVersion": "2", "endingTimestamp": "2024"},
         "DELTA_MULTIPLE_CDC_BOUNDARY"),
        ({"readChangeFeed": "true", "startingVersion": "1", "versionAsOf": "2"},
         "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
        ({"readChangeFeed": "true", "startingVersion": "1", "timestampAsOf": "2024"},
         "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
        ({"startingVersion": "1"}, "DELTA_ILLEGAL_OPTION"),
        ({"readChangeFeed": "false", "endingTimestamp": "2024"}, "DELTA_ILLEGAL_OPTION"),
        ({"readChangeFeed": "yes"}, "DELTA_ILLEGAL_OPTION"),
        ({"maxPartitionBytes": "0"}, "DELTA_ILLEGAL_OPTION"),
        ({"maxPartitionBytes": "128 parsecs"}, "DELTA_ILLEGAL_OPTION"),
        ({"metadataColumns": "file_path,color"}, "DELTA_ILLEGAL_OPTION"),
        ({"columns": "a,,b"}, "DELTA_ILLEGAL_OPTION"),
        ({"columns": ""}, "DELTA_ILLEGAL_OPTION"),
        ({"columns": "`a"}, "DELTA_ILLEGAL_OPTION"),
        ({"columns": "a, A"}, "DELTA_ILLEGAL_OPTION"),
        ({"timeZone": "Nowhere/City"}, "INVALID_TIMEZONE"),
        ({"readChangeFeed": "true", "readChangeData": "false", "startingVersion": "1"},
         "DELTA_ILLEGAL_OPTION"),
        ({"path": " "}, "DELTA_ILLEGAL_OPTION"),
    ],
)  # fmt: skip
def test_wrong_values_and_conflicting_options_are_refused(options: dict[str, str], condition: str) -> None:
    assert refusal(**options).condition == condition


def test_a_read_without_a_path_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="'path' is missing"):
        parse_read_options({"versionAsOf": "1"})


def test_several_paths_are_refused_and_a_list_of_one_is_its_path() -> None:
    with pytest.raises(InvalidOptionError, match="several paths"):
        parse_read_options({"paths": '["/a","/b"]'})
    assert parse_read_options({"paths": '["/a"]'}).path == "/a"


def test_a_range_of_changes_is_parsed_under_both_names() -> None:
    for name in ("readChangeFeed", "readChangeData"):
        found = read(**{name: "TRUE", "startingVersion": "2", "endingTimestamp": "2024-01-31"})
        assert (found.change_feed, found.starting_version) == (True, 2)
        assert found.ending_timestamp == datetime(2024, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ("a",)),
        (" a , b.c ", ("a", "b.c")),
        ("`a, b`,c d, `x``y`", ("a, b", "c d", "x`y")),
        ("é,_1", ("é", "_1")),
    ],
)
def test_columns_are_split_at_commas_outside_backticks(text: str, names: tuple[str, ...]) -> None:
    assert read(columns=text).columns == names


@given(st.lists(st.text(min_size=1), min_size=1, unique_by=str.lower))
def test_any_column_name_can_be_given_in_backticks(names: list[str]) -> None:
    quoted = ",".join("`" + name.replace("`", "``") + "`" for name in names)
    assert read(columns=quoted).columns == tuple(names)


def test_metadata_columns_keep_their_order() -> None:
    assert read(metadataColumns="row_index, FILE_PATH").metadata_columns == ("row_index", "file_path")


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("64k", 65536), ("64KB", 65536), ("128m", 1 << 27), ("2 g", 2 << 30), ("3b", 3)],
)
def test_sizes_take_sparks_units(text: str, size: int) -> None:
    assert read(maxPartitionBytes=text).max_partition_bytes == size


def test_storage_options_are_passed_on_with_flags_and_dicts() -> None:
    found = read(
        **{"storage.key": "k", "STORAGE.anon": "False", "storage.client_kwargs": '{"region_name": "eu"}'}
    ).storage_options
    assert found == {"key": "k", "anon": False, "client_kwargs": {"region_name": "eu"}}


def test_names_of_every_vocabulary_go_to_the_store_as_they_are() -> None:
    given = {
        "fs.s3a.access.key": "k",
        "AWS_REGION": "eu",
        "storage.AWS_SESSION_TOKEN": "t",
        "allow_http": "true",
    }
    assert read(**given).storage_options == {
        "fs.s3a.access.key": "k", "AWS_REGION": "eu", "AWS_SESSION_TOKEN": "t", "allow_http": True,
    }  # fmt: skip
    with pytest.raises(InvalidOptionError, match="'AWS_REGION' is given twice"):
        read(**{"AWS_REGION": "eu", "storage.AWS_REGION": "us"})


def test_secrets_show_in_no_repr_or_error() -> None:
    options = {"storage.secret": SECRET, "storage.token": '{"a": "' + SECRET + '"}'}
    found = parse_read_options({"path": f"s3://u:{SECRET}@b/t@v3", **options})
    copy = pickle.loads(pickle.dumps(found))
    assert copy == found
    assert SECRET not in f"{found!r} {copy!r} {copy.storage_options!r} {copy.storage_options}"
    broken = refusal(**{"storage.token": "{" + SECRET})
    assert SECRET not in f"{broken} {broken.parameters} {broken.__cause__}"
    with pytest.raises(InvalidOptionError) as caught:
        with_path_suffix(parse_read_options({"path": f"s3://u:{SECRET}@b/t@v3", "versionAsOf": "1"}))
    assert SECRET not in f"{caught.value} {caught.value.parameters}"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/t@v12", ("/t", 12, None)),
        ("/t@V0", ("/t", 0, None)),
        ("/t@20240131130509123", ("/t", None, datetime(2024, 1, 31, 4, 5, 9, 123_000, tzinfo=UTC))),
        ("/a@v1/t", ("/a@v1/t", None, None)),
        ("/t@2024", ("/t@2024", None, None)),
        ("/t@v", ("/t@v", None, None)),
        ("abfss://c@account/t@v1", ("abfss://c@account/t", 1, None)),
    ],
)
def test_a_path_suffix_is_split_off(path: str, expected: tuple[Any, ...]) -> None:
    assert split_path_suffix(path, "Asia/Tokyo") == expected


def test_seventeen_digits_that_are_no_moment_are_refused() -> None:
    with pytest.raises(InvalidOptionError) as caught:
        split_path_suffix("/t@20241331000000000")
    assert caught.value.condition == "DELTA_INVALID_TIMESTAMP_FORMAT"


def test_a_path_suffix_takes_the_place_of_the_option() -> None:
    found = with_path_suffix(read(path="/t@v7", columns="a"))
    assert (found.path, found.version, found.columns) == ("/t", 7, ("a",))
    assert with_path_suffix(read()) == read()
    moment = with_path_suffix(read(path="/t@20240131000000000", timeZone="+01:00")).timestamp
    assert moment == datetime(2024, 1, 30, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"versionAsOf": "7"}, "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"),
        ({"timestampAsOf": "2024"}, "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"),
        ({"readChangeFeed": "true", "startingVersion": "1"}, "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
    ],
)
def test_a_path_suffix_together_with_an_option_is_refused(options: dict[str, str], condition: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        with_path_suffix(read(path="/t@v7", **options))
    assert caught.value.condition == condition


def test_parsing_options_imports_neither_pyarrow_nor_pyspark() -> None:
    code = (
        "import sys; from delta_ds.kernel.format.options.read import parse_read_options\n"
        "parse_read_options({'path': '/t', 'timestampAsOf': '2024-01-31', 'fs.s3a.access.key': 'k'})\n"
        "print([m for m in ('pyarrow', 'pyspark', 'numpy', 'fsspec') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


NAMES_OF_STORES = [
    "fs.s3a.secret.key", "FS.azure.account.key.a.dfs.core.windows.net", "dfs.nameservices", "hadoop.security.x",
    "google.cloud.auth.x", "AWS_SECRET_ACCESS_KEY", "azure_storage_key", "delta_dynamo_table_name", "allow_http",
    "storage.key", "storage.secret.fs.azure.account.key", "spark.delta.logStore.s3a.impl", "delta.logStore.s3.impl",
    "io.delta.storage.S3DynamoDBLogStore.ddb.region", "spark.io.delta.storage.S3DynamoDBLogStore.ddb.region",
]  # fmt: skip
OTHER_NAMES = [
    "path",
    "mergeSchema",
    "delta.appendOnly",
    "xfs.a",
    "storage",
    "allow_https",
    "spark.fs.s3a.key",
    "",
]


@pytest.mark.parametrize("name", [*NAMES_OF_STORES, *OTHER_NAMES])
def test_plans_are_searched_for_all_names_of_stores_and_no_others(name: str) -> None:
    whole, somewhere = name_patterns(STORAGE_PREFIX)
    assert (re.fullmatch(whole, name) is not None) == is_of_store(name) == (name in NAMES_OF_STORES)
    if name in NAMES_OF_STORES:
        assert re.search(somewhere, f"SELECT * FROM t WITH ('{name}' = 'x')")


def test_a_name_that_spark_hides_stands_for_the_name_behind() -> None:
    given = {"storage.secret.fs.azure.account.key": "a", "STORAGE.SECRET.key": "b", "storage.secret": "c"}
    assert dict(read(**given).storage_options) == {"fs.azure.account.key": "a", "key": "b", "secret": "c"}
    with pytest.raises(InvalidOptionError, match="given twice"):
        read(**{"storage.secret.key": "a", "storage.key": "b"})
