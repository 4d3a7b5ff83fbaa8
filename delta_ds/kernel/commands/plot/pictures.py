"""Draw a timeline of files and bytes; the ranges of a column in files, versions side by side; what is skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base.arrow_buffers import numbers
from delta_ds.kernel.base.card import size_text
from delta_ds.kernel.commands.layout.column import depth, positions
from delta_ds.kernel.commands.plot.drawing import (
    FIRST_DAY,
    LAST_DAY,
    READ,
    SKIPPED,
    dates_on,
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

    from delta_ds.kernel.commands.layout.column import ColumnLayout
    from delta_ds.kernel.commands.layout.timeline import Timeline
    from delta_ds.kernel.commands.plot.asked import Skipping

# More ranges than that cannot be told apart: of more, every second, third, ... is drawn. Counts are of all.
MOST_RANGES = 5000
_TICKS = 5


_DAY_MS = 86_400_000
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_OTHER = "other"


MOST_BARS = 14


def draw_layout(layouts: Sequence[ColumnLayout], ax: Any) -> Any:
    """Draw each layout as ranges above depths; into given `Axes`, one a layout, the ranges alone.

    Returns
    -------
    Figure
        Or `ax`, where it was given.

    Raises
    ------
    InvalidOptionError
        The column is of types that have no axis in common.
    """
    places = _joint_positions(layouts)
    if ax is None:
        drawing = new_drawing(max(7.5, 5 * len(layouts)), 5.5)
        grid = drawing.subplots(
            2, len(layouts), sharex=True, sharey="row", squeeze=False, height_ratios=(3, 1)
        )
        above, below = list(grid[0]), list(grid[1])
        drawing.suptitle(
            f"{table_name(layouts[0].table)}: files by their range of {words(layouts[0].column)}"
        )
    else:
        what = f"plot.layout() of {len(layouts)} version{'s' * (len(layouts) > 1)}"
        drawing, above, below = None, given_axes(ax, (len(layouts),), what), []
    for number, (layout, (low, high)) in enumerate(zip(layouts, places, strict=True)):
        first = number == 0
        _ranges(above[number], layout, low, high, first)
        if below:
            _depths(below[number], layout, low, high, first)
        lowest = below[number] if below else above[number]
        lowest.set_xlabel(f"{words(layout.column, 40)} ({words(layout.type, 30)})")
    _same_scale(above, below, layouts, places)
    _ticks(below or above, layouts, places)
    return ax if drawing is None else drawing


def _joint_positions(layouts: Sequence[ColumnLayout]) -> list[tuple[Any, Any]]:
    """The places of all bounds on one axis: those of texts depend on what other texts there are."""
    kinds = {layout.files.schema.field("low").type for layout in layouts}
    if len(kinds) > 1:
        if len({_family(kind) for kind in kinds}) > 1:
            raise InvalidOptionError(
                f"{layouts[0].column} is of types without a common axis in these versions: "
                f"{', '.join(sorted({layout.type for layout in layouts}))}",
                parameters={"column": layouts[0].column},
            )
        return [_positions([layout])[0] for layout in layouts]
    return _positions(layouts)


def _positions(layouts: Sequence[ColumnLayout]) -> list[tuple[Any, Any]]:
    import numpy as np

    known = [layout.known for layout in layouts]
    low, high = (
        pa.concat_arrays([table[side].combine_chunks() for table in known]) for side in ("low", "high")
    )
    ends = np.cumsum([table.num_rows for table in known])[:-1]
    places = positions(low, high)
    if _family(low.type) == "time":
        places = (np.clip(places[0], FIRST_DAY, LAST_DAY), np.clip(places[1], FIRST_DAY, LAST_DAY))
    lows, highs = (np.split(side, ends) for side in places)
    return list(zip(lows, highs, strict=True))


def _family(kind: pa.DataType) -> str:
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "time"
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return "text"
    return "number"


def _ranges(ax: Axes, layout: ColumnLayout, low: Any, high: Any, first: bool) -> None:
    import numpy as np
    from matplotlib.collections import LineCollection

    ax.set_title(f"version {layout.version}\n{_in_words(layout)}", fontsize="medium")
    if first:
        ax.set_ylabel("files, by least value")
    if not layout.num_files:
        message(ax, "no files")
        return
    every = -(-max(1, len(low)) // MOST_RANGES)
    rank = np.arange(0, len(low), every)
    segments = np.stack([np.stack([low[::every], rank], 1), np.stack([high[::every], rank], 1)], axis=1)
    width = min(6.0, max(0.5, 220 / (len(rank) + 1)))
    ax.add_collection(LineCollection(list(segments), colors=READ, linewidths=width, capstyle="butt"))
    point = low[::every] == high[::every]
    ax.plot(
        low[::every][point], rank[point], linestyle="none", marker="s", markersize=max(1.5, width), color=READ
    )
    if layout.num_unknown:
        ax.axhspan(
            len(low) - 0.5, len(low) + layout.num_unknown - 0.5, facecolor=SKIPPED, alpha=0.5, hatch="//"
        )
        ax.text(
            0.5, len(low) + layout.num_unknown / 2 - 0.5, f"{layout.num_unknown:,} without statistics: always read",
            transform=ax.get_yaxis_transform(), ha="center", va="center",
        )  # fmt: skip


def _in_words(layout: ColumnLayout) -> str:
    if not layout.num_files:
        return "no files"
    return (
        f"a value is looked for in {layout.files_read():,.1f} of {layout.num_files:,} files "
        f"({layout.fraction_read():.0%})"
    )


def _depths(ax: Axes, layout: ColumnLayout, low: Any, high: Any, first: bool) -> None:
    if first:
        ax.set_ylabel("files at\na value")
    if not layout.num_files:
        return
    at, heights = depth(low, high)
    ax.fill_between(at, heights + layout.num_unknown, color=READ, alpha=0.35, linewidth=0)
    ax.plot(at, heights + layout.num_unknown, color=READ, linewidth=0.8)
    ax.axhline(layout.files_read(), color="C1", linestyle="--", label=f"mean {layout.files_read():,.1f}")
    ax.legend(loc="upper right", fontsize="small", framealpha=0.8)


def _same_scale(
    above: Sequence[Axes],
    below: Sequence[Axes],
    layouts: Sequence[ColumnLayout],
    places: Sequence[tuple[Any, Any]],
) -> None:
    import numpy as np

    ends = [side for pair in places for side in pair if len(side)]
    least, most = (np.concatenate(ends).min(), np.concatenate(ends).max()) if ends else (0.0, 1.0)
    margin = 0.03 * (most - least) or 0.5
    rows = max(len(low) + layout.num_unknown for (low, _), layout in zip(places, layouts, strict=True))
    for ax in (*above, *below):
        ax.set_xlim(least - margin, most + margin)
    for ax, layout in zip(above, layouts, strict=True):
        if layout.num_files:
            whole_numbers(ax.yaxis)
            ax.set_ylim(-1, max(1, rows))
    drawn = [ax.dataLim.ymax for ax in below]  # infinite where nothing is drawn
    deepest = max([1.0, *(height for height in drawn if np.isfinite(height))])
    for ax in below:
        whole_numbers(ax.yaxis)
        ax.set_ylim(0, 1.15 * deepest)


def _ticks(axes: Sequence[Axes], layouts: Sequence[ColumnLayout], places: Sequence[tuple[Any, Any]]) -> None:
    kind = layouts[0].files.schema.field("low").type
    family = _family(kind)
    for ax in axes:
        if family == "time":
            dates_on(ax)
        elif pa.types.is_boolean(kind):
            ax.set_xticks([0, 1], ["false", "true"])
        elif family == "text":
            at, labels = _texts_at(layouts, places)
            ax.set_xticks(at, labels, rotation=20, ha="right")


def _texts_at(layouts: Sequence[ColumnLayout], places: Sequence[tuple[Any, Any]]) -> tuple[Any, list[str]]:
    """Bounds that lie about evenly along the axis, to name its places by."""
    import numpy as np

    at = np.concatenate([side for pair in places for side in pair])
    if not len(at):
        return [], []
    bounds = pa.concat_arrays(
        [layout.known[side].combine_chunks() for layout in layouts for side in ("low", "high")]
    )
    wanted = np.linspace(at.min(), at.max(), _TICKS)
    nearest = np.unique([int(np.abs(at - place).argmin()) for place in wanted])
    apart: list[int] = []
    for one in sorted(nearest, key=lambda n: at[n]):
        if not apart or at[one] - at[apart[-1]] > 0.08 * (at.max() - at.min()):
            apart.append(int(one))
    values = pc.take(bounds, pa.array(apart, pa.int64())).to_pylist()
    return at[apart], [words(v if isinstance(v, str) else repr(v)[2:-1], 14) for v in values]


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
