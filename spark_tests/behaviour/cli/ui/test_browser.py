"""The page of a table in a real browser: what its users see and click."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.kernel.transaction.alter.properties import set_properties
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.cli.ui.browser import VIEWS, Browser, browser, is_required, missing
from spark_tests.behaviour.cli.ui.serving import Page, running, served

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(missing() is not None and not is_required(), reason=missing() or ""),
]

SALES = Path(__file__).resolve().parents[4] / "examples" / "data" / "sales"
WHERE = "country = 'DE' AND sold_on >= DATE'2026-04-01'"
EVIL = "<img src=x onerror='window.hit=1'><script>window.hit=1</script>"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    lacking = missing()
    if lacking is not None:
        pytest.fail(lacking)
    with browser() as found:
        yield found


@pytest.fixture
def window(chromium: Browser) -> Iterator[Browser]:
    """The browser at a usual size; a test that leaves complaints in the console has failed."""
    chromium.resize(1200)
    chromium.console()
    yield chromium
    assert chromium.console() == []


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("browser") / "sales"
    shutil.copytree(SALES, path)
    with served(path) as page:
        yield page


_NAMELESS = """return [...document.querySelectorAll("input, button, a")].filter((element) => element.offsetParent
  && !(element.labels && element.labels.length) && !element.textContent.trim() && !element.ariaLabel).length"""


def test_every_view_is_a_click_away(window: Browser, sales: Page) -> None:
    window.open(sales.server.url)
    assert window.texts("h1") == ["sales"]
    assert "sales version 7" in window.driver.title
    for view in VIEWS:
        window.go(view)
        assert window.texts("#tabs a[aria-current=page]") == [view.capitalize()]
        assert not window.all(".error") and window.one(f"#view-{view}").text
        assert window.run(_NAMELESS) == 0, f"{view} has fields without labels, or buttons without names"


def test_the_overview_tells_what_the_table_is(window: Browser, sales: Page) -> None:
    window.open(sales.server.url)
    assert window.texts(".figures dd")[:4] == ["7\nnewest", "241", "18", "39.6 KiB"]
    text = window.one("#view-overview").text
    for expected in ("order_id", "decimal(10,2)", "delta.enableDeletionVectors", "deletionVectors"):
        assert expected in text


def test_a_version_opens_to_its_metrics_and_actions(window: Browser, sales: Page) -> None:
    window.open(sales.server.url, "timeline")
    assert window.texts("[id^=version-]") == [str(version) for version in range(7, -1, -1)]
    assert len(window.all("svg .version")) == 8
    window.click("#version-4")
    window.until(lambda: "numUpdatedRows" in window.one("#details-4").text)
    assert window.one("#version-4").get_attribute("aria-expanded") == "true"
    kinds = window.texts("#details-4 td[data-label=Action]")
    assert sorted(kinds) == ["add"] * 6 + ["cdc"] * 3 + ["remove"] * 3
    window.click("#details-4 summary")
    assert '"operation": "UPDATE"' in window.one("#details-4 pre").text
    window.click("#version-4")
    assert not window.one("#details-4").is_displayed()


def test_the_drawing_of_versions_opens_them_and_changes_its_measure(window: Browser, sales: Page) -> None:
    window.open(sales.server.url, "timeline")
    # Null while the drawing is made anew.
    bar = "return document.querySelector('svg [data-version=\"6\"] rect.added')?.getAttribute('height')"
    before = window.until(lambda: window.run(bar))
    window.button("Files")
    window.until(lambda: window.run(bar) not in (None, before))
    window.click('svg [data-version="6"] .hit')
    window.until(lambda: "numTargetRowsInserted" in window.one("#details-6").text)


def test_travel_in_time_changes_every_view(window: Browser, sales: Page) -> None:
    window.open(sales.server.url, "timeline")
    window.click("#version-2")
    window.until(lambda: window.texts("#details-2 button")[:1] == ["Show the table at version 2"])
    window.button("Show the table at version 2")
    window.settled("overview")
    assert window.one("#past").text == "This is version 2 of 7: the table as it was then."
    assert window.texts(".figures dd")[1:3] == ["120", "6"]
    window.go("files")
    window.until(lambda: window.texts(".figures dd")[:1] == ["6"])
    window.click("#later")
    window.until(lambda: window.texts(".figures dd")[:1] == ["9"])
    window.driver.back()
    window.until(lambda: window.texts(".figures dd")[:1] == ["6"])
    window.click("#newest")
    window.until(lambda: window.texts(".figures dd")[:1] == ["18"])
    assert not window.one("#past").is_displayed()
    field = window.one("#at")
    field.clear()
    field.send_keys("2026-11-21 10:54:33\n")
    window.until(lambda: "version 4 of 7" in window.one("#past").text)


def test_a_version_that_is_not_there_is_an_error_with_its_condition(window: Browser, sales: Page) -> None:
    window.open(sales.server.url, "overview?at=99")
    assert "DELTA_VERSION_NOT_FOUND" in window.one(".error[role=alert]").text
    window.click("#newest")
    window.settled("overview")
    window.until(lambda: not window.all(".error"))
    (complaint,) = window.console()
    assert "404" in complaint


def test_a_filter_says_what_it_reads_and_why(window: Browser, sales: Page) -> None:
    window.open(sales.server.url, "filter")
    window.one("#where").send_keys(f"{WHERE}\n")
    window.until(lambda: window.texts("#verdict") != [])
    assert window.one("#verdict").text == "1 of 18 files are read (5.6 %; 2.2 KiB of 39.6 KiB)"
    cells = [cell.get_attribute("class") for cell in window.all(".strip span")]
    assert (cells.count("kept"), cells.count("skipped")) == (1, 17)
    text = window.one("#view-filter").text
    assert "(country = 'DE'): partition values" in text
    assert "(sold_on >= DATE'2026-04-01'): min/max and null count" in text
    window.button("Read")
    window.until(lambda: len(window.all("td[data-label=Path]")) == 1)
    window.button("Show rows that match")
    window.settled("rows")
    window.until(lambda: len(window.all("#view-rows tbody tr")) == 23)


def test_a_wrong_filter_is_told_and_can_be_mended(window: Browser, sales: Page) -> None:
    window.open(sales.server.url, "filter")
    window.one("#where").send_keys("cuontry = 'DE'\n")
    assert "UNRESOLVED_COLUMN" in window.one(".error").text
    field = window.one("#where")
    field.clear()
    field.send_keys("country = 'DE'\n")
    window.until(lambda: window.texts("#verdict")[:1] and "6 of 18" in window.one("#verdict").text)
    assert not window.all(".error")
    (complaint,) = window.console()
    assert "400" in complaint


def test_files_are_seen_by_partition_and_sorted(window: Browser, sales: Page) -> None:
    window.open(sales.server.url, "files")
    assert window.texts("td[data-label=Partition] button") == ["country=DE", "country=FR", "country=PL"]
    assert len(window.all("#file-list td[data-label=Path]")) == 18
    window.all("td[data-label=Partition] button")[1].click()
    window.until(lambda: len(window.all("#file-list td[data-label=Path]")) == 6)
    assert all("country=FR" in text for text in window.texts("#file-list td[data-label=Path]"))
    (rows,) = [button for button in window.all("#file-list button.sort") if button.text.startswith("Rows")]
    rows.click()
    window.until(lambda: window.all("#file-list th[aria-sort=descending]"))
    numbers = [int(text) for text in window.texts("#file-list td[data-label=Rows]")]
    assert numbers == sorted(numbers, reverse=True)


def test_ranges_of_a_column_are_drawn_and_coloured(window: Browser, sales: Page) -> None:
    window.open(sales.server.url, "statistics")
    (column,) = [button for button in window.all("button.link") if button.text == "sold_on"]
    column.click()
    window.until(lambda: len(window.all("#ranges svg rect.range")) == 18)
    assert "reads 4.3 of 18 files" in window.one("#ranges").text
    window.one("#range-where").send_keys("country = 'DE'\n")
    window.until(lambda: len(window.all("#ranges svg rect.kept")) == 6)
    assert len(window.all("#ranges svg rect.skipped")) == 12


def test_many_versions_and_files_come_page_by_page(window: Browser, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "many")
    table.create(pa.schema([("id", pa.int64())]))
    table.commit(*[
        {"add": {"path": f"f{n:03}", "partitionValues": {}, "size": n, "modificationTime": 0, "dataChange": True}}
        for n in range(120)
    ])  # fmt: skip
    for _ in range(118):
        table.commit()
    with served(table.path) as page:
        window.open(page.server.url, "timeline")
        assert (window.texts("[id^=version-]")[0], len(window.all("[id^=version-]"))) == ("119", 50)
        for first in ("69", "19"):
            window.button("Older")
            window.until(lambda first=first: window.texts("[id^=version-]")[:1] == [first])
        assert not [b for b in window.all("button") if b.text == "Older" and b.is_enabled()]
        window.click("#version-1")
        window.until(lambda: "1–25 of 120" in window.one("#details-1").text)
        window.button("Next")
        window.until(lambda: "26–50 of 120" in window.one("#details-1").text)
        window.go("files")
        window.button("Next")
        window.until(lambda: window.texts("td[data-label=Path]")[:1] == ["f050"])


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A table whose every text is markup."""
    path = tmp_path_factory.mktemp("odd") / "<b>t"
    log = DeltaLog(path)
    options = {"delta.columnMapping.mode": "name", "partitionBy": "p", "userMetadata": EVIL}
    log.write(pa.table({EVIL: [EVIL, "b"], "p": [EVIL, "c"]}), options=options)
    set_properties(log, {EVIL: EVIL})
    with served(path) as page:
        yield page


