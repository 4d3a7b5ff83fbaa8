"""`Plots`: the attribute `plot` of tables; asks for figures wherever the log is, and draws them here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base.arguments import checked
from delta_ds.kernel.commands.plot import asked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    _Given = TypeVar("_Given", Axes, Sequence[Axes])
    _Drawn = Figure | Axes | Sequence[Axes]

_BY = ("time", "version")


@checked
class Plots:
    """Pictures of a table; `plot` of `DeltaTable`, `DeltaLog` and `Snapshot`.

    Each is drawn into a new figure, which is returned and which notebooks show, or into the `Axes` that are given,
    which are returned then. Nothing is left in pyplot, and no display is needed. matplotlib's style and settings count.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> figure = DeltaLog("examples/data/sales").plot.history()
    >>> [ax.get_ylabel() for ax in figure.axes]
    ['live files', 'live bytes (KiB)']
    """

    def __init__(self, ask: Callable[..., Any], timezone: Callable[[], str] = lambda: "UTC") -> None:
        self._ask = ask
        self._timezone = timezone

    @overload
    def history(
        self, *, limit: int | None = ..., by: Literal["time", "version"] = ..., ax: None = ...
    ) -> Figure: ...

    @overload
    def history(
        self, *, limit: int | None = ..., by: Literal["time", "version"] = ..., ax: _Given
    ) -> _Given: ...

    def history(self, *, limit: int | None = None, by: str = "time", ax: Any = None) -> _Drawn:
        """Live files and bytes at each version, and what was done.

        Parameters
        ----------
        limit
            At most so many versions, the newest ones; None for all that the log still holds.
        by
            What runs along the axis: `time` of the commits, or `version`.
        ax
            `Axes` to draw into: one for the files, or two for files and bytes. None makes a figure.

        Raises
        ------
        ImportError
            matplotlib is not installed.
        DeltaError
            The table cannot be read.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> DeltaLog("examples/data/sales").plot.history(by="version").axes[0].get_title()
        'sales: version 7, 18 files, 39.6 KiB'
        """
        _need_matplotlib("history")
        if by not in _BY:
            raise InvalidOptionError(
                f"by of plot.history() is 'time' or 'version', not {by!r}", parameters={"by": by}
            )
        from delta_ds.kernel.commands.plot.pictures import draw_history

        drawn: _Drawn = draw_history(self._ask(asked.timeline, limit), by, ax)
        return drawn

    @overload
    def layout(
        self, column: str, *, versions: int | Sequence[int] | None = ..., ax: None = ...
    ) -> Figure: ...

    @overload
    def layout(self, column: str, *, versions: int | Sequence[int] | None = ..., ax: _Given) -> _Given: ...

    def layout(self, column: str, *, versions: int | Sequence[int] | None = None, ax: Any = None) -> _Drawn:
        """The range of a column's values in each file, and how many files hold each value: how well it lets files skip.

        Parameters
        ----------
        column
            Its name as in SQL: a field of a struct as `s.a`, backticks around odd names.
        versions
            One or several, drawn side by side on one scale: before and after an OPTIMIZE. None for the newest.
        ax
            As many `Axes` to draw the ranges into as there are versions. None makes a figure.

        Raises
        ------
        ImportError
            matplotlib is not installed.
        SchemaError
            There is no such column.
        UnsupportedOperationError
            Logs hold no bounds of values of its type.
        VersionNotFoundError
            There is no such version.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> figure = DeltaLog("examples/data/sales").plot.layout("sold_on", versions=(3, 7))
        >>> figure.axes[1].get_title().splitlines()
        ['version 7', 'a value is looked for in 4.3 of 18 files (24%)']
        """
        _need_matplotlib("layout")
        if isinstance(versions, Sequence) and not versions:
            raise InvalidOptionError("versions of plot.layout() is empty", parameters={"versions": []})
        wanted = versions if isinstance(versions, Sequence) else [versions]
        from delta_ds.kernel.commands.plot.pictures import draw_layout

        zone = self._timezone()
        drawn: _Drawn = draw_layout(
            [self._ask(asked.column_layout, column, version, zone) for version in wanted], ax
        )
        return drawn

    @overload
    def skipping(self, predicate: str, *, version: int | None = ..., ax: None = ...) -> Figure: ...

    @overload
    def skipping(self, predicate: str, *, version: int | None = ..., ax: _Given) -> _Given: ...

    def skipping(self, predicate: str, *, version: int | None = None, ax: Any = None) -> _Drawn:
        """What a predicate reads and skips of all files, and by which rule.

        Parameters
        ----------
        predicate
            SQL text, as in `where`.
        version
            None for the newest.
        ax
            `Axes` to draw into: one for the files, or two for files and bytes. None makes a figure.

        Raises
        ------
        ImportError
            matplotlib is not installed.
        PredicateError
            The predicate cannot be parsed or names an unknown column.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> figure = DeltaLog("examples/data/sales").plot.skipping("country = 'DE'")
        >>> figure.get_suptitle().splitlines()
        ['sales, version 7: 6 of 18 files to read (33%)', "country = 'DE'"]
        """
        _need_matplotlib("skipping")
        from delta_ds.kernel.commands.plot.pictures import draw_skipping

        drawn: _Drawn = draw_skipping(self._ask(asked.skipping, predicate, version, self._timezone()), ax)
        return drawn


def _need_matplotlib(method: str) -> None:
    try:
        import_module("matplotlib.figure")
    except ImportError as error:
        raise ImportError(
            f"plot.{method}() needs matplotlib, which cannot be imported ({error}): pip install 'delta-ds[plot]'"
        ) from error
