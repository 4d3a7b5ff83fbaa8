"""The rows of the matrix: one feature each, the table that stands for it, and what users can do where it is refused."""

from __future__ import annotations

from delta_ds.kernel.format import features
from delta_ds.kernel.format.features import TableFeature
from delta_ds.records import dataclass


@dataclass(frozen=True, slots=True)
class Feature:
    """One row.

    Attributes
    ----------
    room
        The part of the page.
    title
        As the page names it.
    table
        The name of its table, see `tables.build_of`.
    supports
        The table features that it stands for: the table's protocol has them.
    advice
        How to write for engines that refuse it, as Markdown; empty: there is no other way.
    version
        Which version is read; None: the latest.
    manifests
        What is read are the Parquet files that the manifests name, not the table.
    by_delta_spark
        SQL by which delta-spark writes a table `{t}` of the same feature (`{f}` is a folder beside it). Where an
        engine misreads ours, what it makes of that one tells whose fault it is.
    """

    room: str
    title: str
    table: str
    supports: tuple[TableFeature, ...] = ()
    advice: str = ""
    version: int | None = None
    manifests: bool = False
    by_delta_spark: tuple[str, ...] = ()


TYPES, LAYOUT, ROWS, LOG, COMMANDS = "Types and names", "Files", "Rows", "Log and protocol", "Commands"

NO_VECTORS = (
    '`delta.enableDeletionVectors = false`, then `dropFeatureSupport("deletionVectors")`, which purges them; '
    "`REORG TABLE ... APPLY (PURGE)` alone rewrites the files"
)
NO_MAPPING = (
    "`delta.columnMapping.mode = none` when the table is created, with plain names of columns; from an "
    'existing table `dropFeatureSupport("columnMapping")` takes it away'
)
NO_VARIANTS = "a `STRING` column of JSON in place of `VARIANT`"
NO_WIDENING = '`dropFeatureSupport("typeWidening")`, which rewrites the files of narrower types'
NO_NTZ = "`TIMESTAMP` in place of `TIMESTAMP_NTZ`"
CLASSIC = "`delta.checkpointPolicy = classic`"
NO_PROTOCOL_CHECK = '`dropFeatureSupport("vacuumProtocolCheck")`'
DEEP = "a deep clone, whose files lie below its own folder"
# What delta-spark makes of the same.
CHARS = (
    "CREATE TABLE {t} (id BIGINT, v VARCHAR(5), c CHAR(3)) USING delta",
    "INSERT INTO {t} VALUES (1, 'abcde', 'x')",
)
NULLS = (
    "CREATE TABLE {t} (id BIGINT, s STRUCT<a: INT>, l ARRAY<INT>, ll ARRAY<STRUCT<a: INT>>) USING delta",
    "INSERT INTO {t} VALUES (1, NULL, NULL, NULL), (2, NAMED_STRUCT('a', 1), ARRAY(1), ARRAY(NULL))",
)
PARTITIONS = (
    "CREATE TABLE {t} (id BIGINT, p DECIMAL(20, 5)) USING delta PARTITIONED BY (p)",
    "INSERT INTO {t} VALUES (1, 123456789012345.00001)",
)
BYTES = (
    "CREATE TABLE {t} (id BIGINT, p BINARY) USING delta PARTITIONED BY (p)",
    "INSERT INTO {t} VALUES (1, X'41')",
)
PREFIXES = (
    "CREATE TABLE {t} (id BIGINT, p INT) USING delta PARTITIONED BY (p)"
    " TBLPROPERTIES ('delta.randomizeFilePrefixes' = 'true')",
    "INSERT INTO {t} VALUES (1, 1), (2, NULL)",
)
MAPPED = (
    "CREATE TABLE {t} (id BIGINT, old STRING, m MAP<STRING, STRUCT<a: INT, l: ARRAY<STRUCT<b: STRING>>>>, p INT)"
    " USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')",
    "INSERT INTO {t} VALUES (1, 'x', MAP('k', NAMED_STRUCT('a', 1, 'l', ARRAY(NAMED_STRUCT('b', 'y')))), 5)",
    "ALTER TABLE {t} RENAME COLUMN old TO text",
    "ALTER TABLE {t} RENAME COLUMN p TO q",
)
BY_NAME = tuple(text.replace("{mode}", "name") for text in MAPPED)
BY_ID = tuple(text.replace("{mode}", "id") for text in MAPPED)
MAPPED_LATER = (
    "CREATE TABLE {t} (id BIGINT, text STRING) USING delta",
    "INSERT INTO {t} VALUES (1, 'row 1')",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "ALTER TABLE {t} RENAME COLUMN text TO Words",
    "INSERT INTO {t} VALUES (2, 'row 2')",
)
MAPPED_AND_DELETED = (
    "CREATE TABLE {t} (id BIGINT, p INT) USING delta PARTITIONED BY (p)"
    " TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')",
    "INSERT INTO {t} SELECT id, id % 2 FROM RANGE(40)",
    "DELETE FROM {t} WHERE id = 7",
)
MAPPED_CLUSTERED = (
    "CREATE TABLE {t} (id BIGINT, text STRING) USING delta CLUSTER BY (text)"
    " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "INSERT INTO {t} VALUES (1, 'row 1')",
)
CLONE = (
    "CREATE TABLE {f} (id BIGINT, text STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    "INSERT INTO {f} VALUES (1, 'row 1')",
    "CREATE TABLE {t} SHALLOW CLONE {f}",
)
WIDENED = (
    "CREATE TABLE {t} (id BIGINT, s STRUCT<n: BYTE>, l ARRAY<SHORT>) USING delta"
    " TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
    "INSERT INTO {t} VALUES (1, NAMED_STRUCT('n', 7Y), ARRAY(1S)), (2, NULL, NULL)",
    "ALTER TABLE {t} CHANGE COLUMN s.n TYPE INT",
    "ALTER TABLE {t} CHANGE COLUMN l.element TYPE INT",
)

