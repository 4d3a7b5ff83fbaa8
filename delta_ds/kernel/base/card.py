"""`Card`: what a notebook or a terminal shows of an object: a title, some facts, some tables; as HTML and as text.

Whatever comes from a table is escaped, and cut: a card stays small however large the table is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from delta_ds.records import dataclass

# Rows of a table and facts that are shown, and letters of one value.
MOST_ROWS = 20
_MOST_LETTERS = 160

# Colours are those of the notebook, so cards are readable in light and dark ones. Formulas are left alone: names of
# columns may hold dollar signs.
_CARD = (
    '<div class="delta-ds tex2jax_ignore mathjax_ignore" '
    'style="font-size:90%;line-height:1.4;max-width:100%;overflow-x:auto">'
)
_TABLE = '<table style="border-collapse:collapse;margin:.4em 0;text-align:left">'
_LINE = "border-bottom:1px solid rgba(128,128,128,.35)"
_CELL = f"text-align:left;vertical-align:top;padding:.15em .9em .15em 0;white-space:pre-wrap;{_LINE}"
_NUMBER = f"text-align:right;vertical-align:top;padding:.15em .9em .15em 0;{_LINE}"
_QUIET = "opacity:.7"


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a whole, shown as a bar: from 0 to 1."""

    of_one: float


