"""A real headless browser, driven from tests and from the script that makes the pictures of the guide."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

REQUIRE = "DELTA_DS_REQUIRE_BROWSER"
VIEWS = ("overview", "timeline", "files", "filter", "statistics", "rows", "health")
_SECONDS = 120
# It stays by itself: no sandbox for root, nothing that asks the network for something.
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip
_T = TypeVar("_T")


def _binary() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def missing() -> str | None:
    """What a browser test lacks on this machine; None: nothing."""
    absent = [] if _binary() else ["chromium"]
    absent += [] if shutil.which("chromedriver") else ["chromedriver"]
    try:
        import selenium  # noqa: F401
    except ImportError:
        absent.append("selenium")
    return f"there is no {' and no '.join(absent)} here: scripts/install_browser.sh" if absent else None


def is_required() -> bool:
    """Whether a browser test must not be skipped."""
    return os.environ.get(REQUIRE) == "1"


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with an empty profile."""
    from selenium.webdriver import Chrome
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(_binary())
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
        try:
            yield Browser(driver)
        finally:
            driver.quit()


class Browser:
    """What tests do with a page: go to a view, look at texts, click, type."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def resize(self, width: int, height: int = 900, scheme: str = "light") -> None:
        """The size of the window in CSS pixels, and which colours its user likes."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        likes = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", likes)

    def open(self, url: str, place: str = "overview") -> None:
        """A page anew, at a view with its parameters."""
        before, now = self.driver.current_url, f"{url}#{place}"
        # The page itself goes to another view much sooner than it is loaded.
        if before.startswith(f"{url}#") and self.run("return decodeURI(location.href)") != now:
            self.run("location.hash = arguments[0]", place)
        else:
            self.driver.get("about:blank")
            self.driver.get(now)
        self.settled(place)

    def go(self, place: str) -> None:
        """Another view of the page, by its tab."""
        self.click(f'#tabs a[href^="#{place}"]')
        self.settled(place)

    def settled(self, place: str) -> None:
        """Wait until a view is there, and nothing is asked for any more."""
        done = """const main = document.getElementById("main");
            return main && !main.hasAttribute("aria-busy") && main.dataset.place === location.hash
                && location.hash.slice(1).split("?")[0] === arguments[0]"""
        self.until(lambda: self.run(done, place.partition("?")[0]))

    def until(self, condition: Callable[[], _T]) -> _T:
        """Wait for something to be true; what goes away meanwhile is looked for again."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        wait: Any = WebDriverWait(
            self.driver, _SECONDS, 0.1, ignored_exceptions=[StaleElementReferenceException]
        )
        found: _T = wait.until(lambda _: condition())
        return found

    def all(self, selector: str) -> list[WebElement]:
        """The elements that a selector finds."""
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> WebElement:
        """The element that a selector finds, as soon as it is there."""
        return self.until(lambda: (self.all(selector) or [None])[0])  # type: ignore[return-value]

    def texts(self, selector: str) -> list[str]:
        """The texts that stand there."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((found) => found.innerText.trim())",
            selector,
        )
        return found

    def click(self, selector: str) -> None:
        """Click on an element."""
        self.one(selector).click()

    def button(self, text: str) -> None:
        """Click on the button of this text."""
        (found,) = [button for button in self.all("button") if button.text == text]
        found.click()

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a script."""
        return self.driver.execute_script(script, *arguments)  # type: ignore[no-untyped-call]

    def console(self) -> list[str]:
        """What the page has told its console since this was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]
