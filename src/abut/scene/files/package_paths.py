"""Find the files that a robot file names: relative paths, ``file://`` and ``package://``."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from abut.errors import FileError, OptionError

PACKAGE_SCHEMES = ("package", "model")


def checked_packages(packages: Any) -> tuple[dict[str, Path], list[Path]]:
    """Folders of packages by name, and folders to search, of the argument ``packages``."""
    if packages is None:
        return {}, []
    if isinstance(packages, Mapping):
        return {str(name): Path(folder) for name, folder in packages.items()}, []
    several = [packages] if isinstance(packages, str | os.PathLike) else packages
    try:
        return {}, [Path(folder) for folder in several]
    except TypeError:
        kind = type(packages).__name__
        raise OptionError(
            f"packages is a folder, several, or a dict of folders by package, not {kind}."
        ) from None


def find_file(named: str, robot: Path, packages: Any = None) -> Path:
    """The file that a robot file names.

    A package is looked for in ``packages``, in the folders of ROS_PACKAGE_PATH, in ``share`` of
    those of AMENT_PREFIX_PATH, and beside the robot file and in the folders above it.

    Args:
        named: As it stands in the file: a path, relative to the robot file; ``file://…``;
            ``package://NAME/…``, or ``model://NAME/…``, which is the same.
        robot: The robot file.
        packages: Folders of packages by name, or folders to search.

    Raises:
        FileError: There is no such file.
    """
    if "$(" in named or "${" in named:
        raise FileError(f"{robot} names {named}, which is of xacro; `xacro FILE` expands it.")
    named = named.replace("\\", "/")
    scheme, colon, rest = named.partition("://")
    if not colon:
        return _there([robot.parent / named], named, robot)
    if scheme == "file":
        parts = urlsplit(named)
        beside = parts.netloc not in ("", "localhost")
        path = unquote(parts.netloc + parts.path if beside else parts.path)
        return _there([robot.parent / path], named, robot)
    if scheme not in PACKAGE_SCHEMES:
        raise FileError(f"{robot} names {named}; only package:// and file:// can be read.")
    name, _, inside = unquote(rest).lstrip("/").partition("/")
    inside = inside.lstrip("/")
    named_folders, searched = checked_packages(packages)
    if name in named_folders:
        return _there([named_folders[name] / inside], named, robot)
    folders = _folders_of(name, searched, robot)
    more = f"; packages={{{name!r}: FOLDER}} says where the package {name} is"
    return _there([folder / inside for folder in folders], named, robot, more)


def _folders_of(name: str, searched: list[Path], robot: Path) -> Iterator[Path]:
    """Folders that may be a package, the first choice first."""
    ros = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
    ament = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    listed = [*searched, *(Path(folder) for folder in ros if folder)]
    listed += [Path(folder, "share") for folder in ament if folder]
    for folder in [*listed, *robot.absolute().parents]:
        yield folder / name
        if folder.name == name:
            yield folder


def _there(places: list[Path], named: str, robot: Path, more: str = "") -> Path:
    """The first of these places that is a file."""
    for place in places:
        if place.is_file():
            return place
    raise FileError(f"{robot} names a mesh {named}, which is not there{more}.")
