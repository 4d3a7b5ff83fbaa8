"""What is public, as lines of text: names with signatures, options, conditions, the command line and the rest.

`spark_tests/product/public_surface` has them as they were promised (`docs/compatibility.md`).
`scripts/generate_docs.py` writes what is new there; what is gone or different it refuses, unless it is told
`--accept-changes`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import io
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "spark_tests" / "product" / "public_surface"

# Public beside `delta_ds.__all__`, as docs/architecture.md says.
MORE_NAMES = (
    "delta_ds.kernel.commands.dml.delete:delete",
    "delta_ds.kernel.commands.optimize.command:optimize",
    "delta_ds.spark.register:Capability",
    "delta_ds.testing:TableBuilder",
)


# Which classes users make themselves; the others are got from methods.
CONSTRUCTED = ("delta_ds.DeltaLog", "delta_ds.testing.TableBuilder")


def names() -> Iterator[str]:
    """Functions, classes with their methods, and attributes, with signatures."""
    import delta_ds

    for name in delta_ds.__all__:
        yield from _of(f"delta_ds.{name}", getattr(delta_ds, name))
    for place in MORE_NAMES:
        module, _, name = place.partition(":")
        yield from _of(f"{module}.{name}", getattr(importlib.import_module(module), name))


def _of(shown: str, value: Any) -> Iterator[str]:
    if not inspect.isclass(value):
        yield f"{shown}{_signature(value)}"
        return
    bases = [base.__name__ for base in value.__bases__ if base is not object]
    yield f"class {shown}({', '.join(bases)})"
    if shown in CONSTRUCTED:
        yield f"{shown}{_signature(value)}"
    # What errors inherit is said once.
    homes = (value,) if issubclass(value, BaseException) else value.__mro__
    hidden = getattr(value, "_INTERNAL", frozenset())
    for home in homes:
        if home.__module__.partition(".")[0] == "delta_ds":
            yield from _members(shown, home, hidden)
            hidden |= vars(home).keys()


def _members(shown: str, home: type, hidden: Set[str]) -> Iterator[str]:
    for name, type_ in inspect.get_annotations(home).items():
        if not name.startswith("_"):
            yield f"{shown}.{name}: {type_}"
    for name, member in vars(home).items():
        if name in hidden or name.startswith("_") and name not in ("__arrow_c_stream__", "_repr_html_"):
            continue
        if isinstance(member, (classmethod, staticmethod)) or inspect.isfunction(member):
            function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
            kind = "" if inspect.isfunction(member) else f"{type(member).__name__} "
            yield f"{kind}{shown}.{name}{_signature(function)}"
        elif isinstance(member, property) or hasattr(member, "func"):
            getter = member.fget if isinstance(member, property) else member.func
            yield f"property {shown}.{name} -> {inspect.signature(getter).return_annotation}"


class _Plain(str):
    """The text of an annotation, which a signature shows without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _signature(function: Callable[..., Any]) -> str:
    found = inspect.signature(function)
    parameters = [p.replace(annotation=_plain(p.annotation)) for p in found.parameters.values()]
    return str(found.replace(parameters=parameters, return_annotation=_plain(found.return_annotation)))


def _plain(annotation: Any) -> Any:
    return _Plain(annotation) if isinstance(annotation, str) else annotation


def options() -> Iterator[str]:
    """Options of reads, writes and streams, and every name of a store's settings."""
    from delta_ds.kernel.format.options.read import READ_OPTIONS
    from delta_ds.kernel.format.options.stream_read import STREAM_READ_OPTIONS
    from delta_ds.kernel.format.options.write import BATCH_ONLY, WRITE_OPTIONS
    from delta_ds.kernel.storage.settings.vocabulary import vocabulary
    from delta_ds.kernel.storage.store_options import STORE_OPTIONS

    sets = {"read": READ_OPTIONS, "write": WRITE_OPTIONS, "readStream": STREAM_READ_OPTIONS}
    for kind, found in sets.items():
        for option in found:
            for name in (option.name, *option.aliases):
                yield f"{kind} {name}: {option.type} = {option.default}"
    yield from (f"writeStream {option.name}" for option in WRITE_OPTIONS if option.name not in BATCH_ONLY)
    yield from (f"storage.{name}" for name in STORE_OPTIONS)
    for scheme in ("s3", "abfs", "gs"):
        yield from (f"{scheme} {name}" for name in vocabulary(scheme).by_name)


def settings() -> Iterator[str]:
    """Settings of a session with an effect, table properties, features and environment variables."""
    from delta_ds.kernel.base.environment import VARIABLES
    from delta_ds.kernel.format.features import FEATURES
    from delta_ds.kernel.format.options.ignored_settings import SETTINGS
    from delta_ds.kernel.format.properties import PROPERTIES

    yield from (f"setting {s.full_name} = {s.default}" for s in SETTINGS if s.honoured)
    ours = re.findall(r"`(spark\.pydelta\.[\w.]+)`", (ROOT / "docs" / "settings.md").read_text())
    yield from (f"setting {name}" for name in ours)
    for known in PROPERTIES.values():
        if known.acts_on != "refused":
            yield f"property {known.name}: {known.type.name} = {known.default}"
    for feature in FEATURES.values():
        reads = feature.read or feature.kind == "writer"
        what = [word for word, does in (("read", reads), ("written", feature.write)) if does]
        if what:
            yield f"feature {feature.name}: {', '.join(what)}"
    yield from (f"variable {variable.name}" for variable in VARIABLES)