ALL = (
    Feature(TYPES, "every primitive type, extreme values, nulls", "plain_types"),
    Feature(TYPES, "structs, arrays, maps", "nested_types", by_delta_spark=NULLS),
    Feature(TYPES, "`TIMESTAMP_NTZ`", "timestamp_without_zone", (features.TIMESTAMP_NTZ,), NO_NTZ,
            by_delta_spark=NULLS),
    Feature(TYPES, "`VARIANT`", "variants", (features.VARIANT_TYPE,), NO_VARIANTS),
    Feature(TYPES, "`VARIANT`, preview", "variant_preview", (features.VARIANT_TYPE_PREVIEW,), NO_VARIANTS),
    Feature(
        TYPES, "`VARIANT` in a table that allows shredding", "variant_shredding",
        (features.VARIANT_SHREDDING,), "`delta.enableVariantShredding` left out",
    ),
    Feature(
        TYPES, "`VARIANT` in a table that allows shredding, preview", "variant_shredding_preview",
        (features.VARIANT_SHREDDING_PREVIEW,),
        NO_VARIANTS,
    ),
    Feature(TYPES, "`CHAR(n)`, `VARCHAR(n)`", "char_and_varchar",
            advice="`STRING`, padded by whoever needs that", by_delta_spark=CHARS),
    Feature(TYPES, "type widening", "widened_types", (features.TYPE_WIDENING,), NO_WIDENING, by_delta_spark=WIDENED),
    Feature(
        TYPES, "type widening, preview", "type_widening_preview", (features.TYPE_WIDENING_PREVIEW,),
        NO_WIDENING.replace("typeWidening", "typeWidening-preview"),
    ),
    Feature(TYPES, "names of columns with dots, backticks, other letters", "names_of_columns"),
    Feature(TYPES, "columns added at the top, in structs, in arrays", "evolving_schema", by_delta_spark=NULLS),
    Feature(LAYOUT, "partitions of every type, with nulls", "partitions_of_every_type", by_delta_spark=PARTITIONS),
    Feature(LAYOUT, "partition values with signs, blanks, other letters", "partitions_of_awkward_texts"),
    Feature(LAYOUT, "partitions of `BINARY`", "partitions_of_bytes", advice="another column to partition by",
            by_delta_spark=BYTES),
    Feature(LAYOUT, "files with prefixes in place of partition folders", "random_prefixes", by_delta_spark=PREFIXES),
    Feature(
        LAYOUT, "partition columns in the files", "materialized_partition_columns",
        (features.MATERIALIZE_PARTITION_COLUMNS,),
    ),
    Feature(
        LAYOUT, "column mapping by name, renamed and dropped columns", "column_mapping_by_name",
        (features.COLUMN_MAPPING,), NO_MAPPING, by_delta_spark=BY_NAME),
    Feature(
        LAYOUT, "column mapping by id, renamed and dropped columns", "column_mapping_by_id",
        (features.COLUMN_MAPPING,), NO_MAPPING, by_delta_spark=BY_ID),
    Feature(
        LAYOUT, "column mapping of a table that was there before", "column_mapping_of_an_existing_table",
        (features.COLUMN_MAPPING,), NO_MAPPING, by_delta_spark=MAPPED_LATER),
    Feature(LAYOUT, "every codec", "codecs", advice="the option `compression`; `delta.parquet.compression.codec`"),
    Feature(
        LAYOUT, "data pages of the second version", "newer_data_pages",
        advice="`delta.parquet.format.version = 1.0.0`, the default",
    ),
    Feature(LAYOUT, "several row groups", "several_row_groups"),
    Feature(LAYOUT, "liquid clustering", "clustering", (features.CLUSTERING,), by_delta_spark=NULLS),
    Feature(
        LAYOUT, "liquid clustering of mapped columns", "clustering_of_mapped_columns", (features.CLUSTERING,),
        NO_MAPPING, by_delta_spark=MAPPED_CLUSTERED),
    Feature(ROWS, "deletion vectors", "deleted_rows", (features.DELETION_VECTORS,), NO_VECTORS),
    Feature(
        ROWS, "deletion vectors in a checkpoint", "deleted_rows_in_a_checkpoint",
        (features.DELETION_VECTORS,), NO_VECTORS,
    ),
    Feature(
        ROWS, "deletion vectors, partitions and mapped columns", "deleted_rows_of_partitions_and_mapped_columns",
        (features.DELETION_VECTORS, features.COLUMN_MAPPING), NO_VECTORS, by_delta_spark=MAPPED_AND_DELETED),
    Feature(
        ROWS, "row tracking", "row_tracking", (features.ROW_TRACKING, features.DOMAIN_METADATA),
    ),
    Feature(ROWS, "change data feed", "change_data_feed", (features.CHANGE_DATA_FEED,)),
    Feature(
        ROWS, "change data feed, mapped columns, row tracking", "change_data_feed_with_mapped_columns",
        (features.CHANGE_DATA_FEED, features.COLUMN_MAPPING, features.ROW_TRACKING), NO_MAPPING,
        by_delta_spark=MAPPED_AND_DELETED),
    Feature(ROWS, "generated columns", "generated_columns", (features.GENERATED_COLUMNS,)),
    Feature(ROWS, "identity columns", "identity_columns", (features.IDENTITY_COLUMNS,)),
    Feature(ROWS, "default values of columns", "column_defaults", (features.COLUMN_DEFAULTS,)),
    Feature(ROWS, "check constraints", "check_constraints", (features.CHECK_CONSTRAINTS,)),
    Feature(ROWS, "`NOT NULL` at the top and in structs", "not_null"),
    Feature(ROWS, "invariants", "invariants", (features.INVARIANTS,)),
    Feature(ROWS, "append-only", "append_only", (features.APPEND_ONLY,)),
    Feature(ROWS, "no rows", "no_rows"),
    Feature(LOG, "classic checkpoint", "checkpoint"),
    Feature(LOG, "checkpoint with typed statistics alone", "checkpoint_with_typed_statistics_only"),
    Feature(LOG, "checkpoint with JSON statistics alone", "checkpoint_with_json_statistics_only"),
    Feature(LOG, "checkpoint of typed partition values", "checkpoint_of_partitions", by_delta_spark=PARTITIONS),
    Feature(LOG, "V2 checkpoint with sidecars", "checkpoint_v2", (features.V2_CHECKPOINT,), CLASSIC),
    Feature(
        LOG, "V2 checkpoint, vectors, row tracking, mapping by id", "checkpoint_v2_of_everything",
        (features.V2_CHECKPOINT, features.DELETION_VECTORS, features.ROW_TRACKING, features.COLUMN_MAPPING),
        CLASSIC, by_delta_spark=MAPPED_AND_DELETED),
    Feature(LOG, "log whose first commits are cleaned up", "cleaned_log"),
    Feature(
        LOG, "cleaned-up log behind V2 checkpoints", "cleaned_log_with_v2_checkpoints", (features.V2_CHECKPOINT,),
        CLASSIC,
    ),
    Feature(LOG, "in-commit timestamps", "in_commit_timestamps", (features.IN_COMMIT_TIMESTAMP,)),
    Feature(
        LOG, "vacuum protocol check", "vacuum_protocol_check", (features.VACUUM_PROTOCOL_CHECK,),
        NO_PROTOCOL_CHECK,
    ),
    Feature(
        LOG, "a dropped feature and checkpoint protection", "checkpoint_protection",
        (features.CHECKPOINT_PROTECTION,),
    ),
    Feature(
        LOG, "catalog-managed table, by its path", "catalog_managed", (features.CATALOG_MANAGED,),
        "the engine has to ask the catalog; a deep clone can be read by its path",
    ),
    Feature(LOG, "domain metadata", "domain_metadata", (features.DOMAIN_METADATA,)),
    Feature(LOG, "every feature at once, supported and not used", "all_features", (features.VARIANT_SHREDDING,)),
    Feature(LOG, "overwritten schema and partitioning", "overwritten_schema"),
    Feature(LOG, "time travel to before an overwritten schema", "overwritten_schema", version=1),
    Feature(LOG, "time travel to before added columns", "evolving_schema", version=2, by_delta_spark=NULLS),
    Feature(
        LOG, "time travel to before rows were deleted", "deleted_rows", (features.DELETION_VECTORS,), NO_VECTORS,
        version=2,
    ),
    Feature(COMMANDS, "shallow clone", "shallow_clone_by_absolute_paths", advice=DEEP, by_delta_spark=CLONE),
    Feature(
        COMMANDS, "shallow clone with deletion vectors", "shallow_clone_of_deleted_rows",
        (features.DELETION_VECTORS,), f"{DEEP}; {NO_VECTORS}", by_delta_spark=CLONE),
    Feature(
        COMMANDS, "deep clone with deletion vectors", "deep_clone_of_deleted_rows", (features.DELETION_VECTORS,),
        NO_VECTORS,
    ),
    Feature(COMMANDS, "`CONVERT TO DELTA`", "converted_from_parquet"),
    Feature(COMMANDS, "`OPTIMIZE`", "optimized", (features.ROW_TRACKING,)),
    Feature(COMMANDS, "`RESTORE`", "restored"),
    Feature(COMMANDS, "`GENERATE symlink_format_manifest`, the files it names", "symlink_manifest", manifests=True),
    Feature(
        COMMANDS, "Iceberg compatibility V1", "iceberg_compat_v1", (features.ICEBERG_COMPAT_V1,), NO_MAPPING,
        by_delta_spark=BY_NAME,
    ),
    Feature(
        COMMANDS, "Iceberg compatibility V2", "iceberg_compat_v2", (features.ICEBERG_COMPAT_V2,), NO_MAPPING,
        by_delta_spark=BY_NAME,
    ),
    Feature(
        COMMANDS, "Iceberg compatibility V3", "iceberg_compat_v3", (features.ICEBERG_COMPAT_V3,), NO_MAPPING,
        by_delta_spark=BY_NAME,
    ),
)  # fmt: skip


def offered() -> tuple[Feature, ...]:
    """The rows of what this package writes: those of table features that it only knows are left out."""
    return tuple(row for row in ALL if all(feature.write for feature in row.supports))
