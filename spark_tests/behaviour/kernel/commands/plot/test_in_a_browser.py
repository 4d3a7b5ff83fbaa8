"""Cards in a real browser: nothing of a table runs, and all of it can be read on any background."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from delta_ds.kernel.base.card import Card, CardTable, Share
from spark_tests.behaviour.cli.ui.browser import Browser, browser, is_required, missing

pytestmark = pytest.mark.browser

HOSTILE = "</td></table></div><script>window.ran = 1</script><img src=x onerror='window.ran = 1'>&lt;b&gt;"


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    lacking = missing()
    if lacking is not None:
        if is_required():
            pytest.fail(lacking)
        pytest.skip(lacking)
    with browser() as opened:
        yield opened


@pytest.mark.parametrize("background, ink", [("#fff", "rgb(17, 17, 17)"), ("#111", "rgb(221, 221, 221)")])
def test_a_hostile_card_is_text_in_the_colours_of_the_page(
    window: Browser, tmp_path: Path, background: str, ink: str
) -> None:
    card = Card(
        HOSTILE, [(HOSTILE, HOSTILE)], [CardTable([HOSTILE, "n"], [(HOSTILE, Share(0.5))], 7)], HOSTILE
    )
    page = tmp_path / "page.html"
    style = f"background:{background};color:{ink}"
    page.write_text(f'<meta charset="utf-8"><body style="{style}">{card.html()}</body>', encoding="utf-8")
    window.driver.get(page.as_uri())
    assert window.run("return [window.ran, document.scripts.length, document.images.length]") == [None, 0, 0]
    shown = window.run("return document.body.innerText")
    assert shown.count(HOSTILE) == 6 and "and 7 more" in shown
    colours = "return [...document.querySelectorAll('td,th,strong')].map(e => getComputedStyle(e).color)"
    assert set(window.run(colours)) == {ink}
    assert set(window.run(colours.replace(").color", ").backgroundColor"))) == {"rgba(0, 0, 0, 0)"}