@dataclass(frozen=True, slots=True)
class CardTable:
    """A table of a card.

    Attributes
    ----------
    columns
        Its heads.
    rows
        What is shown of it: values of any kind, numbers to the right; at most `MOST_ROWS`.
    left_out
        How many more rows there are.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Card:
    """What is shown of an object.

    Attributes
    ----------
    title
        What it is, and which one.
    facts
        Names and values; those whose value is None are left out.
    tables
        Below the facts.
    note
        What else to know, in a line at the end.
    """

    title: str
    facts: Sequence[tuple[str, Any]] = ()
    tables: Sequence[CardTable] = ()
    note: str = ""

    def html(self) -> str:
        """The card as HTML that stands by itself."""
        parts = [_CARD, f"<strong>{_escaped(self.title)}</strong>"]
        facts = self._shown_facts()
        if facts:
            parts.append(_TABLE)
            parts += [
                f'<tr><th style="{_CELL};font-weight:normal;{_QUIET}">{_escaped(name)}</th>'
                f'<td style="{_CELL}">{_cell(value)}</td></tr>'
                for name, value in facts
            ]
            parts.append("</table>")
        parts += [_html_table(table) for table in self.tables if table.columns]
        if self.note:
            parts.append(f'<div style="{_QUIET}">{_escaped(self.note)}</div>')
        return "".join([*parts, "</div>"])

    def text(self) -> str:
        """The card as lines of text."""
        lines = [plain(self.title)]
        lines += [f"  {plain(name)}: {_plain_cell(value)}" for name, value in self._shown_facts()]
        for table in filter(lambda each: each.columns, self.tables):
            lines += _text_table(table)
        if self.note:
            lines.append(f"  {plain(self.note)}")
        return "\n".join(lines)

    def _shown_facts(self) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in self.facts if value is not None][: 2 * MOST_ROWS]


class Shown:
    """Shown as a card in notebooks and by IPython; `_card` makes it, of what is at hand, and never asks a store."""

    __slots__ = ()

    _card: Callable[[], Card]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # IPython takes the first class that has this or `__repr__`: a class with a `__repr__` would hide it.
        cls._repr_pretty_ = Shown._repr_pretty_  # type: ignore[method-assign]

    def _repr_html_(self) -> str:
        return self._card().html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self._card().text())


def table_of(columns: Sequence[str], rows: Sequence[Any], shown: Callable[[Any], Sequence[Any]]) -> CardTable:
    """A table of the first of some rows, without columns that are empty in these; no other rows are looked at."""
    shown_rows = [shown(row) for row in rows[:MOST_ROWS]]
    filled = [n for n in range(len(columns)) if any(row[n] not in (None, "") for row in shown_rows)]
    filled_rows = [[row[n] for n in filled] for row in shown_rows]
    return CardTable([columns[n] for n in filled], filled_rows, max(0, len(rows) - MOST_ROWS))


def listed(names: Sequence[str]) -> str | None:
    """Names as one value; None for none."""
    if not names:
        return None
    more = f" and {len(names) - MOST_ROWS:,} more" if len(names) > MOST_ROWS else ""
    return ", ".join(plain(name, 40) for name in names[:MOST_ROWS]) + more


def size_text(count: int | None) -> str:
    """A number of bytes for people; empty for None."""
    if count is None:
        return ""
    number, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while abs(number) >= 1024 and len(units) > 1:
        number /= 1024
        units.pop(0)
    return f"{count} B" if units[0] == "B" else f"{number:.1f} {units[0]}"


def plain(value: Any, most: int = _MOST_LETTERS) -> str:
    """A value as one line that shows what it is: cut, and without characters that are not seen.

    >>> plain("a\\nb\\u202ec")
    'a\\\\nb\\\\u202ec'
    """
    text = value if isinstance(value, str) else str(value)
    cut = text if len(text) <= most else text[: most - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def _escaped(value: Any) -> str:
    import html

    return html.escape(plain(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if isinstance(value, Share):
        width = round(100 * min(max(value.of_one, 0.0), 1.0))
        return (
            '<div style="width:8em;border:1px solid rgba(128,128,128,.35)">'
            f'<div style="width:{width}%;height:.8em;background:rgba(31,119,180,.8)"></div></div>'
        )
    return _escaped(_plain_cell(value))


def _plain_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Share):
        full = round(20 * min(max(value.of_one, 0.0), 1.0))
        return "#" * full + "." * (20 - full)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return plain(value)


def _html_table(table: CardTable) -> str:
    numeric = _numeric(table)
    styles = [_NUMBER if number else _CELL for number in numeric]
    head = "".join(
        f'<th style="{style}">{_escaped(name)}</th>'
        for name, style in zip(table.columns, styles, strict=True)
    )
    rows = (
        "".join(f'<td style="{style}">{_cell(v)}</td>' for v, style in zip(row, styles, strict=True))
        for row in table.rows
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    more = f'<div style="{_QUIET}">and {table.left_out:,} more</div>' if table.left_out else ""
    return f"{_TABLE}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _numeric(table: CardTable) -> list[bool]:
    columns: Iterable[Sequence[Any]] = (
        zip(*table.rows, strict=True) if table.rows else [()] * len(table.columns)
    )
    return [any(map(_is_number, column)) for column in columns]


def _text_table(table: CardTable) -> list[str]:
    cells = [[plain(name) for name in table.columns], *([_plain_cell(v) for v in row] for row in table.rows)]
    widths = [min(48, max(map(len, column))) for column in zip(*cells, strict=True)]
    numeric = _numeric(table)
    lines = []
    for row in cells:
        aligned = [
            cut.rjust(width) if number else cut.ljust(width)
            for cut, width, number in zip((plain(c, 48) for c in row), widths, numeric, strict=True)
        ]
        lines.append(("  " + "  ".join(aligned)).rstrip())
    return [*lines, f"  and {table.left_out:,} more"] if table.left_out else lines


# What steers a terminal (C0, C1), turns the direction or the line of what is read, or has no bytes in UTF-8.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str, pattern: str = "\\x{:02x}") -> str:
    r"""A text as a terminal may be shown it: what would steer the terminal is spelled out.

    Parameters
    ----------
    text
        One line: line feeds are spelled out as well.
    pattern
        How characters below U+0100 are spelled; others are `\uNNNN`.

    >>> print(visible("\x1b[2Jall is well\u202e"))
    \x1b[2Jall is well\u202e
    """
    if text.isascii() and text.isprintable():
        return text

    def spelled(found: re.Match[str]) -> str:
        code = ord(found[0])
        return (pattern if code < 0x100 else "\\u{:04x}").format(code)

    return _STEERING.sub(spelled, text)
