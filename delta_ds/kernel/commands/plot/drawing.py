"""What all pictures share: figures without pyplot, texts that are no formulas, axes that users give.

Source: matplotlib, "Figures and backends": a figure that pyplot does not know needs no display, and is freed by itself.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base.card import plain

SKIPPED, READ = "0.62", "C0"
# Days since 1970 that dates of matplotlib can be: the years 1 to 9999.
FIRST_DAY, LAST_DAY = -719_162.0, 2_932_896.0
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class Drawing(Figure):
    """A figure that a notebook shows as it is, and shows once, with a text for those who do not see it."""

    @property
    def alternative_text(self) -> str:
        """What the picture shows, in words: its titles, and what is along its axes."""
        parts = [self.get_suptitle()]
        for ax in self.axes:
            sides = " over ".join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))
            parts.append(": ".join(filter(None, (ax.get_title(), sides))))
        return ". ".join(" ".join(plain(part, 300).split()) for part in map(_in_one_line, parts) if part)

    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=self.dpi)
        return data.getvalue(), {"alt": self.alternative_text}


def _in_one_line(text: str) -> str:
    return ", ".join(text.splitlines())


def new_drawing(width: float, height: float) -> Drawing:
    """An empty figure of so many inches, in the user's style."""
    return Drawing(figsize=(width, height), layout="constrained")


def given_axes(ax: Any, counts: Sequence[int], what: str) -> list[Axes]:
    """The axes that a user gave, as a list.

    Parameters
    ----------
    ax
        One, or several in any kind of sequence or array.
    counts
        How many there may be.
    what
        The picture, for the message.

    Raises
    ------
    InvalidOptionError
        They are not as many, or no axes.
    """
    import numpy as np

    found = list(np.ravel(np.asarray(ax, dtype=object)))
    if not all(isinstance(each, Axes) for each in found):
        raise InvalidOptionError(
            f"ax of {what} must be Axes of matplotlib, as plt.subplots() gives them, and is {plain(repr(ax))}",
            parameters={"ax": type(ax).__name__},
        )
    if len(found) not in counts:
        wanted = " or ".join(map(str, counts))
        raise InvalidOptionError(
            f"{what} is drawn into {wanted} Axes, and ax has {len(found)}", parameters={"ax": len(found)}
        )
    return found


def words(text: str, most: int = 80, width: int | None = None) -> str:
    """Text of a table for a picture: cut, no formula, and in lines of at most `width` letters."""
    text = plain(text, most)
    lines = textwrap.wrap(text, width) if width else [text]
    return "\n".join(lines).replace("\\", "\\\\").replace("$", r"\$") if "$" in text else "\n".join(lines)


def table_name(url: str) -> str:
    """How a picture calls a table: the last part of its path."""
    return words(url.rstrip("/").rpartition("/")[2] or url, 60)


def unit_of(most_bytes: float) -> tuple[int, str]:
    """A unit in which so many bytes are a short number: its bytes, and its name."""
    place = 0
    while most_bytes >= 1024 ** (place + 1) and place < len(_UNITS) - 1:
        place += 1
    return 1024**place, _UNITS[place]


def dates_on(ax: Axes) -> None:
    """Days since 1970 along the x axis, shown as dates and times of UTC."""
    least, most = ax.get_xlim()
    ax.set_xlim(max(least, FIRST_DAY), min(most, LAST_DAY))
    locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def message(ax: Axes, text: str) -> None:
    """Words in the place of what cannot be drawn."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", wrap=True)
    ax.set_xticks([])
    ax.set_yticks([])


def whole_numbers(axis: Any) -> None:
    """No ticks between whole numbers, and none with exponents."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins="auto", integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
