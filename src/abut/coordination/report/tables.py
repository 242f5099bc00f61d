"""Tables of a report as CSV and Parquet files, written and read back.

Equal rows give equal bytes.
"""

import csv
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from abut.coordination.report.report_columns import COLUMNS, Columns, columns_from
from abut.errors import FileError, ToolError
from abut.io.file_errors import reading
from abut.io.write import replacing

TRUTH = {"true": True, "false": False}


def write_csv(columns: Columns, path: Any) -> Path:
    """Write rows as CSV: UTF-8 with a byte-order mark, a header, commas, numbers in full.

    Floats are the shortest text that reads back to the same bits; NaN is an empty field.

    Raises:
        FileError: The file cannot be written.
    """
    texts = [_texts(columns[name], column.type) for name, column in COLUMNS.items()]
    with (
        replacing(path, folders=True) as new,
        new.open("w", encoding="utf-8-sig", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(zip(*texts, strict=True))
    return Path(path)


def read_csv(path: Any) -> Columns:
    """Read the rows of a CSV file that ``write_csv`` wrote; further columns are left out.

    Raises:
        FileError: The file is missing or damaged, or has no column of a name.
    """
    with reading(path, "a table of clashes"):
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            rows = list(reader)
            _require_columns(path, reader.fieldnames or [])
        return columns_from({name: _values(rows, name) for name in COLUMNS})


def write_parquet(columns: Columns, path: Any) -> Path:
    """Write rows as Parquet; NaN stays NaN.

    Raises:
        ToolError: Parquet needs pyarrow.
        FileError: The file cannot be written.
    """
    arrow = _arrow()
    import pyarrow.parquet

    kinds = {str: arrow.string(), float: arrow.float64(), int: arrow.int64(), bool: arrow.bool_()}
    fields = [(name, kinds[column.type]) for name, column in COLUMNS.items()]
    arrays = [arrow.array(columns[name], kind) for name, kind in fields]
    table = arrow.Table.from_arrays(arrays, schema=arrow.schema(fields))
    with replacing(path, folders=True) as new:
        pyarrow.parquet.write_table(table, new, compression="zstd")
    return Path(path)


def read_parquet(path: Any) -> Columns:
    """Read the rows of a Parquet file that ``write_parquet`` wrote.

    Raises:
        ToolError: Parquet needs pyarrow.
        FileError: The file is missing or damaged, or has no column of a name.
    """
    _arrow()
    import pyarrow.parquet

    with reading(path, "a table of clashes"):
        table = pyarrow.parquet.read_table(path)
        _require_columns(path, table.column_names)
        return columns_from({name: table.column(name).to_pylist() for name in COLUMNS})


def can_write_parquet() -> bool:
    """Return whether pyarrow is installed."""
    from importlib.util import find_spec

    return find_spec("pyarrow") is not None


def _arrow() -> ModuleType:
    try:
        import pyarrow
    except ModuleNotFoundError:
        why = "Parquet needs pyarrow; pip install 'abut[report]' brings it, or ask for CSV."
        raise ToolError(why) from None
    return pyarrow


def _require_columns(path: Any, names: Any) -> None:
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise FileError(f"{path} is no table of clashes: it has no column {missing[0]!r}.")


def _texts(values: np.ndarray, kind: type) -> list[str]:
    if kind is float:
        return ["" if np.isnan(value) else repr(float(value)) for value in values]
    if kind is bool:
        return ["true" if value else "false" for value in values]
    return [str(value) for value in values]


def _values(rows: list[dict[str, str]], name: str) -> list[Any]:
    texts = [row[name] for row in rows]
    kind = COLUMNS[name].type
    if kind is float:
        return [float(text) if text else None for text in texts]
    if kind is bool:
        return [TRUTH[text.lower()] for text in texts]
    return [kind(text) for text in texts]
