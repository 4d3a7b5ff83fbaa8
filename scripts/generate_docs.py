"""Write the generated parts of the documentation anew; with `--check` only compare, and fail where they differ.

A part lies between `<!-- generated: NAME -->` and `<!-- end: NAME -->` in a page of `docs/`. It is made of what the
code says of itself: first lines of docstrings, and the records of options, settings, properties and variables.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import pkgutil
import re
import string
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
for _folder in (str(ROOT), str(ROOT / "scripts")):
    if _folder not in sys.path:
        sys.path.insert(0, _folder)

import public_surface  # noqa: E402
from tested_versions import PACKAGES  # noqa: E402

TESTED = ("python", "java", *PACKAGES)

PACKAGE = ROOT / "delta_ds"
DOCS = ROOT / "docs"

_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end: \2 -->\n)", re.DOTALL)


def first_line(source: Path) -> str:
    """The first line of a module's docstring, the first sentence of a Java class's comment; empty without one."""
    text = source.read_text()
    if source.suffix == ".java":
        found = re.search(r"^(?://|/\*\*)(.+?)(?:\.\s|\*/)", text, re.MULTILINE | re.DOTALL)
        return re.sub(r"\s*\n? \* ", " ", found[1]).strip().removesuffix(".") + "." if found else ""
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


def rooms() -> list[str]:
    """Every folder of the package with what it is for."""
    folders = [
        PACKAGE,
        *sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE),
    ]
    entries = []
    for folder in folders:
        depth = len(folder.relative_to(ROOT).parts) - 1
        entries.append(("  " * depth + folder.name + "/", first_line(folder / "__init__.py")))
    return _columns(entries)


def modules() -> list[str]:
    """Every file of the package with what it is for, folder by folder."""
    lines: list[str] = []
    for folder in [
        PACKAGE,
        *sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE),
    ]:
        files = sorted(
            path
            for path in folder.iterdir()
            if path.suffix in (".py", ".java") and path.name != "__init__.py"
        )
        if files:
            lines += [
                f"**`{folder.relative_to(ROOT).as_posix()}/`**: {first_line(folder / '__init__.py')}",
                "",
            ]
            lines += [f"- `{path.name}`: {first_line(path)}" for path in files]
            lines.append("")
    return lines[:-1]


def layers() -> list[str]:
    """The directions of imports, as the contracts of import-linter have them."""
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10; pytest brings it
        import tomli as tomllib

    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    lines = []
    for contract in contracts:
        if contract["type"] == "layers":
            shown = [layer.removeprefix("delta_ds.").replace(" : ", ", ") for layer in contract["layers"]]
            inside = ", ".join(
                name.removeprefix("delta_ds.") for name in contract.get("containers", ["the package"])
            )
            lines += [f"- in {inside}: " + " -> ".join(f"`{layer}`" for layer in shown).replace(", ", "`, `")]
        else:
            lines += [f"- {contract['name'][0].lower()}{contract['name'][1:]}"]
    return lines


def sessions() -> list[str]:
    """What comes out in each kind of session, where they differ, as the tests have it."""
    from spark_tests.behaviour.spark.engines.seam.ways import KINDS, WAYS

    differing = [way for way in WAYS if way.others]
    rows = [
        [
            way.name,
            *("as in the first" if kind not in way.others else f"`{way.others[kind]}`" for kind in KINDS[1:]),
        ]
        for way in differing
    ]
    same = len(WAYS) - len(differing)
    return [
        *_table(
            ["what", "without Spark's own reader and writer", "Spark Connect, with a server of others"], rows
        ),
        "",
        f"{same} other ways of reading and writing, some under settings that change what expressions mean, come out "
        "the same in all three (`spark_tests/behaviour/spark/engines/seam/test_behaviour.py`).",
    ]


def _columns(entries: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in entries) + 2
    return ["```", *(f"{name:<{width}}{text}" for name, text in entries), "```"]


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; bars in the cells are escaped."""
    escaped = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    return [
        f"| {' | '.join(titles)} |",
        f"|{'---|' * len(titles)}",
        *(f"| {' | '.join(row)} |" for row in escaped),
    ]


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def _mark(name: str, kind: str = "") -> str:
    """A name with a mark that links lead to: `options.md#write-mergeschema`, `properties.md#delta.appendonly`."""
    mark = f"{kind}-{name}" if kind else name
    return f'<a id="{mark.lower()}"></a>{_code(name)}'


