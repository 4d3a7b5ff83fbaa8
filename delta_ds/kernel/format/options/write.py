"""The options of a write, parsed to a `WriteOptions`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any

from delta_ds.conditions.options import (
    CLUSTER_BY_WITH_PARTITION_BY_OPTION,
    DYNAMIC_PARTITION_OVERWRITE_WITH_REPLACE_ON_OR_USING,
    INCOMPATIBLE_DATAFRAME_OPTIONS,
    INVALID_IDEMPOTENT_WRITES_OPTIONS,
    OVERWRITE_BY_FILTER_WITH_REPLACE_ON_OR_USING,
    REPLACE_ON_OR_USING_OF_NEW_TABLE,
)
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.format import properties
from delta_ds.kernel.format.options.parsing import (
    Option,
    OptionSet,
    boolean,
    listed_names,
    text_as_it_is,
    time_zone_name,
    version,
)
from delta_ds.kernel.format.options.read import READ_OPTIONS
from delta_ds.kernel.format.options.settings import (
    AUTO_MERGE,
    CODEC,
    OPTIMIZE_WRITE,
    RECORDS_PER_FILE,
    SETTINGS_OPTION,
    TXN_APP_ID,
    TXN_VERSION,
    USER_METADATA,
    SessionFacts,
)
from delta_ds.kernel.storage.store_options import SecretOptions
from delta_ds.records import dataclass, field

ERROR, IGNORE = "error", "ignore"
REPORT_FOLDER_OPTION = "reportFolder"
TASKS_OPTION = "numberOfTasks"
READ_VERSION_OPTION = "readVersion"
DEFINITION_OPTION = "newTable"
CODECS = ("zstd", "snappy", "gzip", "lz4", "lz4_raw", "brotli", "none", "uncompressed")


@dataclass(frozen=True, slots=True)
class NewTableOptions:
    """What `CREATE TABLE ... AS SELECT` and its like say beyond the options of a write.

    Attributes
    ----------
    operation
        As the history has it: `CREATE TABLE AS SELECT` and so on.
    properties
        All properties of the table, those of users among them.
    description
        The comment of the table.
    managed
        Whether the table's folder belongs to a catalog.
    name
        By which a catalog is to know the table; None: it is known by its path.
    is_save_as_table_overwrite
        The call is `saveAsTable` in mode overwrite, which keeps the table that is there.
    """

    operation: str
    properties: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None
    managed: bool = False
    name: str | None = None
    is_save_as_table_overwrite: bool = False

    def text(self) -> str:
        """The form in which it travels as an option."""
        from dataclasses import asdict

        return json.dumps(asdict(self), ensure_ascii=False)


def _definition(text: str, zone: tzinfo) -> NewTableOptions:
    try:
        return NewTableOptions(**json.loads(text))
    except (TypeError, ValueError):
        raise ValueError("it is a JSON object with the fields of NewTableOptions") from None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The checked options of a write; what was not given is None or the default.

    Attributes
    ----------
    path
        The table's path or URL, as given; not in `repr`, as a URL may hold a password.
    merge_schema, overwrite_schema
        New columns extend the schema; an overwrite brings its own.
    replace_where
        A predicate in Spark SQL: only matching rows are replaced, and all that is written must match.
    replace_using
        Columns, as a text: only rows are replaced whose values in them are those of a row of the write.
    replace_on
        A condition in Spark SQL on a row of the table and one of the write: only rows for which it holds are replaced.
    target_alias
        The name by which `replace_on` and `replace_where` may call the table.
    dynamic_partitions
        An overwrite replaces only the partitions that it writes to; None: as the session says.
    partition_by
        Partition columns of a new table; of an existing one they must be the same. None: not said.
    cluster_by
        Clustering columns of a new table. None: not said.
    txn_app_id, txn_version
        An idempotent write: it is left out if the table has this version of the application, or a later one.
    user_metadata
        Free text for the history.
    max_records_per_file
        Rows a file holds at most; None for no limit.
    optimize_write
        Small files of one partition, written by several tasks, are joined before the commit. None: as the
        table's property says.
    data_change
        False: the rows are only arranged anew, which readers of changes need not look at.
    compression
        Codec of data files; None: the table's.
    storage_options
        For the filesystem; never shown.
    time_zone
        The zone of local times; None: the session's.
    properties
        Table properties for a table that this write creates: `delta.*` names to text.
    if_exists
        What a write that shall create its table does where there is one: `error` or `ignore` (nothing is
        written). None: it adds to the table.
    replace_table
        An overwrite puts a table of its own in the place of the one that is there: schema, partitioning,
        clustering and properties are those of the write. Rows go too, but for those that `replace_where` spares.
    facts
        What the session says.
    definition
        What a statement says of the table that it makes with these rows; None for a write by any other way.
    tasks
        How many tasks write the rows, at most; None: not known.
    read_version
        The version of the table that the rows were computed from, at the latest; None: they come from elsewhere.
    report_folder
        Where reports of the commit are left for the listeners of another process; None for nowhere.
    """

    path: str = field(repr=False)
    merge_schema: bool = False
    overwrite_schema: bool = False
    replace_where: str | None = None
    replace_using: str | None = None
    replace_on: str | None = None
    target_alias: str | None = None
    dynamic_partitions: bool | None = None
    partition_by: tuple[str, ...] | None = None
    cluster_by: tuple[str, ...] | None = None
    txn_app_id: str | None = None
    txn_version: int | None = None
    user_metadata: str | None = None
    max_records_per_file: int | None = None
    optimize_write: bool | None = None
    data_change: bool = True
    compression: str | None = None
    storage_options: dict[str, Any] = field(default_factory=SecretOptions, repr=False)
    time_zone: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    if_exists: str | None = None
    replace_table: bool = False
    facts: SessionFacts = field(default_factory=SessionFacts)
    definition: NewTableOptions | None = None
    tasks: int | None = None
    read_version: int | None = None
    report_folder: str | None = None

    @property
    def makes_table(self) -> bool:
        """Whether the write defines a table: a new one, or one that takes the place of another."""
        return self.definition is not None and not self.definition.is_save_as_table_overwrite

    @property
    def known_zone(self) -> str | None:
        """The zone of local times: that of the option, else the session's; None where nobody has said."""
        return self.time_zone or self.facts.time_zone

    @property
    def asks_for_partitions(self) -> bool:
        """Whether an overwrite shall replace only the partitions that it writes to, by the options or the session."""
        option = self.dynamic_partitions
        return self.facts.dynamic_overwrite if option is None else option

    @property
    def is_dynamic(self) -> bool:
        """The same, where the session allows it."""
        return self.asks_for_partitions and self.facts.allows_dynamic_overwrite

    @property
    def replaces_everything(self) -> bool:
        """Whether nothing of the table that is there stays: neither its description nor a row."""
        return self.replace_table and self.replace_where is None

    @property
    def replaces_matches(self) -> bool:
        """Whether the rows of an overwrite say which rows of the table they take the place of."""
        return self.replace_on is not None or self.replace_using is not None

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of `replace_using`, each once; none where it is not given."""
        return () if self.replace_using is None else tuple(dict.fromkeys(listed_names(self.replace_using)))

    @property
    def txn(self) -> tuple[str, int] | None:
        """The application transaction that the write is; None where it is none."""
        if self.txn_app_id is None or self.txn_version is None:
            return None
        return self.txn_app_id, self.txn_version


def _one_of(*words: str) -> Callable[[str, tzinfo], str]:
    """A parser of some words, in any case."""
    *others, last = words

    def parse(text: str, zone: tzinfo) -> str:
        word = text.strip().lower()
        if word not in words:
            raise ValueError(f"it is {', '.join(others)} or {last}")
        return word

    return parse


def _is_dynamic(text: str, zone: tzinfo) -> bool:
    return _one_of("static", "dynamic")(text, zone) == "dynamic"


def _names_or_none(text: str, zone: tzinfo) -> tuple[str, ...]:
    """Names that are there several times are refused where it is known what table they are of."""
    return listed_names(text) if text.strip() else ()


def _key_columns(text: str, zone: tzinfo) -> str:
    if any(not name.strip() for name in text.split(",")):
        raise ValueError("must not contain empty column names")
    listed_names(text)
    return text


def _whole_number(text: str, zone: tzinfo) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("it is a whole number") from None


def _transaction_version(text: str, zone: tzinfo) -> int:
    number = _whole_number(text, zone)
    if not 0 <= number < 1 << 63:
        # One below all that were recorded would pass for written, and its rows be lost.
        raise ValueError("it is a whole number that is not negative")
    return number


def _row_limit(text: str, zone: tzinfo) -> int | None:
    number = _whole_number(text, zone)
    return number if number > 0 else None


def _task_count(text: str, zone: tzinfo) -> int:
    number = _whole_number(text, zone)
    if number < 1:
        raise ValueError("it is a whole number from 1 on")
    return number


# Why a stream does not take an option.
_REPLACES_ALL = "every batch of mode complete replaces the whole table"
_BY_ITS_IDS = "the query id and the batch id take its place"
_ADDS = "a stream adds to the table that is there"

WRITE_OPTIONS: tuple[Option, ...] = (
    Option("path", "text", None, "the table's folder or URL", "path", text_as_it_is),
    Option(
        "mergeSchema", "boolean", "false", "add new columns to the schema", "merge_schema", boolean,
        setting=AUTO_MERGE.full_name,
    ),
    Option(
        "overwriteSchema", "boolean", "false", "an overwrite replaces schema and partitioning too",
        "overwrite_schema", boolean,
    ),
    Option(
        "replaceWhere", "predicate", None, "an overwrite replaces only the rows that match",
        "replace_where", text_as_it_is, batch_only=_REPLACES_ALL,
    ),
    Option(
        "replaceUsing", "names", None,
        "an overwrite replaces only the rows with the values of a written row in these columns",
        "replace_using", _key_columns, batch_only=_REPLACES_ALL,
    ),
    Option(
        "replaceOn", "condition", None, "an overwrite replaces only the rows that match a written row",
        "replace_on", text_as_it_is, batch_only=_REPLACES_ALL,
    ),
    Option(
        "targetAlias", "name", None, "what `replaceOn` and `replaceWhere` call the table",
        "target_alias", text_as_it_is, batch_only=_REPLACES_ALL,
    ),
    Option(
        "partitionOverwriteMode", "text", "static", "dynamic: replace only the partitions written to",
        "dynamic_partitions", _is_dynamic, batch_only=_REPLACES_ALL,
    ),
    Option(
        "partitionBy", "names", None, "partition columns of a new table: a, `b, with comma`",
        "partition_by", _names_or_none,
    ),
    Option("clusterBy", "names", None, "clustering columns of a new table", "cluster_by", _names_or_none),
    Option(
        "txnAppId", "text", None, "with txnVersion: write once, however often it is tried",
        "txn_app_id", text_as_it_is, setting=TXN_APP_ID.full_name, batch_only=_BY_ITS_IDS,
    ),
    Option(
        "txnVersion", "number", None, "the application's own version of this write",
        "txn_version", _transaction_version, setting=TXN_VERSION.full_name, batch_only=_BY_ITS_IDS,
    ),
    Option(
        "userMetadata", "text", None, "free text for the history", "user_metadata", text_as_it_is,
        setting=USER_METADATA.full_name,
    ),
    Option(
        "maxRecordsPerFile", "number", None, "rows a data file holds at most; 0 or less: no limit",
        "max_records_per_file", _row_limit, setting=RECORDS_PER_FILE,
    ),
    Option(
        "optimizeWrite", "boolean", "the table's", "join small files of one partition before the commit",
        "optimize_write", boolean, setting=OPTIMIZE_WRITE.full_name,
    ),
    Option(
        "dataChange", "boolean", "true", "false: the rows are the table's own, only arranged anew",
        "data_change", boolean, batch_only="a stream brings new rows",
    ),
    Option(
        "compression", "text", "the table's", f"codec: {', '.join(CODECS)}", "compression", _one_of(*CODECS),
        setting=CODEC,
    ),
    Option("timeZone", "time zone", "the session's", "the zone of local times", "time_zone", time_zone_name),
    Option(
        "ifExists", "text", "add to it", "where there is a table already: error, or ignore (write nothing)",
        "if_exists", _one_of(ERROR, IGNORE), batch_only=_ADDS,
    ),
    Option(
        "replaceTable", "boolean", "false", "an overwrite brings schema, layout and properties of its own",
        "replace_table", boolean, batch_only=_ADDS,
    ),
    Option(
        DEFINITION_OPTION, "JSON", None, "what a statement says of the table that it makes with its rows",
        "definition", _definition, batch_only="a stream makes its table without a statement",
    ),
    Option(
        TASKS_OPTION, "number", None,
        "how many tasks write the rows, at most: values of identity columns then lie close together",
        "tasks", _task_count,
    ),
    Option(
        READ_VERSION_OPTION, "version", None,
        "the rows were computed from this version of the table, or a later one: what others change since is a conflict",
        "read_version", version, batch_only="each batch starts from the newest version",
    ),
    Option(
        REPORT_FOLDER_OPTION, "path", None,
        "a folder of this machine in which the commit leaves its report, for listeners of the process that made it",
        "report_folder", text_as_it_is, batch_only="whoever made the folder has gone on",
    ),
)  # fmt: skip

_ONLY_READ = {
    option.name.lower(): "it is an option of reads"
    for option in READ_OPTIONS
    if option.name not in {known.name for known in WRITE_OPTIONS}
}
WRITE = OptionSet("write", WRITE_OPTIONS, properties.PREFIX, _ONLY_READ)
# Those that a stream refuses, and why.
BATCH_ONLY = {option.name: option.batch_only for option in WRITE_OPTIONS if option.batch_only is not None}


def with_settings(
    options: Mapping[str, str], facts: SessionFacts, *, streaming: bool = False
) -> dict[str, str]:
    """Options completed by the settings of a session that stand for them, and by the facts of the session.

    Parameters
    ----------
    streaming
        They are those of a stream, for whose batches no setting stands that holds for one write.
    """
    texts = {
        option.name: facts.settings[option.setting]
        for option in WRITE_OPTIONS
        if option.setting is not None
        and option.setting in facts.settings
        and not (streaming and option.batch_only)
    }
    texts[SETTINGS_OPTION] = facts.text()
    names = {name.lower() for name in options}
    return {**options, **{name: text for name, text in texts.items() if name.lower() not in names}}


def checked_codec(text: str | None) -> str | None:
    """The codec of data files that a session says, as `WriteOptions.compression` has it; None where it says none.

    Asked where files are about to be written: what writes none does not care.

    Raises
    ------
    InvalidOptionError
        Files are not written with it.
    """
    if text is None:
        return None
    found: str = WRITE.parse({"compression": text}, "UTC").values["compression"]
    return found


def with_call(options: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Options with the one that a call or statement says, which must not be among them too.

    Raises
    ------
    InvalidOptionError
        It is.
    """
    if any(known.lower() == name.lower() for known in options):
        raise InvalidOptionError(
            f"{name} is given twice, by the option and by the call (.partitionBy, .clusterBy, .mode) or statement; "
            "give it once",
            parameters={"option": name},
        )
    return {**options, name: value}