def test_markup_in_a_table_is_text(window: Browser, odd: Page) -> None:
    places = ["overview", "timeline", "files", "rows", "health", "statistics"]
    window.open(odd.server.url)
    for place in places:
        window.go(place)
        if place == "timeline":
            window.click("#version-0")
            window.until(lambda: EVIL in window.one("#details-0").text)
        assert place == "health" or EVIL in window.one("#main").text, place
        assert window.run("return window.hit") is None
        assert not window.all("#main img, #main script, h1 *, #location *")
    window.click("td[data-label=Column] button")
    window.until(lambda: EVIL in window.one("#ranges").text)
    assert window.one("h1").text == "<b>t"


def test_markup_in_a_predicate_is_text(window: Browser, odd: Page) -> None:
    window.open(odd.server.url, f"filter?where={EVIL}")
    assert window.one("#where").get_attribute("value") == EVIL
    assert window.one(".error").text and not window.all("#main img, #main script")
    window.open(odd.server.url, f"filter?where=p = '{EVIL.replace(chr(39), chr(34))}'")
    window.until(lambda: window.texts("#verdict") != [])
    assert "<script>" in window.one("#view-filter").text
    assert not window.all("#main img, #main script") and window.run("return window.hit") is None
    (complaint,) = window.console()
    assert "400" in complaint