def _options(options: Iterable[object], kind: str) -> list[str]:
    from delta_ds.kernel.format.options.parsing import Option

    rows = []
    for option in options:
        assert isinstance(option, Option)
        older = (
            f" (older name: {', '.join(_code(alias) for alias in option.aliases)})" if option.aliases else ""
        )
        rows.append([_mark(option.name, kind), option.type, option.default or "", option.meaning + older])
    return _table(["option", "type", "default", "meaning"], rows)


def read_options() -> list[str]:
    from delta_ds.kernel.format.options.read import READ_OPTIONS

    return _options(READ_OPTIONS, "read")


def write_options() -> list[str]:
    from delta_ds.kernel.format.options.write import WRITE_OPTIONS

    return _options(WRITE_OPTIONS, "write")


def stream_read_options() -> list[str]:
    from delta_ds.kernel.format.options.stream_read import STREAM_READ_OPTIONS

    return _options(STREAM_READ_OPTIONS, "stream")


def batch_only_options() -> list[str]:
    from delta_ds.kernel.format.options.write import BATCH_ONLY

    return _table(["option", "why not"], [[_code(name), why] for name, why in BATCH_ONLY.items()])


def store_options() -> list[str]:
    from delta_ds.kernel.storage.store_options import STORE_OPTIONS

    return _table(
        ["option", "meaning"], [[_mark(f"storage.{name}"), text] for name, text in STORE_OPTIONS.items()]
    )


def _store_settings(scheme: str) -> list[str]:
    """Every setting of a store by all of its names; those of one meaning share a row."""
    from delta_ds.kernel.storage.settings.vocabulary import vocabulary

    rows: dict[tuple[tuple[str, ...], str], list[list[str]]] = {}
    for setting in dict.fromkeys(vocabulary(scheme).by_name.values()):
        row = rows.setdefault((setting.target, setting.meaning), [[], [], []])
        names = ([setting.python] if setting.python else [], setting.hadoop, (*setting.names, *setting.bare))
        for cell, new in zip(row, names, strict=True):
            cell += [name for name in new if name not in cell]
    return _table(
        ["meaning", "fsspec", "Hadoop", "delta-rs and others"],
        [[meaning, *(", ".join(map(_code, cell)) for cell in row)] for (_, meaning), row in rows.items()],
    )


def s3_settings() -> list[str]:
    return _store_settings("s3")


def azure_settings() -> list[str]:
    return _store_settings("abfs")


def gcs_settings() -> list[str]:
    return _store_settings("gs")


def _settings(honoured: bool) -> list[list[str]]:
    from delta_ds.kernel.format.options.ignored_settings import SETTINGS

    return [[_mark(s.name), _code(s.default), s.meaning] for s in SETTINGS if s.honoured == honoured]


def honoured_settings() -> list[str]:
    return _table(["name", "default", "meaning"], _settings(honoured=True))


def settings_without_effect() -> list[str]:
    return _table(["name", "default", "instead"], _settings(honoured=False))


def machinery_settings() -> list[str]:
    from delta_ds.kernel.format.options.ignored_settings import MACHINERY

    names: dict[str, list[str]] = {}
    for setting in MACHINERY:
        names.setdefault(setting.meaning, []).append(_code(setting.name))
    return _table(["why not", "names"], [[why, ", ".join(found)] for why, found in names.items()])


