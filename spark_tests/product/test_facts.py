"""Facts stand once: names of properties, features, operations, keys and variables are written in their records only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_ds.kernel.base import environment
from delta_ds.kernel.format.features import FEATURES
from delta_ds.kernel.format.operations import OPERATIONS
from delta_ds.kernel.format.options.ignored_settings import SETTINGS, WITHOUT_EFFECT
from delta_ds.kernel.format.options.read import READ_OPTIONS
from delta_ds.kernel.format.options.settings import HONOURED, SETTING_PREFIX
from delta_ds.kernel.format.options.stream_read import STREAM_READ_OPTIONS
from delta_ds.kernel.format.options.write import WRITE_OPTIONS
from delta_ds.kernel.format.properties import PROPERTIES
from delta_ds.kernel.format.schema import field_metadata

PACKAGE = Path(environment.__file__).resolve().parents[2]
# The module that may write the names, and the names.
HOMES = {
    "kernel/format/properties.py": {*PROPERTIES},
    "kernel/format/features.py": {*FEATURES},
    "kernel/format/operations.py": {*OPERATIONS},
    "kernel/format/schema/field_metadata.py": {
        text for name, text in vars(field_metadata).items() if name.isupper() and isinstance(text, str)
    },
    "kernel/format/options/settings.py": {known.full_name for known in HONOURED},
    "kernel/format/options/ignored_settings.py": {known.full_name for known in WITHOUT_EFFECT},
    "kernel/base/environment.py": {known.name for known in environment.VARIABLES},
}
# Words that mean something else, too: an action, a field of `commitInfo`, a field of `_last_checkpoint`.
AMBIGUOUS = {"domainMetadata", "inCommitTimestamp", "v2Checkpoint"}
# Keywords of SQL are the grammar's, whatever the operation is called in the history.
GRAMMAR = ("spark/base/sql_grammar/", "spark/sql/client_references.py")

_HOME_OF = {name: home for home, names in HOMES.items() for name in names - AMBIGUOUS}
_LITERAL = re.compile("[\"'](" + "|".join(map(re.escape, _HOME_OF)) + ")[\"']")


def _strays(path: Path) -> Iterator[str]:
    text = path.read_text()
    if not _LITERAL.search(text):  # most files: parsing all of them takes seconds
        return
    where = path.relative_to(PACKAGE).as_posix()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            home = _HOME_OF.get(node.value)
            keyword = home == "kernel/format/operations.py" and where.startswith(GRAMMAR)
            if home is not None and home != where and not keyword:
                yield f"{where}:{node.lineno}: {node.value!r} is a constant of {home}"


def test_no_name_of_a_fact_is_written_outside_its_record() -> None:
    assert [stray for path in sorted(PACKAGE.rglob("*.py")) for stray in _strays(path)] == []


@pytest.mark.parametrize("home", HOMES)
def test_every_home_writes_its_names(home: str) -> None:
    text = (PACKAGE / home).read_text()
    names = (name.removeprefix(SETTING_PREFIX) for name in HOMES[home])
    assert [name for name in names if f'"{name}"' not in text] == []


def test_every_record_says_what_it_is_for() -> None:
    records = [
        *PROPERTIES.values(),
        *SETTINGS,
        *READ_OPTIONS,
        *WRITE_OPTIONS,
        *STREAM_READ_OPTIONS,
        *environment.VARIABLES,
    ]
    assert [known.name for known in records if not known.meaning] == []