def conditions() -> Iterator[str]:
    """Error conditions, with classes, SQLSTATE and parameters."""
    from delta_ds.conditions.index import all_conditions

    for name, texts in all_conditions().items():
        classes = sorted({text.error.__name__ for text in texts})
        parameters = sorted({parameter for text in texts for parameter in text.parameters})
        yield f"{name} {texts[0].sql_state} {'|'.join(classes)} ({', '.join(parameters)})"


def command_line() -> Iterator[str]:
    """Commands of `pydelta`, with their arguments, options and exit statuses."""
    import typer.main

    from delta_ds.cli import output
    from delta_ds.cli.app import make_app

    for name, command in typer.main.get_command(make_app()).commands.items():  # type: ignore[attr-defined]
        for parameter in command.params:
            kind = parameter.param_type_name
            shown = (
                parameter.opts + parameter.secondary_opts if kind == "option" else [parameter.name.upper()]
            )
            needed = " (required)" if parameter.required else ""
            yield f"pydelta {name} {' '.join(shown)}{needed}"
    yield from (
        f"exit status {status}: {name.lower()}"
        for name, status in vars(output).items()
        if name in ("FOUND", "USAGE", "FAILED", "INTERRUPTED")
    )


# What is run for the fields of JSON: on a copy of the table `sales`, the name of which each command gets in place of T.
JSON_COMMANDS = (
    "detail T", "history T", "properties T", "files T", "files T --explain", "log T -v 0", "changes T --from 5 --to 5",
    "diff T@v3 T@v4 --key order_id", "health T", "fsck T", "vacuum T --dry-run", "checkpoint T", "restore T -v 2",
    "bench T --rounds 1",
)  # fmt: skip
# Whose keys are names of the table's, or differ with what was done.
_OWN_KEYS = {
    "properties", "partitionValues", "operationParameters", "operationMetrics", "configuration", "changed", "added",
    "removed", "parameters", "tags", "options", "commitInfo", "calls",
}  # fmt: skip


def json_fields() -> Iterator[str]:
    """The fields of what commands print with --json."""
    from delta_ds.__main__ import main

    with tempfile.TemporaryDirectory() as folder:
        table = shutil.copytree(ROOT / "examples" / "data" / "sales", Path(folder, "sales"))
        for line in JSON_COMMANDS:
            command, *arguments = line.split()
            with contextlib.redirect_stdout(io.StringIO()) as out:
                arguments = [re.sub(r"^T(?=@|$)", str(table), argument) for argument in arguments]
                status = main([command, *arguments, "--json"])
            if status:
                raise ValueError(f"pydelta {line} ended with {status}")
            if command not in ("properties", "changes"):
                flag = " --explain" if "--explain" in arguments else ""
                yield from (
                    f"pydelta {command}{flag} --json {path}" for path in _fields(json.loads(out.getvalue()))
                )


def _fields(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _fields(item, f"{path}[]")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield f"{path}.{name}"
            if name not in _OWN_KEYS:
                yield from _fields(item, f"{path}.{name}")


def events() -> Iterator[str]:
    """Names and fields of the lines that the logger `delta_ds` has."""
    from delta_ds.events.index import EVENTS

    for event in EVENTS.values():
        yield event.name
        yield from (f"{event.name}.{field}" for field in event.fields)


SURFACES: dict[str, Callable[[], Iterable[str]]] = {
    part.__name__: part for part in (names, options, settings, conditions, command_line, json_fields, events)
}


@functools.cache
def surface() -> dict[Path, list[str]]:
    """What is public now, by the file that records it."""
    return {RECORDED / f"{name}.txt": sorted(set(lines())) for name, lines in SURFACES.items()}


def outdated() -> tuple[dict[Path, str], list[str]]:
    """The files that differ from what is public, with their new text, and the lines that would leave them."""
    found, gone = {}, []
    for file, lines in surface().items():
        recorded = file.read_text().splitlines() if file.exists() else []
        if recorded != lines:
            found[file] = "".join(f"{line}\n" for line in lines)
            gone += [f"{file.stem}: {line}" for line in recorded if line not in set(lines)]
    return found, gone


INSTRUCTION = """These are gone from what is public, or differ:

{lines}

docs/compatibility.md promises that programs which use them go on working. Bring them back (a new argument needs a
default and comes last; an old name can stay beside a new one). What was deprecated in a release before (a record in
delta_ds/deprecations.py) may go, and so may what no release has had:

    python scripts/generate_docs.py --accept-changes

and tell users in CHANGELOG.md, under Removed or Changed, what to do."""


def instruction(gone: list[str]) -> str:
    """What to do about lines that are gone."""
    return INSTRUCTION.format(lines="\n".join(f"    {line}" for line in gone))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for found in surface().values():
        print("\n".join(found))