def environment_variables() -> list[str]:
    from delta_ds.kernel.base.environment import VARIABLES

    return _table(
        ["name", "default", "meaning"], [[_mark(v.name), _code(v.default), v.meaning] for v in VARIABLES]
    )


def _properties(*acts_on: str) -> list[list[str]]:
    from delta_ds.kernel.format.properties import PROPERTIES

    return [
        [
            _mark(known.name),
            known.type.name,
            _code(known.default),
            known.meaning + ("" if known.settable else " (set by the engine only)"),
        ]
        for known in PROPERTIES.values()
        if known.acts_on in acts_on
    ]


def honoured_properties() -> list[str]:
    return _table(["property", "type", "default", "meaning"], _properties("read", "write", "both"))


def properties_without_effect() -> list[str]:
    return _table(["property", "type", "default", "meaning"], _properties("nothing"))


def refused_properties() -> list[str]:
    return _table(["property", "meaning"], [[row[0], row[3]] for row in _properties("refused")])


def features() -> list[str]:
    from delta_ds.kernel.format.features import FEATURES

    rows = []
    for feature in FEATURES.values():
        versions = {"reader": feature.legacy_reader, "writer": feature.legacy_writer}
        asked = {
            "": feature.enabled_by and f"{_code(feature.enabled_by.name)}{_values(feature.enabled_values)}",
            "a property that begins with ": feature.enabled_by_prefix and _code(feature.enabled_by_prefix),
            "a column of type ": feature.column_type,
            "a column with ": ", ".join(map(_code, feature.column_metadata)),
            "preview of ": feature.stands_for and feature.stands_for.name,
            "on existing tables by ": feature.by_hand and "name only",
        }
        rows.append(
            [
                feature.name,
                feature.kind,
                ", ".join(f"{side} {version}" for side, version in versions.items() if version),
                "; ".join(f"{how}{what}" for how, what in asked.items() if what) or "its name",
                ", ".join(needed.name for needed in feature.depends_on),
                "yes" if feature.read or feature.kind == "writer" else "no",
                "yes" if feature.write else "no",
            ]
        )
    titles = ["feature", "kind", "implied by", "asked for by", "depends on", "read", "written"]
    return _table(titles, rows)


def _values(values: Sequence[str]) -> str:
    return f" = {' or '.join(values)}" if values else " (any value)"


def error_conditions() -> list[str]:
    """Every condition under a heading of its own, by subject, so that search finds it and links lead to it."""
    from delta_ds.conditions.index import all_conditions

    subjects: dict[str, list[str]] = {}
    homes = _subjects()
    for name, texts in all_conditions().items():
        lines = subjects.setdefault(homes[name], [])
        classes = dict.fromkeys(_code(text.error.__name__) for text in texts)
        state = texts[0].sql_state
        lines += [f"#### {name}", "", ", ".join(classes) + (f", SQLSTATE {state}" if state else ""), ""]
        shown = dict.fromkeys(_error_text(text.text) for text in texts if text.text)
        meaning = (texts[0].error.__doc__ or "").strip().partition("\n")[0]
        lines += [f"- {text}" for text in shown if re.search(r"\w{3}.* \w", text)]
        lines += [] if lines[-1] else [f"- Each error says what happened: {meaning}"]
        lines.append("")
    # What only a class says of itself comes last.
    order = sorted(subjects, key=lambda subject: (subject.startswith("Errors of a class"), subject))
    return [line for subject in order for line in (f"### {subject}", "", *subjects[subject])][:-1]


def _subjects() -> dict[str, str]:
    """The subject of each condition: what its module says that it is about."""
    from delta_ds import conditions
    from delta_ds.conditions.record import ErrorCondition

    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(conditions.__path__, f"{conditions.__name__}."):
        loaded = importlib.import_module(module.name)
        about = (loaded.__doc__ or "").partition("\n")[0].removeprefix("Conditions of ").rstrip(".")
        subject = "Errors of a class, each in its own words" if module.name.endswith(".classes") else about
        for record in vars(loaded).values():
            if isinstance(record, ErrorCondition):
                found.setdefault(record.name, subject[0].upper() + subject[1:])
    return found