def parse_write_options(
    options: Mapping[str, Any],
    *,
    overwrite: bool,
    session_time_zone: str = "UTC",
    unknown: str | None = None,
) -> WriteOptions:
    """Parse and check the options of a write.

    Parameters
    ----------
    options
        Names in any case to text (or plain Python values). `storage.<name>` and Hadoop's `fs.*` settings go
        to the filesystem, `delta.*` become table properties.
    overwrite
        The mode is overwrite, not append.
    session_time_zone
        The zone of local times, unless the option `timeZone` or the facts of the session say one.
    unknown
        See `OptionSet.parse`.

    Raises
    ------
    InvalidOptionError
        An unknown name (with the nearest known one), a wrong value, or options that exclude each other.
    """
    sorted_out = WRITE.parse(options, session_time_zone, unknown=unknown)
    if not sorted_out.values.get("path", "").strip():
        raise InvalidOptionError("the option 'path' is missing: use .save('/path/of/the/table')")
    # Spark hands names over to a data source in lower case.
    named = {properties.canonical_name(name): text for name, text in sorted_out.properties.items()}
    parsed = WriteOptions(
        storage_options=sorted_out.storage_options,
        properties=named,
        facts=sorted_out.facts,
        **sorted_out.values,
    )
    _check_combination(parsed, overwrite)
    return parsed


