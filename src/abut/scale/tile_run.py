"""TileRun: the folder of a run over tiles, which can be resumed."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from abut.errors import FileError, OptionError
from abut.io.file_errors import reading
from abut.io.write import replacing
from abut.scale.part_files import SUFFIXES, Columns, joined_parts, part_suffix
from abut.scale.tile_plan import TilePlan

MANIFEST, PLAN = "manifest.json", "tiles.npz"
FORMAT, VERSION = "abut tile run", 1


class TileRun:
    """A run over tiles: a manifest, the plan, and a file of results for each finished tile.

    Args:
        folder: Its folder.
        inputs: Hash of the objects, such as the digest of a catalogue.
        settings: All that the results depend on besides: values of JSON.
        make_plan: Plans the tiles of a new run.
        resume: Go on with the run in the folder, with its plan. Without one it is a new run.

    Raises:
        OptionError: The folder holds a run of other inputs or settings.
        FileError: The manifest is damaged, or files cannot be written.
    """

    def __init__(
        self,
        folder: Any,
        inputs: str,
        settings: dict[str, Any],
        make_plan: Callable[[], TilePlan],
        *,
        resume: bool = False,
    ) -> None:
        self.folder = Path(folder)
        wanted = {"format": FORMAT, "version": VERSION, "inputs": inputs, "settings": settings}
        wanted["digest"] = _digest(wanted)
        manifest = self.folder / MANIFEST
        if resume and manifest.exists():
            self._require_same(wanted)
            self.plan = TilePlan.load(self.folder / PLAN)
            with reading(manifest, "a manifest"):
                self.suffix = json.loads(manifest.read_text(encoding="utf-8"))["suffix"]
            return
        self._remove_old()
        self.plan = make_plan()
        self.suffix = part_suffix()
        self.plan.save(self.folder / PLAN)
        with replacing(manifest, folders=True) as new:
            text = json.dumps({**wanted, "suffix": self.suffix, "tiles": len(self.plan)}, indent=1)
            new.write_text(text + "\n", encoding="utf-8")

    def path(self, number: int) -> Path:
        """File of the results of a tile."""
        return self.folder / f"tile-{number:06d}{self.suffix}"

    def unfinished(self) -> list[int]:
        """Numbers of the tiles without results."""
        return [number for number in range(len(self.plan)) if not self.path(number).exists()]

    def results(self) -> tuple[Columns, list[Any]] | None:
        """Columns of all tiles, in their order, and the facts of each; None if there are no tiles.

        Raises:
            FileError: Results of a tile are missing or damaged.
        """
        if not len(self.plan):
            return None
        return joined_parts([self.path(number) for number in range(len(self.plan))])

    def _require_same(self, wanted: dict[str, Any]) -> None:
        path = self.folder / MANIFEST
        with reading(path, "a manifest"):
            found = json.loads(path.read_text(encoding="utf-8"))
            names = [name for name in wanted if found[name] != wanted[name]]
        if "settings" in names:
            old, new = found["settings"], wanted["settings"]
            changed = sorted(name for name in {**old, **new} if old.get(name) != new.get(name))
            names[names.index("settings")] = f"settings ({', '.join(changed)})"
        names = [name for name in names if name != "digest"]
        if names:
            raise OptionError(
                f"the run in {self.folder} cannot be resumed: it has other {' and '.join(names)}; "
                "use another folder, or begin anew without resume."
            )

    def _remove_old(self) -> None:
        """Remove the files of an earlier run, the manifest first."""
        names = [MANIFEST, PLAN] + [f"tile-*{suffix}" for suffix in SUFFIXES]
        try:
            for name in names:
                for path in self.folder.glob(name):
                    path.unlink()
        except OSError as error:
            why = error.strerror or error
            raise FileError(f"{self.folder} cannot be written: {why}.") from None


def _digest(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
