"""Make the pictures of `docs/guide/notebooks.md`: of a real table, by `plot` and by a headless Chromium.

python scripts/notebook_pictures.py [--to docs/images]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from spark_tests.behaviour.cli.ui.browser import browser  # noqa: E402
from spark_tests.product.docs.prepared import WEEKS, date_commit, weekly_orders  # noqa: E402

if TYPE_CHECKING:
    from delta_ds import DeltaLog

_DPI = 110
_PAGE = (
    '<body style="margin:0;font-family:Liberation Sans,Arial,sans-serif;font-size:14px;display:flex">'
    '<div style="flex:1;padding:12px;background:#fff;color:#111">{card}</div>'
    '<div style="flex:1;padding:12px;background:#1e1e1e;color:#ddd">{card}</div></body>'
)
_WIDTH = 1180


def draw(log: DeltaLog, to: Path) -> list[Path]:
    """The pictures of `plot`; the files."""
    from delta_ds.kernel.commands.optimize.command import optimize
    from delta_ds.kernel.commands.optimize.request import OptimizeRequest

    optimize(log, OptimizeRequest("zorder", columns=("customer",)))
    date_commit(log, WEEKS + 1)
    figures = {
        "plot-history": log.plot.history(),
        "plot-layout": log.plot.layout("customer", versions=(WEEKS, WEEKS + 1)),
        "plot-skipping": log.plot.skipping("customer = 17 and day >= date'2026-05-01'"),
    }
    made = []
    for name, figure in figures.items():
        made.append(to / f"{name}.png")
        # Without matplotlib's version in it, so that a picture changes when what it shows does.
        figure.savefig(made[-1], dpi=_DPI, metadata={"Software": None})
    return made


def photograph(log: DeltaLog, folder: Path, to: Path) -> Path:
    """The card of the table, on a light and on a dark background; the file."""
    card = log.snapshot()._repr_html_().replace(str(folder), "/data")
    page = folder / "page.html"
    page.write_text(f'<!doctype html><meta charset="utf-8">{_PAGE.format(card=card)}', encoding="utf-8")
    made = to / "notebook-table.png"
    with browser() as window:
        window.resize(_WIDTH, 300)
        window.driver.get(page.as_uri())
        window.resize(_WIDTH, int(window.run("return document.body.scrollHeight")))
        window.driver.save_screenshot(str(made))
    return made


def make(to: Path) -> list[Path]:
    """Make the table and all pictures; the files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = weekly_orders(folder / "orders")
        return [photograph(log, folder, to), *draw(log, to)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "images")
    for picture in make(parser.parse_args().to):
        print(picture)