def _check_combination(options: WriteOptions, overwrite: bool) -> None:
    if options.replace_table and not overwrite:
        raise InvalidOptionError("'replaceTable' is for overwrites")
    if options.if_exists is not None and overwrite:
        raise InvalidOptionError(
            "'ifExists' is for writes that create a table; an overwrite replaces the one that is there"
        )
    if (options.txn_app_id is None) != (options.txn_version is None):
        raise INVALID_IDEMPOTENT_WRITES_OPTIONS(reason="one of the two options is missing")
    if options.partition_by and options.cluster_by:
        raise CLUSTER_BY_WITH_PARTITION_BY_OPTION()
    if options.replaces_matches:
        _check_replaces_matches(options, overwrite)


def _check_replaces_matches(options: WriteOptions, overwrite: bool) -> None:
    """Refuse what says in another way what is replaced, or would leave rows that stay without their columns.

    Source: delta-spark, `WriteIntoDeltaLike.validateReplaceOnOrUsingOptionCombinations`.
    """
    if options.replace_table or options.makes_table:
        raise REPLACE_ON_OR_USING_OF_NEW_TABLE()
    if options.replace_on is not None and options.replace_using is not None:
        raise INCOMPATIBLE_DATAFRAME_OPTIONS(firstDeltaOption="replaceOn", secondDeltaOption="replaceUsing")
    said = "replaceUsing" if options.replace_on is None else "replaceOn"
    if options.replace_where is not None:
        raise OVERWRITE_BY_FILTER_WITH_REPLACE_ON_OR_USING()
    if options.dynamic_partitions is not None:
        raise DYNAMIC_PARTITION_OVERWRITE_WITH_REPLACE_ON_OR_USING()
    if options.overwrite_schema and overwrite:
        raise INCOMPATIBLE_DATAFRAME_OPTIONS(firstDeltaOption="overwriteSchema", secondDeltaOption=said)
    if not options.data_change:
        raise INCOMPATIBLE_DATAFRAME_OPTIONS(firstDeltaOption="dataChange", secondDeltaOption=said)
    if options.read_version is not None:
        # It reads the newest version of the table itself.
        raise INCOMPATIBLE_DATAFRAME_OPTIONS(firstDeltaOption="readVersion", secondDeltaOption=said)
