"""Files of result columns: Parquet where pyarrow is installed, else ``.npz``.

Equal columns give equal bytes. Columns are 1-D arrays of texts (objects), numbers or truths, or
arrays of numbers with more dimensions.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from abut.errors import FileError, ToolError
from abut.io.file_errors import reading
from abut.io.write import replacing

SUFFIXES = (".parquet", ".npz")
Columns = dict[str, np.ndarray]


def part_suffix() -> str:
    """Suffix of the files that can be written here."""
    return SUFFIXES[0] if find_spec("pyarrow") else SUFFIXES[1]


def write_part(columns: Columns, path: Any) -> None:
    """Write columns; the file is there when it is whole.

    Raises:
        FileError: The file cannot be written.
        ToolError: Parquet needs pyarrow.
    """
    write = _write_parquet if Path(path).suffix == ".parquet" else _write_npz
    with replacing(path, folders=True) as new:
        write(columns, new)


def read_part(path: Any) -> Columns:
    """Read columns that ``write_part`` wrote.

    Raises:
        FileError: The file is missing or damaged.
        ToolError: Parquet needs pyarrow.
    """
    with reading(path, "a part of results"):
        if Path(path).suffix == ".parquet":
            return _read_parquet(path)
        with np.load(path, allow_pickle=False) as held:
            return {name: _plain(held[name]) for name in held.files}


def _write_npz(columns: Columns, path: Path) -> None:
    texts = {name: a.astype(str) if a.dtype == object else a for name, a in columns.items()}
    np.savez_compressed(path, **texts)  # type: ignore[arg-type]


def _plain(array: np.ndarray) -> np.ndarray:
    return array.astype(object) if array.dtype.kind == "U" else array


def _write_parquet(columns: Columns, path: Path) -> None:
    arrow = _arrow()
    import pyarrow.parquet

    arrays, fields = [], []
    for name, values in columns.items():
        shape = values.shape[1:]
        made = arrow.array(values.ravel(), arrow.string() if values.dtype == object else None)
        for size in shape[::-1]:
            made = arrow.FixedSizeListArray.from_arrays(made, size)
        arrays.append(made)
        fields.append(arrow.field(name, made.type))
    table = arrow.Table.from_arrays(arrays, schema=arrow.schema(fields))
    pyarrow.parquet.write_table(table, path, compression="zstd")


def _read_parquet(path: Any) -> Columns:
    arrow = _arrow()
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    out = {}
    for name in table.column_names:
        column, shape = table.column(name).combine_chunks(), [table.num_rows]
        while arrow.types.is_fixed_size_list(column.type):
            shape.append(column.type.list_size)
            column = column.flatten()
        values = column.to_numpy(zero_copy_only=False)
        out[name] = np.array(values).reshape(shape)
    return out


def _arrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise ToolError("Parquet needs pyarrow; pip install 'abut[report]' brings it.") from None
    return pyarrow


def joined_parts(paths: list[Path]) -> Columns:
    """The rows of several files, one after the other.

    Raises:
        FileError: A file is missing or damaged, or has other columns than the first.
    """
    parts = [read_part(path) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        if list(part) != list(parts[0]):
            raise FileError(f"{path} has the columns {', '.join(part)}; remove it and resume.")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
