"""A scan as a dataset of pyarrow: what takes datasets reads tables with deletion vectors and column mapping by it.

pyarrow's own datasets of files know neither. This one answers with the rows of a scan, and hands columns and filters
down to it; Arrow then applies the filter to what comes back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from delta_ds.conditions.data import DATASET_METHOD_NOT_SUPPORTED
from delta_ds.kernel.files.read.file_columns import output_schema
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.format.expressions.arrow_filter import tree_of
from delta_ds.kernel.format.expressions.engine_filters import names_of

# Columns by name, or new ones by their expressions.
Columns: TypeAlias = "Sequence[str] | Mapping[str, pc.Expression] | None"


class ScanDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """The rows of a scan as a dataset.

    Every method of `pyarrow.dataset.Dataset` is one of its own: those of the class work on an object of C++ that is not
    there. Keywords are those of `pyarrow.dataset.Scanner.from_batches`.
    """

    def __init__(self, scan: Scan, filter_: pc.Expression | None = None) -> None:
        scan.refuse_repeated_columns()
        self._scan, self._filter = scan, filter_
        self._arrow_schema = output_schema(scan.plan)

    @property
    def schema(self) -> pa.Schema:
        return self._arrow_schema

    @property
    def partition_expression(self) -> pc.Expression:
        """What holds for all rows: nothing."""
        return pc.scalar(True)

    def scanner(
        self, columns: Columns = None, filter: pc.Expression | None = None, **options: Any
    ) -> ds.Scanner:  # noqa: A002
        if options.pop("fragment_scan_options", None) is not None:
            self._refuse("fragment_scan_options")
        if self._filter is not None:
            filter = self._filter if filter is None else self._filter & filter  # noqa: A001
        return ds.Scanner.from_batches(
            self._narrowed(columns, filter).to_reader(),
            columns=self._arrow_schema.names if columns is None else columns,
            filter=filter,
            **options,
        )

    def _narrowed(self, columns: Columns, filter_: pc.Expression | None) -> Scan:
        """The scan of the columns that are asked for or filtered by."""
        names = self._arrow_schema.names
        asked = self._asked(columns, "" if filter_ is None else str(filter_))
        tree = None if filter_ is None else tree_of(filter_, self._arrow_schema, self._scan.snapshot.schema)
        if tree is not None:
            asked |= names_of(tree)
        # Arrow counts rows by a column.
        return self._scan.narrowed([name for name in names if name in asked] or names[:1], tree)

    def _asked(self, columns: Columns, filter_text: str) -> set[str]:
        names = self._arrow_schema.names
        if columns is None or not isinstance(columns, Mapping) and not set(columns) <= set(names):
            return set(names)
        # The text of an expression holds the name of each of its columns as it is.
        texts = [filter_text, *map(str, columns.values())] if isinstance(columns, Mapping) else [filter_text]
        if any("FieldPath" in text for text in texts):  # by position among all columns
            return set(names)
        plain = set() if isinstance(columns, Mapping) else set(columns)
        return {name for name in names if name in plain or any(_is_in(name, text) for text in texts)}

    def to_table(
        self, columns: Columns = None, filter: pc.Expression | None = None, **options: Any
    ) -> pa.Table:  # noqa: A002
        return self.scanner(columns, filter, **options).to_table()

    def to_batches(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        **options: Any,  # noqa: A002
    ) -> Iterator[pa.RecordBatch]:
        return self.scanner(columns, filter, **options).to_batches()  # type: ignore[no-any-return]

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:  # noqa: A002
        if filter is None and self._filter is None and not options:
            return self._scan.count()
        return int(self.scanner([], filter, **options).count_rows())

    def head(
        self,
        num_rows: int,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        **options: Any,  # noqa: A002
    ) -> pa.Table:
        return self.scanner(columns, filter, **options).head(num_rows)

    def take(self, indices: pa.Array | Sequence[int], columns: Columns = None, **options: Any) -> pa.Table:
        return self.to_table(columns, **options).take(indices)

    def filter(self, expression: pc.Expression) -> ScanDataset:
        return ScanDataset(self._scan, expression if self._filter is None else self._filter & expression)

    def sort_by(self, sorting: Any, **options: Any) -> ds.Dataset:
        return self._held().sort_by(sorting, **options)

    def join(self, right_dataset: ds.Dataset, *arguments: Any, **options: Any) -> ds.Dataset:
        return self._held().join(_held(right_dataset), *arguments, **options)

    def join_asof(self, right_dataset: ds.Dataset, *arguments: Any, **options: Any) -> ds.Dataset:
        return self._held().join_asof(_held(right_dataset), *arguments, **options)

    def _held(self) -> ds.Dataset:
        """The rows in memory."""
        return ds.dataset(self.to_table())

    def get_fragments(self, filter: pc.Expression | None = None) -> NoReturn:  # noqa: A002
        self._refuse("get_fragments")

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        self._refuse("replace_schema")

    def _get_fragments(self, filter: pc.Expression | None) -> NoReturn:  # noqa: A002
        self._refuse("get_fragments")

    def _scan_options(self, options: Any) -> NoReturn:
        self._refuse("_scan_options")

    def _scanner_options(self, options: Any) -> NoReturn:
        self._refuse("_scanner_options")

    def _refuse(self, name: str) -> NoReturn:
        snapshot = self._scan.snapshot
        raise DATASET_METHOD_NOT_SUPPORTED(name=name, table=snapshot.storage.url, version=snapshot.version)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a dataset of a Delta table is not pickled; make it where it is read, by to_pyarrow_dataset"
        )

    def __repr__(self) -> str:
        return f"ScanDataset({self._scan!r})"


def _is_in(name: str, text: str) -> bool:
    if name not in text or not name.isidentifier():
        return name in text
    # Not `\b`: a name may end in a mark that Unicode counts to the letter before, which is no letter to `re`.
    return re.search(rf"(?<!\w){name}(?!\w)", text) is not None


def _held(dataset: Any) -> Any:
    return dataset._held() if isinstance(dataset, ScanDataset) else dataset