def _error_text(text: str) -> str:
    """The text of a condition with the names of its values, how they are written left out."""
    parts = string.Formatter().parse(text)
    plain = "".join(literal + (rf"\{{{name}\}}" if name else "") for literal, name, _, _ in parts)
    return re.sub(r"([*<>])", r"\\\1", " ".join(plain.split()))


def log_events() -> list[str]:
    """Every log event, subject by subject."""
    import logging

    from delta_ds.events.index import SUBJECTS, events_of

    lines: list[str] = []
    for subject, module in SUBJECTS.items():
        rows = [
            [
                _code(event.name),
                logging.getLevelName(event.level),
                ", ".join(map(_code, event.fields)),
                event.meaning,
                event.action,
            ]
            for event in events_of(module)
        ]
        titles = ["event", "level", "fields", "what happened", "what to do"]
        lines += [f"## {subject}", "", *_table(titles, rows), ""]
    return lines[:-1]


def exit_statuses() -> list[str]:
    """What the statuses of `pydelta` say."""
    from delta_ds.cli.output import STATUSES

    return _table(["status", "what it says"], [[str(status), text] for status, text in STATUSES.items()])


def deltalake_names() -> list[str]:
    """deltalake's public names and what they are called here, each with its parameters."""
    import deltalake_names as names

    return _table([f"deltalake {names.recorded()['version']}", "here"], names.rows())


def deprecations() -> list[str]:
    from delta_ds.deprecations import DEPRECATIONS

    if not DEPRECATIONS:
        return ["Nothing is deprecated."]
    return _table(
        ["deprecated", "since", "gone in", "instead"],
        [[_code(d.name), d.since, d.until, d.instead] for d in DEPRECATIONS],
    )


def tested_versions() -> list[str]:
    record = json.loads((DOCS / "tested-versions.json").read_text())
    runs = [entry["versions"] for entry in record]
    rows = [
        [name, *(run.get(name, "") for run in runs)] for name in TESTED if any(name in run for run in runs)
    ]
    return _table(["", *(_code(entry["suite"]) for entry in record)], rows)


def _engines() -> Any:
    """What `make engines-page` measured."""
    return json.loads((DOCS / "engines.json").read_text())


def engines() -> list[str]:
    """The engines of the matrix, as they were asked."""
    return _table(
        ["engine", "versions", "asked by", ""],
        [
            [name, told["versions"], _code(told["how"]), told.get("failed") or told["note"]]
            for name, told in _engines()["engines"].items()
        ],
    )


_SIGNS = {
    "same rows": "yes",
    "same rows, other types": "types",
    "not asked": "",
    "refused": "refuses",
    "crashed": "**crashes**",
    "wrong rows": "**WRONG**",
}


def engines_matrix() -> list[str]:
    """What each engine makes of each feature."""
    record = _engines()
    lines: list[str] = []
    for room in dict.fromkeys(row["room"] for row in record["features"]):
        rows = [row for row in record["features"] if row["room"] == room]
        signs = [
            [row["title"], *(_SIGNS[row["cells"][name][0]] for name in record["engines"])] for row in rows
        ]
        lines += [f"### {room}", "", *_table([room.lower(), *record["engines"]], signs), ""]
    return lines[:-1]


