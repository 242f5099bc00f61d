"""``abut info``: versions, devices and folders for a bug report."""

import argparse
import os
import platform
from pathlib import Path
from typing import Any

from abut.cli.bench import checkout
from abut.cli.console import show_facts, show_json, version_of
from abut.core.device import thread_count
from abut.visibility.gl.driver import driver, unavailable


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "info", description="Versions, devices, threads and folders, as a bug report needs them."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print versions, devices and folders."""
    import warp as wp

    data = data_folder()
    here = {
        "abut": version_of("abut"),
        "warp": wp.__version__,
        "numpy": version_of("numpy"),
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "devices": [_described(device) for device in wp.get_devices()],
        "threads": thread_count(),
        "graphics": unavailable() or driver().name,
        "kernel_cache": wp.config.kernel_cache_dir,
        "data": str(data) if data else None,
    }
    if args.json:
        show_json(here)
    else:
        here |= {"devices": "\n".join(here["devices"]), "data": here["data"] or "not found"}
        show_facts((name.replace("_", " "), str(value)) for name, value in here.items())
    return 0


def _described(device: Any) -> str:
    if device.is_cpu:
        return f"{device.alias}: {platform.processor() or platform.machine()}"
    return f"{device.alias}: {device.name}, {device.total_memory / 2**30:.0f} GiB, sm_{device.arch}"


def data_folder() -> Path | None:
    """Folder of test models: ``ABUT_DATA``, else ``../shared/data`` of the checkout."""
    root = checkout()
    beside = root.parent / "shared" / "data" if root else None
    folder = Path(os.environ["ABUT_DATA"]) if "ABUT_DATA" in os.environ else beside
    return folder if folder and folder.is_dir() else None
