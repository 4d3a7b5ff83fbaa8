"""Draw a timeline: live files and bytes at each version."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.base.arrow_buffers import numbers
from delta_ds.kernel.base.card import size_text
from delta_ds.kernel.commands.plot.drawing import (
    FIRST_DAY,
    LAST_DAY,
    dates_on,
    given_axes,
    message,
    new_drawing,
    table_name,
    unit_of,
    whole_numbers,
    words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from delta_ds.kernel.commands.layout.timeline import Timeline

_DAY_MS = 86_400_000
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_OTHER = "other"


def draw_history(found: Timeline, by: str, ax: Any) -> Any:
    """Draw files above bytes; into one given `Axes` the files alone.

    Returns
    -------
    Figure
        Or `ax`, where it was given.
    """
    if ax is None:
        drawing = new_drawing(9, 5)
        axes = list(drawing.subplots(2, 1, sharex=True))
    else:
        drawing, axes = None, given_axes(ax, (1, 2), "plot.history()")
    versions = found.versions
    last = versions.slice(max(0, versions.num_rows - 1)).select(["version", "files", "bytes"]).to_pydict()
    if not versions.num_rows:
        message(axes[0], "no versions")
        return ax if drawing is None else drawing
    axes[0].set_title(
        f"{table_name(found.table)}: version {last['version'][0]}, {last['files'][0]:,} files, "
        f"{size_text(last['bytes'][0])}"
    )
    places = _places(found, by)
    files = numbers(versions["files"])
    _step(axes[0], places, files, "live files")
    whole_numbers(axes[0].yaxis)
    _mark_operations(axes[0], places, files, versions["operation"].to_pylist())
    if len(axes) == 2:
        each, unit = unit_of(max(last["bytes"][0], int(numbers(versions["bytes"]).max())))
        _step(axes[1], places, numbers(versions["bytes"]) / each, f"live bytes ({unit})")
        axes[1].fill_between(places, numbers(versions["bytes"]) / each, step="post", alpha=0.25, color="C0")
    if by == "time":
        dates_on(axes[-1])
        axes[-1].set_xlabel("time of the commit (UTC)")
    else:
        whole_numbers(axes[-1].xaxis)
        axes[-1].set_xlabel("version")
    return ax if drawing is None else drawing


def _places(found: Timeline, by: str) -> Any:
    import numpy as np
    import pyarrow as pa

    if by == "version":
        return numbers(found.versions["version"]).astype(np.float64)
    moments = numbers(found.versions["timestamp"].cast(pa.int64())) / _DAY_MS
    return np.clip(moments, FIRST_DAY, LAST_DAY)


def _step(ax: Axes, places: Any, heights: Any, label: str) -> None:
    ax.plot(places, heights, drawstyle="steps-post", color="C0", zorder=1)
    ax.set_ylabel(label)
    most = max(1.0, float(heights.max()))
    ax.set_ylim(-0.05 * most, 1.12 * most)


def _mark_operations(ax: Axes, places: Any, heights: Any, operations: list[str | None]) -> None:
    """A marker of its own shape, and colour, for each of the operations that there are most of."""
    import numpy as np

    named = [operation or "not named" for operation in operations]
    common = [name for name, _ in Counter(named).most_common(len(_MARKERS))]
    if len(set(named)) > len(_MARKERS):
        common[-1] = _OTHER
    kinds = np.array([name if name in common else _OTHER for name in named], dtype=object)
    size = 36 if len(named) <= 100 else 10
    for number, name in enumerate(common):
        of = kinds == name
        if of.any():
            ax.scatter(
                places[of], heights[of], s=size, marker=_MARKERS[number], color=f"C{number}",
                label=words(name, 40), zorder=2,
            )  # fmt: skip
    # Where the least is in the way; to look for that place takes long among many.
    ax.legend(loc="best" if len(named) <= 300 else "upper left", framealpha=0.8, fontsize="small", ncols=2)
