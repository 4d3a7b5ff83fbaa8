"""Net changes: what the changes of a range come to, key by key, on Arrow.

Each change of a key takes a row away (delete, update_preimage) or puts one there (insert, update_postimage), in turns.
So the first and the last of them say all: whether there was a row before and which, whether there is one after and
which. What is kept are these two, and they may be reduced together with later changes any number of times.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from delta_ds.conditions.options import KEYS_OPTION_WITHOUT_NET, NET_CHANGES_KIND, NET_OPTION_WITHOUT_KEYS
from delta_ds.conditions.streaming import NET_CHANGES_DUPLICATE_KEY
from delta_ds.kernel.base.arrow_buffers import flags, integers, numbers, texts
from delta_ds.kernel.commands.changes.commit import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from delta_ds.kernel.commands.changes.key_codes import comparable, key_codes
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


Net = Literal["net", "latest"]
NET_KINDS: tuple[Net, ...] = ("net", "latest")
INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"
# What a row of a reduced table is of its key: the only change or one of several, the first of those kept, the last.
_MARK = "__pydelta_mark"
_EVENT, _FIRST, _LAST = 0, 1, 2
_OF_CHANGE = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)


def marked(batch: pa.RecordBatch) -> pa.Table:
    """Rows of the feed as `reduced` takes them."""
    import numpy as np
    import pyarrow as pa

    return pa.Table.from_batches([batch]).append_column(_MARK, integers(np.zeros(batch.num_rows, np.int64)))


def is_event(table: pa.Table) -> np.ndarray[Any, Any]:
    """Of rows as `reduced` takes them: whether each is a change as it came, and no end of several."""
    events: np.ndarray[Any, Any] = numbers(table[_MARK]) == _EVENT
    return events


@dataclass(frozen=True)
class _Chains:
    """The changes of each key in their order.

    Attributes
    ----------
    order
        The rows of the table, key by key and within a key in order.
    puts
        Of the rows in that order: whether it puts a row there.
    starts, ends
        The places in the order at which a key begins, and of its last change.
    """

    order: np.ndarray[Any, Any]
    puts: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]

    @classmethod
    def of(cls, table: pa.Table, keys: Sequence[str], where: str) -> _Chains:
        import numpy as np
        import pyarrow.compute as pc

        puts = flags(pc.is_in(table[CHANGE_TYPE], value_set=texts([INSERT, AFTER])))
        versions, marks = numbers(table[COMMIT_VERSION]), numbers(table[_MARK])
        codes = key_codes(table, keys)
        order = np.lexsort((puts, versions, codes))
        codes, puts, marks = codes[order], puts[order], marks[order]
        new = np.concatenate([[True], codes[1:] != codes[:-1]])[: len(codes)]
        kept = (marks[:-1] == _FIRST) & (marks[1:] == _LAST)
        clash = np.flatnonzero(~new[1:] & (puts[1:] == puts[:-1]) & ~kept)
        if len(clash):
            row = int(order[clash[0] + 1])
            raise duplicate_key(table.slice(row, 1), keys, where)
        starts = np.flatnonzero(new)
        return cls(order, puts, starts, np.append(starts[1:], len(codes))[: len(starts)] - 1)


def duplicate_key(row: pa.Table, keys: Sequence[str], where: str) -> Exception:
    """The error for a row whose key has one already."""
    (values,) = row.select([*keys, COMMIT_VERSION]).to_pylist()
    text = json.dumps(values, default=str, ensure_ascii=False, separators=(",", ":"))
    return NET_CHANGES_DUPLICATE_KEY(table=where, keys=list(keys), value=text)


def check_net(net: str | None, keys: Sequence[str] | None) -> Net | None:
    """What `net` and `keys` ask for.

    Raises
    ------
    InvalidOptionError
        `net` is no kind of net changes, or one of the two is missing.
    """
    if net is None:
        if keys is not None:
            raise KEYS_OPTION_WITHOUT_NET()
        return None
    found = next((kind for kind in NET_KINDS if kind == net.lower()), None)
    if found is None:
        raise NET_CHANGES_KIND(net=net)
    if not keys:
        raise NET_OPTION_WITHOUT_KEYS(net=found)
    return found


def reduced(table: pa.Table, keys: Sequence[str], where: str) -> pa.Table:
    """The first and the last change of each key.

    Parameters
    ----------
    table
        Of `marked` rows and of former results of this; of whole versions.
    keys
        Names of its columns.
    where
        The table, for messages.

    Raises
    ------
    InvariantViolationError
        Two rows have one key.
    """
    import numpy as np

    chains = _Chains.of(table, keys, where)
    single = chains.starts == chains.ends
    first, last = chains.order[chains.starts], chains.order[chains.ends[~single]]
    rows = table.take(integers(np.concatenate([first, last])))
    marks = np.concatenate([np.where(single, _EVENT, _FIRST), np.full(len(last), _LAST)])
    return rows.set_column(rows.column_names.index(_MARK), _MARK, integers(marks))


def net_of(table: pa.Table, keys: Sequence[str], net: Net, where: str) -> pa.Table:
    """The net changes of rows that are complete; arguments and errors as for `reduced`.

    Parameters
    ----------
    net
        `net`: the effect of all changes of a key, none where there is none, else an insert, a delete, or both sides of
        an update. `latest`: the last change of each key.
    """
    import numpy as np

    chains = _Chains.of(table, keys, where)
    first, last = chains.order[chains.starts], chains.order[chains.ends]
    was, stays = ~chains.puts[chains.starts], chains.puts[chains.ends]
    rows = table.drop_columns([_MARK])
    if net == "latest":
        found = rows.take(integers(last))
        return _with_types(found, np.where(stays, 0, 1), (None, DELETE))
    data = [name for name in rows.column_names if name not in _OF_CHANGE]
    updated = np.flatnonzero(was & stays)
    one, other = (rows.take(integers(side[updated])) for side in (first, last))
    same = equal_rows(one, other, data)
    updated = updated[~same]
    inserted, deleted = np.flatnonzero(~was & stays), np.flatnonzero(was & ~stays)
    # By kind: the rows whose values count, and those that say when.
    parts = [
        (INSERT, last[inserted], last[inserted]),
        (DELETE, first[deleted], last[deleted]),
        (BEFORE, first[updated], last[updated]),
        (AFTER, last[updated], last[updated]),
    ]
    values, moments = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
    kinds = np.repeat(np.arange(4), [len(part[1]) for part in parts])
    found = rows.take(integers(values))
    for name in (COMMIT_VERSION, COMMIT_TIMESTAMP):
        when = rows[name].take(integers(moments))
        found = found.set_column(found.column_names.index(name), found.schema.field(name), when)
    # In order of version, both sides of an update together.
    keyed = np.concatenate([inserted, deleted, updated, updated])
    order = np.lexsort((kinds, keyed, numbers(found[COMMIT_VERSION])))
    return _with_types(found, kinds, tuple(part[0] for part in parts)).take(integers(order))


def _with_types(table: pa.Table, kinds: np.ndarray[Any, Any], names: Sequence[str | None]) -> pa.Table:
    """The rows with another type of change, by number; None: as it is."""
    import numpy as np
    import pyarrow.compute as pc

    types = texts([name or "" for name in names]).take(integers(kinds))
    if None in names:
        from delta_ds.kernel.base.arrow_buffers import mask

        as_it_is = mask(np.isin(kinds, [at for at, name in enumerate(names) if name is None]))
        types = pc.if_else(as_it_is, table[CHANGE_TYPE], types)
    place = table.column_names.index(CHANGE_TYPE)
    return table.set_column(place, table.schema.field(CHANGE_TYPE), types)


# --- which rows of two tables are equal, column by column on Arrow, nested values too


def equal_rows(left: pa.Table, right: pa.Table, columns: Iterable[str]) -> np.ndarray[Any, Any]:
    """Whether the rows at the same place are equal: nulls are, NaN is, and there is one zero.

    Parameters
    ----------
    left, right
        Of the same schema and length.
    columns
        Which are compared. Maps are equal with the same entries in the same order.
    """
    import numpy as np

    found = np.ones(left.num_rows, bool)
    for name in columns:
        found &= _equal(left[name].combine_chunks(), right[name].combine_chunks())
    return found


def _equal(left: pa.Array, right: pa.Array) -> np.ndarray[Any, Any]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = left.type
    if isinstance(left, pa.ExtensionArray):
        return _equal(left.storage, right.storage)
    here, there = flags(pc.is_valid(left)), flags(pc.is_valid(right))
    both = here & there
    if pa.types.is_struct(kind):
        inner = np.ones(len(left), bool)
        for at in range(kind.num_fields):
            inner &= _equal(left.field(at), right.field(at))
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        inner = _equal_lists(left, right, both)
    elif pa.types.is_null(kind):
        inner = np.ones(len(left), bool)
    else:
        one, other = (comparable(pa.chunked_array([a])).combine_chunks() for a in (left, right))
        inner = flags(pc.fill_null(pc.equal(one, other), False))
        if pa.types.is_floating(kind):
            inner |= flags(pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False))
    return np.where(both, inner, here == there)


def _equal_lists(left: pa.Array, right: pa.Array, both: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np

    lengths, others = (np.where(both, np.diff(_ends(column)), 0) for column in (left, right))
    same = both & (lengths == others)
    inner = np.zeros(len(left), bool)
    rows = np.flatnonzero(same)
    if not len(rows):
        return inner
    elements = _equal(*(_elements(column, rows, lengths[rows]) for column in (left, right)))
    misses = np.concatenate([[0], np.cumsum(~elements)])
    stops = np.cumsum(lengths[rows])
    inner[rows] = misses[stops] == misses[stops - lengths[rows]]
    return inner


def _ends(column: pa.Array) -> np.ndarray[Any, Any]:
    import numpy as np

    found = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1]
    return found.astype(np.int64)


def _elements(column: pa.Array, rows: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> pa.Array:
    """The elements of some lists, one list after the other."""
    import numpy as np
    import pyarrow as pa

    values = column.values
    if pa.types.is_map(column.type):
        values = pa.StructArray.from_arrays([column.keys, column.items], ["key", "value"])
    starts = _ends(column)[rows]
    before = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
    return values.take(integers(places))
