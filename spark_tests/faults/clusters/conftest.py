"""The table of what scenarios found: printed at the end, and put into a page by `--clusters-page`."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_tests.faults.clusters.outcome import Outcome, markdown, replace_table

_FOUND = pytest.StashKey[list[Outcome]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--clusters-page", help="the page that gets the table of scenarios on clusters")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_FOUND] = []


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest) -> list[Outcome]:
    """What scenarios found; tests add to it."""
    return request.config.stash[_FOUND]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found = config.stash.get(_FOUND, [])
    if not found:
        return
    terminalreporter.write_sep("=", "clusters")
    terminalreporter.write_line(markdown(found))
    page = config.getoption("--clusters-page", default=None)
    if page is not None:
        replace_table(Path(page), markdown(found))
