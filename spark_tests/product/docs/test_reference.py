"""Every option, property, setting, variable and condition is in the reference, with its meaning and a mark."""

from __future__ import annotations

import re

import pytest

from delta_ds.conditions.index import all_conditions
from delta_ds.kernel.base.environment import VARIABLES
from delta_ds.kernel.format.options.ignored_settings import MACHINERY, SETTINGS
from delta_ds.kernel.format.options.read import READ_OPTIONS
from delta_ds.kernel.format.options.stream_read import STREAM_READ_OPTIONS
from delta_ds.kernel.format.options.write import WRITE_OPTIONS
from delta_ds.kernel.format.properties import PROPERTIES
from delta_ds.kernel.storage.settings.vocabulary import vocabulary
from delta_ds.kernel.storage.store_options import STORE_OPTIONS
from spark_tests.product.docs.blocks import DOCS

MARKS = {
    "options.md": [
        *(f"read-{option.name}" for option in READ_OPTIONS),
        *(f"write-{option.name}" for option in WRITE_OPTIONS),
        *(f"stream-{option.name}" for option in STREAM_READ_OPTIONS),
        *(f"storage.{name}" for name in STORE_OPTIONS),
    ],
    "properties.md": list(PROPERTIES),
    "settings.md": [*(setting.name for setting in SETTINGS), *(variable.name for variable in VARIABLES)],
}


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", MARKS)
def test_every_name_has_a_row_with_its_meaning(page: str) -> None:
    rows = dict(
        re.findall(
            r'^\| <a id="([^"]+)"></a>`[^`]+` \|(?:.* \|)? ((?:[^|]|\\\|)*) \|$', text(page), re.MULTILINE
        )
    )
    assert len(MARKS[page]) > 10
    for name in MARKS[page]:
        assert len(rows.get(name.lower(), "").split()) > 1, f"{page} does not say what {name} is for"


def test_every_setting_that_is_known_only_is_named() -> None:
    page = text("settings.md")
    assert [setting.name for setting in MACHINERY if f"`{setting.name}`" not in page] == []


def test_every_name_of_a_setting_of_a_store_is_there() -> None:
    page = text("storage.md")
    names = {name for scheme in ("s3", "abfs", "gs") for name in vocabulary(scheme).by_name}
    assert len(names) > 100
    assert [name for name in names if f"`{name}`".lower() not in page.lower()] == []


def test_every_condition_has_a_heading_a_class_and_what_happened() -> None:
    sections = dict(
        re.findall(r"^#### (\S+)\n\n(.*?)(?=^###|<!-- end)", text("errors.md"), re.MULTILINE | re.DOTALL)
    )
    assert set(sections) == set(all_conditions())
    for name, section in sections.items():
        assert re.match(r"`\w+`.*\n\n- \S+ \S+ \S+", section), f"errors.md does not say what {name} is"
