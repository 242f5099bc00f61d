"""Reports: one folder with CSV, JSON, Parquet, BCF and a page."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from abut.coordination.bcf.bcf import write_bcf
from abut.coordination.clashes import Clashes
from abut.coordination.parts.part_table import PartTable
from abut.coordination.pictures.clash_cameras import report_views
from abut.coordination.pictures.clash_pictures import clash_pictures
from abut.coordination.report.compare import Status
from abut.coordination.report.report_columns import Columns, PartFacts, columns_of, row_total
from abut.coordination.report.report_json import ClashReport, read_json, report_date, write_json
from abut.coordination.report.report_page import write_page
from abut.coordination.report.tables import can_write_parquet, read_csv, read_parquet, write_csv
from abut.coordination.report.tables import write_parquet as write_rows_as_parquet
from abut.errors import FileError

ROWS = "clashes"  # the stem of the files of a report
TITLE = "Clash report"
PAGE = "index.html"
BCF_FILES = {"3.0": f"{ROWS}.bcf", "2.1": f"{ROWS}-2.1.bcf"}
SETTLED = (Status.ACCEPTED, Status.GONE)


class EarlierReport(NamedTuple):
    """Rows of an earlier report, and its date where the file has one."""

    rows: Columns
    created: datetime | None


def clash_columns(clashes: Clashes) -> Columns:
    """Return the rows of clashes as the columns of a report, with facts about their parts."""
    parts = clashes.parts
    place = {key: row for row, key in enumerate(parts.key.tolist())}
    return columns_of(clashes, lambda key: _facts(parts, place[key]))


def open_rows(columns: Columns) -> int:
    """Number of clashes that nobody has accepted."""
    return sum(status not in SETTLED for status in columns["status"])


def report_of(
    clashes: Clashes,
    columns: Columns,
    *,
    title: str = TITLE,
    created: datetime | None = None,
    earlier: datetime | None = None,
) -> ClashReport:
    """Return the contents of a report.

    Args:
        clashes: The clashes.
        columns: Their rows, after ``compare`` where there is an earlier report.
        title: Name of the project.
        created: Date; None: see ``report_date``.
        earlier: Date of the earlier report.
    """
    skipped = [{"file": file, **one._asdict()} for file, one in clashes.skipped]
    facts = title, dict(clashes.settings), skipped, list(clashes.problems), earlier
    return ClashReport(columns, report_date(created), *facts)


def write_report(
    clashes: Clashes,
    columns: Columns,
    folder: Any,
    *,
    title: str = TITLE,
    created: datetime | None = None,
    earlier: datetime | None = None,
    pictures: bool | Mapping[str, bytes] = True,
    device: Any = None,
) -> list[Path]:
    """Write the files of a report; equal arguments and dates give equal bytes.

    ``clashes.csv``, ``clashes.json``, ``clashes.parquet`` (if pyarrow is installed),
    ``clashes.bcf`` (BCF 3.0), ``clashes-2.1.bcf`` and ``index.html``, a page that opens offline.

    Args:
        clashes: The clashes.
        columns: Their rows, of ``clash_columns`` or ``compare``.
        folder: Made if there is none; files of these names are replaced.
        title, created, earlier: See ``report_of``.
        pictures: Draw the clashes; or PNG by id.
        device: Where pictures are drawn; None: the first CUDA device, else the CPU.

    Returns:
        The files.

    Raises:
        FileError: A file cannot be written.
    """
    folder = Path(folder)
    report = report_of(clashes, columns, title=title, created=created, earlier=earlier)
    written = [
        write_csv(columns, folder / f"{ROWS}.csv"),
        write_json(report, folder / f"{ROWS}.json"),
    ]
    if can_write_parquet():
        written.append(write_rows_as_parquet(columns, folder / f"{ROWS}.parquet"))
    drawn = pictures
    if isinstance(drawn, bool):
        drawn = clash_pictures(clashes, device=device) if drawn else {}
    views = report_views(clashes, columns, range(row_total(columns)), device)
    facts: dict[str, Any] = {"pictures": drawn, "created": report.created, "title": title}
    facts["views"] = views  # the same cameras everywhere
    for bcf, name in BCF_FILES.items():
        path = folder / name
        written.append(write_bcf(clashes, columns, path, version=bcf, device=device, **facts))
    facts |= {"earlier": earlier, "device": device}
    return [*written, write_page(clashes, columns, folder / PAGE, **facts)]


def read_earlier(path: Any) -> EarlierReport:
    """Read the rows of an earlier report: its folder, or its JSON, CSV or Parquet file.

    Raises:
        FileError: There is no report, or it is damaged.
    """
    path = Path(path)
    if path.is_dir():
        path = path / f"{ROWS}.json"
        if not path.exists():
            raise FileError(f"{path.parent} holds no {path.name}, so it is no clash report.")
    kind = path.suffix.lower()
    if kind == ".json":
        report = read_json(path)
        return EarlierReport(report.rows, report.created)
    if kind not in (".csv", ".parquet"):
        raise FileError(f"{path} is no clash report: name a folder, JSON, CSV or Parquet file.")
    return EarlierReport(read_csv(path) if kind == ".csv" else read_parquet(path), None)


def _facts(parts: PartTable, row: int) -> PartFacts:
    about = parts.name[row], parts.type[row], parts.layer[row]
    return PartFacts(parts.file[row], part_id(parts.key[row], parts.file[row]), *about)


def part_id(key: str, file: str) -> str:
    """The id of a part in its file: its key without the name of the file."""
    path = Path(file).resolve()
    names = ["/".join(path.parts[-count:]) for count in range(len(path.parts), 0, -1)]
    for name in (*names, path.stem):
        if key.startswith(f"{name}/"):
            return key[len(name) + 1 :]
    return key.partition("/")[2]
