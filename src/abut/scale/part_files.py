"""Files of result columns: Parquet where pyarrow is installed, else ``.npz``.

Equal columns give equal bytes. Columns are 1-D arrays of texts (objects), numbers or truths, or
arrays of numbers with more dimensions.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from abut.errors import FileError, ToolError
from abut.io.file_errors import reading
from abut.io.write import replacing

SUFFIXES = (".parquet", ".npz")
FACTS = "facts"  # name of the facts in a file; no column has it
Columns = dict[str, np.ndarray]


def part_suffix() -> str:
    """Suffix of the files that can be written here."""
    return SUFFIXES[0] if find_spec("pyarrow") else SUFFIXES[1]


def write_part(columns: Columns, path: Any, facts: Any = None) -> None:
    """Write columns, and facts about them: a value of JSON. The file is there when it is whole.

    Raises:
        FileError: The file cannot be written.
        ToolError: Parquet needs pyarrow.
    """
    write = _write_parquet if Path(path).suffix == ".parquet" else _write_npz
    with replacing(path, folders=True) as new:
        write(columns, new, json.dumps(facts, sort_keys=True))


def read_part(path: Any) -> tuple[Columns, Any]:
    """Read columns and facts that ``write_part`` wrote.

    Raises:
        FileError: The file is missing or damaged.
        ToolError: Parquet needs pyarrow.
    """
    with reading(path, "a part of results"):
        if Path(path).suffix == ".parquet":
            return _read_parquet(path)
        with np.load(path, allow_pickle=False) as held:
            columns = {name: _plain(held[name]) for name in held.files}
        return columns, json.loads(str(columns.pop(FACTS)))


def _write_npz(columns: Columns, path: Path, facts: str) -> None:
    plain = {name: a.astype(str) if a.dtype == object else a for name, a in columns.items()}
    plain[FACTS] = np.array(facts)
    np.savez_compressed(path, **plain)  # type: ignore[arg-type]


def _plain(array: np.ndarray) -> np.ndarray:
    return array.astype(object) if array.dtype.kind == "U" else array


def _write_parquet(columns: Columns, path: Path, facts: str) -> None:
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
    table = arrow.Table.from_arrays(arrays, schema=arrow.schema(fields, {FACTS: facts}))
    pyarrow.parquet.write_table(table, path, compression="zstd")


def _read_parquet(path: Any) -> tuple[Columns, Any]:
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
    return out, json.loads(table.schema.metadata[FACTS.encode()])


def _arrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise ToolError("Parquet needs pyarrow; pip install 'abut[report]' brings it.") from None
    return pyarrow


def joined_parts(paths: list[Path]) -> tuple[Columns, list[Any]]:
    """The rows of several files, one after the other, and the facts of each.

    Raises:
        FileError: A file is missing or damaged, or has other columns than the first.
    """
    parts = [read_part(path) for path in paths]
    for path, (columns, _) in zip(paths, parts, strict=True):
        if list(columns) != list(parts[0][0]):
            raise FileError(f"{path} has the columns {', '.join(columns)}; remove it and resume.")
    joined = {name: np.concatenate([part[0][name] for part in parts]) for name in parts[0][0]}
    return joined, [facts for _, facts in parts]
