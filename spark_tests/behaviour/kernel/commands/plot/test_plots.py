"""Pictures of tables, by what is drawn: lines, ranges, bars, and words that are no formulas."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import (
    InvalidOptionError,
    PredicateError,
    SchemaError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_ds.testing import TableBuilder, remove_action

pytest.importorskip("matplotlib", reason="pictures need matplotlib: install delta-ds[plot]")

from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

SALES = DeltaLog("examples/data/sales")


def drawn(figure: Figure) -> Figure:
    """A figure that has been rendered, which finds formulas that are none, and dates out of range."""
    data, metadata = figure._repr_png_()  # type: ignore[attr-defined]
    assert data.startswith(b"\x89PNG") and metadata["alt"].isprintable()
    return figure


def add(path: str, kind: str, low: Any, high: Any, size: int = 100) -> dict[str, Any]:
    stats = {"numRecords": 10, "minValues": {"x": low}, "maxValues": {"x": high}, "nullCount": {"x": 0}}
    return {
        "add": {
            "path": path, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True,
            **({} if kind == "none" else {"stats": json.dumps(stats)}),
        }
    }  # fmt: skip


def table_of(path: Path, kind: pa.DataType, ranges: list[tuple[Any, Any]], name: str = "x") -> DeltaLog:
    table = TableBuilder(path)
    table.create(pa.schema([(name, kind)]))
    table.commit(*[add(f"f{n}", "x", *each) for n, each in enumerate(ranges)])
    return DeltaLog(path)


def ranges_in(ax: Axes) -> list[tuple[float, float]]:
    (lines,) = [each for each in ax.collections if hasattr(each, "get_segments")]
    return [(a[0], b[0]) for a, b in lines.get_segments()]


class TestHistory:
    def test_files_and_bytes_of_each_version_are_drawn(self) -> None:
        figure = drawn(SALES.plot.history())
        files, size = figure.axes
        (line,) = files.lines
        assert line.get_ydata().tolist() == [0, 3, 6, 9, 12, 12, 15, 18]  # type: ignore[union-attr]
        (line,) = size.lines
        found = SALES.timeline().versions
        assert line.get_ydata() == pytest.approx(np.array(found["bytes"]) / 1024)  # type: ignore[arg-type]
        assert line.get_xdata() == pytest.approx(  # type: ignore[arg-type]
            [moment.timestamp() / 86400 for moment in found["timestamp"].to_pylist()]
        )
        assert size.get_ylabel() == "live bytes (KiB)"
        assert files.get_title() == "sales: version 7, 18 files, 39.6 KiB"

    def test_the_picture_is_told_in_words(self) -> None:
        _, metadata = SALES.plot.history()._repr_png_()  # type: ignore[attr-defined]
        assert metadata["alt"].startswith("sales: version 7, 18 files, 39.6 KiB: ")
        assert "live bytes (KiB)" in metadata["alt"]
        _, metadata = SALES.plot.skipping("country = 'DE'")._repr_png_()  # type: ignore[attr-defined]
        assert metadata["alt"].startswith("sales, version 7: 6 of 18 files to read (33%), country = 'DE'")

    def test_operations_have_markers_of_their_own(self) -> None:
        files = SALES.plot.history(by="version").axes[0]
        marked = {each.get_label(): each.get_offsets().tolist() for each in files.collections}
        assert marked["UPDATE"] == [[4.0, 12.0]] and len(marked["WRITE"]) == 4
        shapes = {each.get_paths()[0].vertices.tobytes() for each in files.collections}
        assert len(shapes) == len(marked) == 5

    def test_many_operations_share_the_last_marker(self, tmp_path: Path) -> None:
        table = TableBuilder(tmp_path)
        table.create(pa.schema([("x", pa.int64())]))
        for n in range(400):
            table.commit(add(f"f{n}", "x", n, n), operation=f"$OP_{n % 20}$")
        figure = drawn(DeltaLog(tmp_path).plot.history())
        labels = [each.get_label() for each in figure.axes[0].collections]
        assert len(labels) == 8 and labels[-1] == "other"

    def test_axes_that_are_given_are_used(self) -> None:
        figure = Figure()
        one, other = figure.subplots(2, 1)
        assert SALES.plot.history(ax=[one, other]) == [one, other] and other.lines
        assert SALES.plot.history(ax=one) is one
        with pytest.raises(InvalidOptionError, match="drawn into 1 or 2 Axes, and ax has 3"):
            SALES.plot.history(ax=[one, other, one])
        with pytest.raises(InvalidOptionError, match="must be Axes of matplotlib"):
            SALES.plot.history(ax=figure)  # type: ignore[call-overload]

    def test_a_limit_and_a_snapshot_end_the_history(self) -> None:
        def versions(figure: Figure) -> list[float]:
            return figure.axes[0].lines[0].get_xdata().tolist()  # type: ignore[no-any-return, union-attr]

        assert versions(SALES.plot.history(limit=2, by="version")) == [6, 7]
        assert versions(SALES.snapshot(3).plot.history(by="version")) == [0, 1, 2, 3]
        drawn(SALES.plot.history(limit=0))
        with pytest.raises(InvalidOptionError, match="'time' or 'version', not 'date'"):
            SALES.plot.history(by="date")  # type: ignore[call-overload]

    def test_times_without_a_date_are_drawn(self, tmp_path: Path) -> None:
        table = TableBuilder(tmp_path)
        table.create(
            pa.schema([("x", pa.int64())]),
            properties={"delta.enableInCommitTimestamps": "true"},
            writer_features=["inCommitTimestamp"],
        )
        table.raw_commit(
            json.dumps({"commitInfo": {"inCommitTimestamp": 10**17, "operation": None}}).encode() + b"\n"
        )
        drawn(DeltaLog(tmp_path).plot.history())


class TestLayout:
    def test_ranges_and_depths_are_those_of_the_files(self, tmp_path: Path) -> None:
        log = table_of(tmp_path, pa.int64(), [(10, 19), (0, 9), (5, 14)])
        figure = drawn(log.plot.layout("x"))
        above, below = figure.axes
        assert ranges_in(above) == [(0, 9), (5, 14), (10, 19)]
        assert below.lines[0].get_ydata().max() == 2  # type: ignore[union-attr]
        mean = log.snapshot().column_layout("x").files_read()
        assert list(below.lines[1].get_ydata()) == pytest.approx([mean, mean])  # type: ignore[arg-type]
        assert above.get_title().endswith(f"in {mean:.1f} of 3 files ({mean / 3:.0%})")
        assert below.get_xlabel() == "x (long)"

    def test_versions_stand_side_by_side_on_one_scale(self, tmp_path: Path) -> None:
        table = TableBuilder(tmp_path)
        table.create(pa.schema([("x", pa.int64())]))
        before = [add(f"a{n}", "x", 0, 1000) for n in range(8)]
        table.commit(*before)
        table.commit(*map(remove_action, before), *[add(f"b{n}", "x", n, n + 1) for n in range(4)])
        figure = drawn(DeltaLog(tmp_path).plot.layout("x", versions=(1, 2)))
        left, right, below_left, below_right = figure.axes
        assert (len(ranges_in(left)), len(ranges_in(right))) == (8, 4)
        assert left.get_xlim() == right.get_xlim() == below_left.get_xlim()
        assert left.get_ylim() == right.get_ylim() and below_left.get_ylim() == below_right.get_ylim()
        assert below_left.get_ylim()[1] > 8, "the deeper of the two is seen whole"
        assert [each.get_title().splitlines()[0] for each in (left, right)] == ["version 1", "version 2"]

    @pytest.mark.parametrize(
        "kind, ranges",
        [
            (pa.int8(), [(-3, 4), (5, 6)]),
            (pa.float64(), [(0.5, 1.5), ("NaN", "NaN"), ("-Infinity", "Infinity")]),
            (pa.decimal128(38, 2), [(1.25, 2.5), (3, 4e30)]),
            (pa.date32(), [("2024-01-01", "2024-01-31"), ("0001-01-01", "9999-12-31")]),
            (pa.timestamp("us", "UTC"), [("2024-01-01T00:00:00Z", "2024-01-31T05:00:00.5Z")]),
            (pa.timestamp("us"), [("2024-01-01T00:00:00", "2024-01-31T05:00:00")]),
            (pa.string(), [("a$1$", "f"), ("", "z\n"), ("ä", "\u202e")]),
        ],
        ids=str,
    )
    def test_types(self, tmp_path: Path, kind: pa.DataType, ranges: list[tuple[Any, Any]]) -> None:
        log = table_of(tmp_path, kind, ranges)
        figure = drawn(log.plot.layout("x"))
        assert len(ranges_in(figure.axes[0])) == log.snapshot().column_layout("x").known.num_rows > 0

    def test_dates_are_dates_of_the_axis(self, tmp_path: Path) -> None:
        figure = drawn(table_of(tmp_path, pa.date32(), [("2024-01-01", "2024-03-31")]).plot.layout("x"))
        assert ranges_in(figure.axes[0]) == [((dt.date(2024, 1, 1) - dt.date(1970, 1, 1)).days, 19813)]
        labels = [label.get_text() for label in figure.axes[1].get_xticklabels()]
        assert "Feb" in labels or "2024-Feb" in labels

    def test_texts_name_places_of_the_axis_and_compare_over_versions(self, tmp_path: Path) -> None:
        table = TableBuilder(tmp_path)
        table.create(pa.schema([("x", pa.string())]))
        table.commit(add("a", "x", "key-0500", "key-0600"))
        table.commit(add("b", "x", "key-0000", "other"))
        figure = drawn(DeltaLog(tmp_path).plot.layout("x", versions=[1, 2]))
        one, other = ranges_in(figure.axes[0]), ranges_in(figure.axes[1])
        assert one[0] in other
        labels = [label.get_text() for label in figure.axes[2].get_xticklabels()]
        assert {"key-0000", "other"} <= set(labels)

    def test_partition_columns_nested_and_mapped_ones(self, tmp_path: Path) -> None:
        drawn(SALES.plot.layout("country"))
        rows = pa.table({"s": [{"a $ b": Decimal("1.5")}], "p": [True]})
        options = {"delta.columnMapping.mode": "name", "partitionBy": "p"}
        DeltaLog(tmp_path).write(rows, options=options)
        figure = drawn(DeltaLog(tmp_path).plot.layout("s.`a $ b`"))
        assert figure.axes[1].get_xlabel() == r"s.a \$ b (decimal(2,1))"
        labels = drawn(DeltaLog(tmp_path).plot.layout("p")).axes[1].get_xticklabels()
        assert [label.get_text() for label in labels] == ["false", "true"]

    def test_files_without_statistics_are_a_band(self, tmp_path: Path) -> None:
        table = TableBuilder(tmp_path)
        table.create(pa.schema([("x", pa.int64())]))
        table.commit(add("a", "x", 0, 9), add("b", "none", 0, 0), add("c", "none", 0, 0))
        above, below = drawn(DeltaLog(tmp_path).plot.layout("x")).axes
        assert [text.get_text() for text in above.texts] == ["2 without statistics: always read"]
        assert below.lines[0].get_ydata().max() == 3  # type: ignore[union-attr]

    def test_nothing_to_draw_is_said(self, tmp_path: Path) -> None:
        empty = table_of(tmp_path, pa.string(), [])
        assert [text.get_text() for text in drawn(empty.plot.layout("x")).axes[0].texts] == ["no files"]
        only = TableBuilder(tmp_path / "t")
        only.create(pa.schema([("x", pa.date32())]))
        only.commit(add("a", "none", 0, 0))
        drawn(DeltaLog(tmp_path / "t").plot.layout("x"))

    def test_many_files_are_thinned_out_and_counted_in_full(self, tmp_path: Path) -> None:
        log = table_of(tmp_path, pa.int64(), [(n, n + 5) for n in range(12_000)])
        figure = drawn(log.plot.layout("x"))
        assert len(ranges_in(figure.axes[0])) == 4000
        assert "of 12,000 files" in figure.axes[0].get_title()
        assert figure.axes[0].get_ylim()[1] == 12_000

    def test_one_axes_a_version(self) -> None:
        figure = Figure()
        one, other = figure.subplots(1, 2)
        assert SALES.plot.layout("amount", ax=one) is one and len(ranges_in(one)) == 18
        SALES.plot.layout("amount", versions=[1, 7], ax=np.array([one, other]))
        with pytest.raises(InvalidOptionError, match="of 2 versions is drawn into 2 Axes, and ax has 1"):
            SALES.plot.layout("amount", versions=[1, 7], ax=one)

    def test_what_cannot_be_drawn_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SchemaError, match="did you mean 'amount'"):
            SALES.plot.layout("amont")
        with pytest.raises(VersionNotFoundError):
            SALES.plot.layout("amount", versions=99)
        with pytest.raises(InvalidOptionError, match="versions .* is empty"):
            SALES.plot.layout("amount", versions=[])
        with pytest.raises(UnsupportedOperationError, match="no file is ever skipped by it"):
            table_of(tmp_path, pa.binary(), []).plot.layout("x")


class TestSkipping:
    def test_bars_are_the_steps(self) -> None:
        figure = drawn(SALES.plot.skipping("country <> 'DE' and sold_on > date'2026-03-01'"))
        files, size = figure.axes
        bars = [(round(bar.get_x()), round(bar.get_width())) for bar in files.patches]
        assert bars == [(0, 18), (12, 6), (6, 6), (0, 6)]
        assert sum(bar.get_width() for bar in size.patches[1:]) == pytest.approx(size.patches[0].get_width())
        labels = [label.get_text().partition(":")[0] for label in files.get_yticklabels()]
        assert labels == ["all files", "skipped", "skipped", "read"]

    def test_many_rules_are_summed_up(self, tmp_path: Path) -> None:
        log = table_of(tmp_path, pa.int64(), [(n, n) for n in range(40)])
        figure = drawn(log.plot.skipping(" and ".join(f"x <> {n}" for n in range(30))))
        bars = figure.axes[0].patches
        assert len(bars) == 11
        assert sum(bar.get_width() for bar in bars[1:]) == 40
        assert any("other rules" in label.get_text() for label in figure.axes[0].get_yticklabels())

    def test_words_of_predicates_are_no_formulas(self, tmp_path: Path) -> None:
        log = table_of(tmp_path, pa.string(), [("a", "b"), ("$x^$", "$x^$")])
        figure = drawn(log.plot.skipping(r"x = '$\frac$ \\ _^' and x <> '$'"))
        assert r"\$" in figure.get_suptitle()

    def test_without_files_and_without_axes(self, tmp_path: Path) -> None:
        drawn(table_of(tmp_path, pa.int64(), []).plot.skipping("x = 1"))
        ax = Figure().subplots()
        assert SALES.snapshot(3).plot.skipping("country = 'DE'", ax=ax) is ax
        assert ax.get_title().startswith("sales, version 3: 3 of 9 files")
        with pytest.raises(PredicateError):
            SALES.plot.skipping("no_such = 1")


def test_pyplot_is_not_touched_and_styles_count() -> None:
    program = """
import matplotlib, sys
from delta_ds import DeltaLog
matplotlib.rcParams["axes.facecolor"] = "black"
log = DeltaLog("examples/data/sales")
for figure in (log.plot.history(), log.plot.layout("amount"), log.plot.skipping("amount > 5")):
    assert figure._repr_png_()
    assert figure.axes[0].get_facecolor()[:3] == (0, 0, 0)
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run(
        [sys.executable, "-c", program], check=True, env={"PATH": "", "PYTHONPATH": ":".join(sys.path)}
    )


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for call in (
        lambda: SALES.plot.history(),
        lambda: SALES.plot.layout("amount"),
        lambda: SALES.snapshot().plot.skipping("amount > 5"),
    ):
        with pytest.raises(
            ImportError, match=r"plot\.\w+\(\) needs matplotlib.*pip install 'delta-ds\[plot\]'"
        ):
            call()