def test_the_browser_itself_would_refuse_markup(window: Browser, sales: Page) -> None:
    window.open(sales.server.url)
    refused = (
        "try { document.body.innerHTML = '<b>x</b>'; return 'done' } catch (error) { return error.name }"
    )
    assert window.run(refused) == "TypeError"
    window.run("const s = document.createElement('style'); s.textContent = 'x'; document.body.append(s)")
    window.until(lambda: len(window.all("style")) == 1)
    complaints = window.console()
    assert complaints and all(
        "Content Security Policy" in text or "TrustedHTML" in text for text in complaints
    )


def test_a_narrow_window_shows_everything_without_scrolling_sideways(
    window: Browser, sales: Page, odd: Page
) -> None:
    window.resize(400)
    for page, where in ((sales, WHERE), (odd, "p = 'c'")):
        for place in (*VIEWS[:3], f"filter?where={where}", "statistics", "rows", "health"):
            window.open(page.server.url, place)
            assert window.run("return document.documentElement.scrollWidth") <= 400, place
            (tab,) = window.all("#tabs a[aria-current=page]")
            assert tab.rect["x"] >= 0 and tab.rect["x"] + tab.rect["width"] <= 400, place
    window.open(sales.server.url, "timeline?show=6")
    window.until(lambda: "numTargetRowsInserted" in window.one("#details-6").text)
    assert window.run("return document.documentElement.scrollWidth") <= 400
    assert "Then" in window.run(
        "return getComputedStyle(arguments[0], '::before').content", window.all("td[data-label=Then]")[0]
    )


