"""Clashes as BCF files, which BIM viewers and issue trackers read."""

import zipfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from abut.coordination.bcf.bcf_project import project_files
from abut.coordination.bcf.bcf_topics import BcfTopics
from abut.coordination.clashes import Clashes
from abut.coordination.pictures.clash_cameras import ClashView
from abut.coordination.report.report_columns import Columns, row_total
from abut.coordination.report.report_json import date_text, report_date
from abut.errors import OptionError
from abut.io.write import replacing

VERSIONS = ("3.0", "2.1")
ENTRY_DATE = (1980, 1, 1, 0, 0, 0)  # of files in the archive, so that equal reports are equal bytes


def write_bcf(
    clashes: Clashes,
    columns: Columns,
    path: Any,
    *,
    version: str = "3.0",
    pictures: Mapping[str, bytes] | None = None,
    created: datetime | None = None,
    title: str = "Clash report",
    views: Mapping[int, ClashView] | None = None,
    device: Any = None,
) -> Path:
    """Write a topic with two viewpoints for each row of a report.

    The first viewpoint shows the two parts alone, the second one all parts. Both select and colour
    the two parts. The GUIDs depend on the ids of clashes alone: a clash has the same topic in the
    next run. Equal arguments and dates give equal bytes.

    Args:
        clashes: The clashes; their parts determine the cameras.
        columns: Rows of the report, also those that are gone.
        path: The file, by custom ``.bcf``, also ``.bcfzip``.
        version: ``"3.0"`` or ``"2.1"``.
        pictures: PNG of clashes by id, the snapshots of the first viewpoints.
        created: Date of the topics; None: that of ``report_date``.
        title: Name of the project.
        views: Views of all rows, of ``report_views``; None: computed.
        device: Where cameras are computed; None is the first CUDA device, else the CPU.

    Raises:
        OptionError: There is no such version.
        FileError: The file cannot be written.
    """
    if version not in VERSIONS:
        raise OptionError(f"BCF version must be '3.0' or '2.1', not {version!r}.")
    date = date_text(report_date(created))
    topics = BcfTopics(clashes, columns, pictures or {}, date, views, device)
    with replacing(path, folders=True) as new, zipfile.ZipFile(new, "w") as archive:
        for name, content in project_files(version, title, topics.labels(), topics.users()):
            _store(archive, name, content)
        for row in range(row_total(columns)):
            for name, content in topics.files(row, version):
                _store(archive, name, content)
    return Path(path)


def _store(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a file whose bytes in the archive depend on its name and content alone."""
    entry = zipfile.ZipInfo(name, ENTRY_DATE)
    entry.create_system, entry.external_attr = 3, 0o100644 << 16
    stored = name.endswith(".png")
    entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)
