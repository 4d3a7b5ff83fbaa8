"""Draw what a predicate skips and reads: all files, what each rule takes off, and what is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.base.card import size_text
from delta_ds.kernel.commands.plot.drawing import (
    READ,
    SKIPPED,
    given_axes,
    message,
    new_drawing,
    table_name,
    unit_of,
    whole_numbers,
    words,
)
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from delta_ds.kernel.commands.plot.asked import Skipping

MOST_BARS = 14


@dataclass(frozen=True, slots=True)
class Bar:
    """One step: its words, whether its files are read, how many those are, and where its bar ends."""

    label: str
    kept: bool
    amount: float
    end: float


def draw_skipping(found: Skipping, ax: Any) -> Any:
    """Draw files beside bytes; into one given `Axes` the files alone.

    Returns
    -------
    Figure
        Or `ax`, where it was given.
    """
    steps = found.steps.to_pylist()
    files, size = sum(step["files"] for step in steps), sum(step["bytes"] for step in steps)
    if ax is None:
        drawing = new_drawing(10, 1.9 + 0.42 * min(len(steps) + 1, MOST_BARS))
        axes = list(drawing.subplots(1, 2, sharey=True))
    else:
        drawing, axes = None, given_axes(ax, (1, 2), "plot.skipping()")
    read = sum(step["files"] for step in steps if step["kept"])
    share = f" ({read / files:.0%})" if files else ""
    title = f"{table_name(found.table)}, version {found.version}: {read:,} of {files:,} files to read{share}"
    title += f"\n{words(found.predicate, 200, 100)}"
    if drawing is None:
        axes[0].set_title(title, fontsize="medium")
    else:
        drawing.suptitle(title, fontsize="medium")
    if not files:
        for one in axes:
            message(one, "no files")
        return ax if drawing is None else drawing
    _waterfall(axes[0], _bars(steps, "files", 1), "files", lambda n: f"{n:,.0f}")
    whole_numbers(axes[0].xaxis)
    _legend(axes[0])
    if len(axes) == 2:
        each, unit = unit_of(size)
        _waterfall(
            axes[1], _bars(steps, "bytes", each), f"size ({unit})", lambda n: size_text(round(n * each))
        )
    return ax if drawing is None else drawing


def _bars(steps: list[dict[str, Any]], measure: str, unit: int) -> list[Bar]:
    """All files, then each step: what is skipped from the right end inwards, what is read from there to the left."""
    left = sum(step[measure] for step in steps) / unit
    bars = [Bar("all files", True, left, left)]
    skipped = [step for step in steps if not step["kept"]]
    kept = [step for step in steps if step["kept"]]
    for step in [*_few(skipped, MOST_BARS - 5), *_few(kept, 4)]:
        amount = step[measure] / unit
        bars.append(
            Bar(("read: " if step["kept"] else "skipped: ") + step["rule"], step["kept"], amount, left)
        )
        left -= amount
    return bars


def _few(steps: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    if len(steps) <= most:
        return steps
    others = steps[most - 1 :]
    sums = {name: sum(step[name] for step in others) for name in ("files", "bytes")}
    return [*steps[: most - 1], {"rule": f"{len(others)} other rules", "kept": others[0]["kept"], **sums}]


def _waterfall(ax: Axes, bars: list[Bar], label: str, shown: Callable[[float], str]) -> None:
    whole = bars[0].amount
    for number, bar in enumerate(bars):
        ax.barh(
            number, bar.amount, left=bar.end - bar.amount, height=0.7,
            color=READ if bar.kept else SKIPPED, hatch=None if bar.kept else "//", alpha=1 if number else 0.45,
            edgecolor="0.35", linewidth=0.5,
        )  # fmt: skip
        _number(ax, number, bar, whole, shown(bar.amount))
    ax.set_yticks(range(len(bars)), [words(bar.label, 110, 46) for bar in bars])
    ax.set_ylim(len(bars) - 0.5, -0.5)
    ax.set_xlim(0, whole * 1.02 or 1)
    ax.set_xlabel(label)


def _number(ax: Axes, row: int, bar: Bar, whole: float, text: str) -> None:
    """The number of a bar: in it where it is wide, else beside it, where there is room."""
    if bar.amount > 0.3 * whole:
        behind = {"facecolor": ax.get_facecolor(), "alpha": 0.75, "edgecolor": "none", "pad": 1.5}
        ax.text(bar.end - bar.amount / 2, row, text, va="center", ha="center", bbox=behind)
        return
    left = bar.end > 0.6 * whole
    place = (bar.end - bar.amount if left else bar.end, row)
    align = "right" if left else "left"
    ax.annotate(text, place, (-4 if left else 4, 0), textcoords="offset points", va="center", ha=align)


def _legend(ax: Axes) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=READ, edgecolor="0.35", label="read"),
        Patch(facecolor=SKIPPED, edgecolor="0.35", hatch="//", label="skipped"),
    ]
    ax.legend(handles=handles, loc="lower right", framealpha=0.8, fontsize="small")