_CONTRAST = """
const luminance = (color) => {
  const parts = color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if (!/, 0\\)$|transparent/.test(color)) return color;
  }
  return "rgb(255, 255, 255)";
};
return [...document.querySelectorAll("body *")].filter((element) => element.offsetParent && !element.disabled
    && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
  .map((element) => {
    const [one, two] = [luminance(getComputedStyle(element).color), luminance(behind(element))].sort((a, b) => b - a);
    return [Math.round((one + 0.05) / (two + 0.05) * 100) / 100, element.className, element.textContent.slice(0, 40)];
  }).sort((a, b) => a[0] - b[0])[0];
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(window: Browser, sales: Page, scheme: str) -> None:
    window.resize(1200, scheme=scheme)
    backs = set()
    for place in (
        "overview?at=3",
        "timeline?show=6",
        "files",
        f"filter?where={WHERE}",
        "statistics?column=sold_on",
        "health",
    ):
        window.open(sales.server.url, place)
        if "show" in place:
            window.until(lambda: "numTargetRowsInserted" in window.one("#details-6").text)
        contrast, *where = window.run(_CONTRAST)
        assert contrast >= 4.5, (place, contrast, where)
        backs.add(window.run("return getComputedStyle(document.body).backgroundColor"))
    assert backs == {"rgb(255, 255, 255)" if scheme == "light" else "rgb(18, 22, 29)"}


def test_the_keyboard_is_enough(window: Browser, sales: Page) -> None:
    from selenium.webdriver import ActionChains, Keys

    def press(key: str) -> None:
        ActionChains(window.driver).send_keys(key).perform()

    def focused() -> str:
        return str(window.driver.switch_to.active_element.text)

    def tab_to(text: str) -> None:
        for _ in range(40):
            press(Keys.TAB)
            if focused() == text:
                return
        raise AssertionError(f"no way to {text}")

    window.open(sales.server.url)
    press(Keys.TAB)
    assert focused() == "Skip to content"
    tab_to("Timeline")
    press(Keys.ENTER)
    window.settled("timeline")
    tab_to("5")
    press(Keys.ENTER)
    window.until(lambda: "numDeletedRows" in window.one("#details-5").text)
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert window.run(outline) == "solid"
    press(Keys.SPACE)
    window.until(lambda: not window.one("#details-5").is_displayed())


def test_a_page_whose_server_is_gone_says_so(window: Browser, tmp_path: Path) -> None:
    DeltaLog(tmp_path / "t").write(pa.table({"id": [1]}))
    with running(str(tmp_path / "t")) as (program, url):
        window.open(url)
        program.send_signal(signal.SIGINT)
        assert program.wait(timeout=120) == 0
    window.go("files")
    assert "is pydelta ui still running?" in window.one(".error").text
    assert all("ERR_CONNECTION_REFUSED" in text for text in window.console())
