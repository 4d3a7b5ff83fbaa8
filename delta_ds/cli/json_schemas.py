"""What `--json` prints, as JSON Schema: one for each command, and the command `schema` that shows them."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import typer

from delta_ds.cli import output

Schema: TypeAlias = "dict[str, Any]"

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ANY: Schema = {}
_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_VERSION: Schema = {"type": "integer", "minimum": 0}
_NUMBER: Schema = {"type": "number"}
_FLAG: Schema = {"type": "boolean"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
# In ISO form.
_TIME: Schema = {"type": "string", "format": "date-time"}
# By names of the table's or of an operation's.
_MAP: Schema = {"type": "object"}
_ROWS: Schema = {"type": "array", "items": _MAP, "description": "A row each, by the names of the columns."}


def _maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _object(**fields: Schema) -> Schema:
    """An object that has all of these; later versions may add others."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def _partly(schema: Schema, *optional: str) -> Schema:
    """An object in which some fields may be missing."""
    return {**schema, "required": [name for name in schema["required"] if name not in optional]}


_DIFFERENCE = _object(added=_MAP, removed=_MAP, changed=_MAP)
_STEP = _object(
    command=_TEXT,
    reason=_TEXT,
    outcome=_TEXT,
    version=_maybe(_VERSION),
    seconds=_NUMBER,
    metrics=_MAP,
    error=_maybe(_TEXT),
)
_MEASUREMENT = _partly(_object(
    name=_TEXT, seconds=_object(p50=_NUMBER, p95=_NUMBER, max=_NUMBER), rounds=_COUNT, rowsPerSecond=_NUMBER,
    bytesPerSecond=_NUMBER, processorSeconds=_NUMBER, calls=_MAP, dominatedBy=_TEXT,
), "rowsPerSecond", "bytesPerSecond")  # fmt: skip
_VECTOR = _object(
    storageType=_TEXT,
    pathOrInlineDv=_TEXT,
    offset=_maybe(_COUNT),
    sizeInBytes=_COUNT,
    cardinality=_maybe(_COUNT),
)

SCHEMAS: dict[str, Schema] = {
    "detail": _object(
        version=_VERSION, format=_TEXT, id=_TEXT, name=_maybe(_TEXT), description=_maybe(_TEXT), location=_TEXT,
        createdAt=_maybe(_TIME), lastModified=_TIME, partitionColumns=_TEXTS, clusteringColumns=_TEXTS,
        numFiles=_COUNT, sizeInBytes=_COUNT, properties=_MAP, minReaderVersion=_COUNT, minWriterVersion=_COUNT,
        tableFeatures=_TEXTS,
        columns=_list(_object(name=_TEXT, type=_TEXT, nullable=_FLAG, comment=_maybe(_TEXT))),
    ),
    "history": _list(_object(
        version=_VERSION, timestamp=_TIME, userId=_maybe(_TEXT), userName=_maybe(_TEXT), operation=_maybe(_TEXT),
        operationParameters=_maybe(_MAP), job=_maybe(_MAP), notebook=_maybe(_MAP), clusterId=_maybe(_TEXT),
        readVersion=_maybe(_VERSION), isolationLevel=_maybe(_TEXT), isBlindAppend=_maybe(_FLAG),
        operationMetrics=_maybe(_MAP), userMetadata=_maybe(_TEXT), engineInfo=_maybe(_TEXT),
        application=_maybe(_MAP), txnId=_maybe(_TEXT),
    )),
    "properties": {"type": "object", "additionalProperties": _TEXT},
    "files": _list({"anyOf": [
        _object(path=_TEXT, kept=_FLAG, rule=_maybe(_TEXT)),  # --explain
        _partly(_object(
            path=_TEXT, size=_COUNT, partitionValues=_MAP, modificationTime={"type": "integer"},
            numRecords=_maybe(_COUNT), stats=_maybe(_TEXT), deletionVector=_maybe(_VECTOR),
            dataChange=_maybe(_FLAG), baseRowId=_maybe(_COUNT), defaultRowCommitVersion=_maybe(_VERSION),
        ), "dataChange"),
    ]}),
    "log": _list({**_MAP, "description": "Actions as they are in the log, by their kind."}),
    "show": _ROWS,
    "sql": _ROWS,
    "changes": _ROWS,
    "blame": _ROWS,
    "diff": _partly(_object(
        schema=_DIFFERENCE, properties=_DIFFERENCE, protocol=_DIFFERENCE, files=_object(added=_ANY, removed=_ANY),
        rows=_object(added=_ANY, removed=_ANY, changed=_ANY),
    ), "rows"),
    "health": _object(
        table=_TEXT, version=_VERSION, num_files=_COUNT, size_in_bytes=_COUNT, num_rows=_maybe(_COUNT),
        files_to_join=_COUNT, files_after=_COUNT, files_with_vectors=_COUNT, deleted_rows=_COUNT,
        files_without_statistics=_COUNT, commits_since_checkpoint=_COUNT, unneeded_files=_maybe(_COUNT),
        unneeded_bytes=_maybe(_COUNT), missing_files=_maybe(_COUNT), due=_list(_object(command=_TEXT, reason=_TEXT)),
    ),
    "fsck": _object(
        damage=_COUNT,
        findings=_list(_object(kind=_TEXT, damage=_FLAG, path=_TEXT, detail=_TEXT, advice=_TEXT)),
    ),
    "ui": _object(url=_TEXT),
    "bench": _object(
        delta_ds=_TEXT, python=_TEXT, processors=_COUNT, table=_maybe(_TEXT), version=_VERSION, numFiles=_COUNT,
        sizeInBytes=_COUNT, measurements=_list(_MEASUREMENT),
    ),
    "maintain": _object(table=_TEXT, dryRun=_FLAG, steps=_list(_STEP)),
    "checkpoint": _object(version=_VERSION),
    "vacuum": _object(
        dryRun=_FLAG, version=_maybe(_VERSION), numFiles=_COUNT, numBytes=_COUNT, paths=_TEXTS, folders=_TEXTS
    ),
    "restore": _partly(_object(
        version=_maybe(_VERSION), table_size_after_restore=_COUNT, num_of_files_after_restore=_COUNT,
        num_removed_files=_COUNT, num_restored_files=_COUNT, removed_files_size=_COUNT, restored_files_size=_COUNT,
    ), "table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files",
       "removed_files_size", "restored_files_size"),
    "convert": _partly(_object(version=_maybe(_VERSION), numFiles=_COUNT), "numFiles"),
    "schema": {**_MAP, "description": "A JSON Schema, or one for each command."},
    # On the error stream, of every command.
    "error": _object(error=_TEXT, condition=_maybe(_TEXT), message=_TEXT, parameters=_MAP),
}  # fmt: skip


def schema_of(command: str) -> Schema:
    """The schema of what a command prints with `--json`; of `error`, what is printed where one fails."""
    return {"$schema": _DIALECT, "title": f"pydelta {command} --json", **SCHEMAS[command]}


def schema(
    command: Annotated[
        str | None,
        typer.Argument(metavar="COMMAND", help="Of this one; `error` for what is printed where one fails."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="It is always JSON.")] = False,
) -> None:
    """What the commands print with --json, as JSON Schema."""
    if command is None:
        output.print_json({name: schema_of(name) for name in SCHEMAS})
        return
    if command not in SCHEMAS:
        import difflib

        near = difflib.get_close_matches(command, SCHEMAS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise typer.BadParameter(f"there is no command {command!r}{hint}", param_hint="COMMAND")
    output.print_json(schema_of(command))