def engines_reasons() -> list[str]:
    """For each feature that some engine does not read as it was written: who, why, and what to write instead."""
    lines: list[str] = []
    for row in _engines()["features"]:
        said = {
            name: (grade, detail)
            for name, (grade, detail) in row["cells"].items()
            if grade in ("refused", "crashed", "wrong rows", "same rows, other types")
        }
        if not said:
            continue
        lines += [f"#### {row['title'][0].upper()}{row['title'][1:]}", ""]
        if row["advice"]:
            lines += [f"To write for all engines: {row['advice']}.", ""]
        alike: dict[tuple[str, str, str], list[str]] = {}
        for name, (grade, detail) in said.items():
            alike.setdefault((grade, detail, row["of delta-spark"].get(name, "")), []).append(name)
        for (grade, detail, peer), names in alike.items():
            also = f" Of delta-spark's table: {peer}." if peer else ""
            loud = f"**{grade}**" if grade in ("wrong rows", "crashed") else grade
            lines.append(f"- {', '.join(names)}: {loud}: {_quoted(detail)}.{also}")
        lines.append("")
    return lines[:-1]


# Files of `examples/` that pages show whole, by the names of their parts.
SHOWN = {
    "example_airflow": "airflow/orders.py",
    "example_airflow_spark": "airflow/totals.py",
    "example_dagster": "dagster/orders.py",
    "example_docker_job": "docker/job.py",
    "example_docker_python": "docker/python.Dockerfile",
    "example_docker_spark": "docker/spark.Dockerfile",
    "example_kedro_catalog": "kedro/conf/base/catalog.yml",
    "example_kedro_settings": "kedro/src/shop/settings.py",
}
_LANGUAGES = {".py": "python", ".yml": "yaml", ".Dockerfile": "dockerfile"}


def shown(file: str) -> list[str]:
    """A file of `examples/` as a block."""
    path = ROOT / "examples" / file
    return [
        f'```{_LANGUAGES[path.suffix]} title="examples/{file}"',
        *path.read_text().strip().splitlines(),
        "```",
    ]


def _quoted(detail: str) -> str:
    short = detail if len(detail) <= 200 else detail[:199].rstrip() + "…"
    return "`` " + short.replace("`", "") + " ``"


PARTS: dict[str, Callable[[], list[str]]] = {
    **{name: partial(shown, file) for name, file in SHOWN.items()},
}
PARTS |= {
    part.__name__: part
    for part in (
        layers,
        rooms,
        modules,
        read_options,
        write_options,
        stream_read_options,
        batch_only_options,
        store_options,
        s3_settings,
        azure_settings,
        gcs_settings,
        honoured_settings,
        settings_without_effect,
        machinery_settings,
        environment_variables,
        honoured_properties,
        properties_without_effect,
        refused_properties,
        features,
        error_conditions,
        log_events,
        exit_statuses,
        deltalake_names,
        deprecations,
        tested_versions,
        engines,
        engines_matrix,
        engines_reasons,
        sessions,
    )
}


def generated(text: str) -> str:
    """A page with its generated parts as the code has them now.

    Raises
    ------
    KeyError
        The page names a part that there is not.
    """
    return _PART.sub(lambda part: part[1] + "\n".join(PARTS[part[2]]()) + "\n" + part[3], text)


def outdated() -> dict[Path, str]:
    """The pages, and records of what is public, that differ from what the code says, and what they should be."""
    pages = {page: page.read_text() for page in sorted(DOCS.rglob("*.md"))}
    outdated_pages = {page: new for page, old in pages.items() if (new := generated(old)) != old}
    return {**outdated_pages, **public_surface.outdated()[0]}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="only compare; exit code 1 where a page is outdated"
    )
    parser.add_argument(
        "--accept-changes", action="store_true", help="also where something public is gone or different"
    )
    given = parser.parse_args()
    check = given.check
    pages = outdated()
    if gone := [] if given.accept_changes else public_surface.outdated()[1]:
        sys.exit(public_surface.instruction(gone))
    for page, text in pages.items():
        name = page.relative_to(ROOT)
        if check:
            print(f"{name} is outdated: run scripts/generate_docs.py", file=sys.stderr)
        else:
            page.write_text(text)
            print(f"wrote {name}")
    return 1 if check and pages else 0


if __name__ == "__main__":
    sys.exit(main())
