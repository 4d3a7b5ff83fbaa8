"""Make the pictures of `docs/guide/ui.md`: the page of a real table in a headless Chromium.

python scripts/ui_pictures.py [--to docs/images]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from spark_tests.behaviour.cli.ui.browser import Browser, browser  # noqa: E402

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds import DeltaLog

_WHERE = "country = 'DE' AND day >= '2026-06-20'"
# The name of a picture: the view, what to wait for, and how high a part of it is shown.
PICTURES = {
    "ui-timeline": ("timeline?show=21", "#details-21 dl", 1010),
    "ui-files": ("files", "#file-list", 720),
    "ui-filter": (f"filter?where={_WHERE}", "#verdict", 900),
    "ui-statistics": (f"statistics?column=day&where={_WHERE}", "#ranges svg", 950),
}
_WIDTH = 1100
_FILE_BYTES = 24_000
# The folder of the table is another one each time.
_RENAME = """const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(arguments[0], "/data");"""


def make_table(folder: Path) -> DeltaLog:
    """Orders of 20 weeks, one commit a week; then a DELETE, an OPTIMIZE along the days, and three more weeks."""
    from delta_ds import DeltaLog
    from delta_ds.kernel.commands.dml.delete import delete
    from delta_ds.kernel.commands.optimize.command import optimize
    from delta_ds.kernel.commands.optimize.request import OptimizeRequest

    log = DeltaLog(folder / "orders")
    chance = random.Random(7)
    options = {"partitionBy": "country", "delta.enableDeletionVectors": "true"}
    for week in range(20):
        log.write(_orders(chance, week), options=options if week == 0 else {})
    delete(log, "customer = 17")
    optimize(log, OptimizeRequest("zorder", columns=("day",)).with_settings(max_file_size=_FILE_BYTES))
    for week in range(20, 24):
        log.write(_orders(chance, week))
    return log


def _orders(chance: random.Random, week: int) -> pa.Table:
    import pyarrow as pa

    first, rows = date(2026, 1, 5) + timedelta(weeks=week), 900 + 40 * week
    return pa.table(
        {
            "order_id": [100_000 + week * 2000 + n for n in range(rows)],
            "day": [first + timedelta(days=chance.randrange(7)) for _ in range(rows)],
            "country": chance.choices(["DE", "FR", "PL", "SE"], [8, 5, 2, 1], k=rows),
            "customer": [chance.randrange(200) for _ in range(rows)],
            "amount": [chance.randrange(100, 20_000) / 100 for _ in range(rows)],
        }
    )


def take(window: Browser, url: str, folder: str, to: Path) -> list[Path]:
    """Take every picture of a page, with the table's folder called `/data`; the files."""
    made = []
    for name, (place, wanted, height) in PICTURES.items():
        window.resize(_WIDTH, height)
        window.open(url, place)
        window.one(wanted)
        window.until(lambda: window.run("return document.fonts.status") == "loaded")
        # Drawings know their width a moment later.
        window.until(lambda: not window.all(".chart:empty"))
        window.run("scrollTo(0, 0)")
        window.run(_RENAME, folder)
        made.append(to / f"{name}.png")
        window.driver.save_screenshot(str(made[-1]))
    return made


def make(to: Path) -> list[Path]:
    """Make the table, serve it and take the pictures; the files."""
    from delta_ds.cli.ui.server import open_server
    from delta_ds.cli.ui.view import TableView

    with tempfile.TemporaryDirectory() as folder:
        log = make_table(Path(folder))
        with open_server(TableView(log), "127.0.0.1", 0) as server, browser() as window:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            made = take(window, server.url, folder, to)
            server.shutdown()
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "images")
    for picture in make(parser.parse_args().to):
        print(picture)
