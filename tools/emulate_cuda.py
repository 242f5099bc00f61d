"""Run tests on an emulated CUDA device: ``python tools/emulate_cuda.py [pytest arguments]``.

The threads of a launch run on the CPU as fibers (``tools/simt/warps.c``), in a random order, with
the native code that kernels have for CUDA. It is an error if lanes do not all come to
``__shfl_sync`` and its like, or if an index is out of range. Arrays begin with arbitrary bytes.
Host code of abut sees a device "cuda:0" whose launches and copies wait until the host synchronises,
as late as a stream allows. Graphs are lists of such launches. ``EMULATE_SEED`` chooses the order,
``EMULATE_THREADS`` the threads of launches of a fixed size.

It is no proof: fibers change only where lanes meet and where memory is written, memory is in order,
one stream holds all work, and times mean nothing.
"""

import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
THREADS = int(os.environ.get("EMULATE_THREADS", "256"))
FIXED_GRIDS = (
    "abut.core.launch.CUDA_THREADS",
    "abut.core.team.TEAM_GRID",
    "abut.core.point_check.CUDA_LANES",
    "abut.bvh.refit.CUDA_LANES",
    "abut.narrow.exact.EXACT_THREADS",
    "abut.query.team_passes.CUDA_TEAMS",
    "abut.query.contact_plan.UNPACKING_THREADS",
    "abut.query.contact_stages.LEAF_WALK_THREADS",
    "abut.query.distance_stages.CUDA_WALKS",
    "abut.sdf.draw_batches.THREADS",
)


def capture_call(device, launch):
    """Stand for ``abut.core.call._captured``."""
    from simt.device import Capture

    with Capture() as capture:
        launch(device.stream)
    return capture.graph


def start() -> None:
    """Prepare this process, before abut is imported."""
    from simt.device import add_device, delay_arrays
    from simt.launches import emulate_launches
    from simt.native_code import emulate_native_code

    emulate_native_code()
    device = add_device()
    delay_arrays(device)
    emulate_launches(device)
    import abut.core.call

    abut.core.call._captured = capture_call
    for name in FIXED_GRIDS:
        shrink_grid(*name.rsplit(".", 1))


def shrink_grid(module: str, name: str) -> None:
    """Let launches of a fixed size be small, wherever the number of their threads was imported."""
    usual = getattr(import_module(module), name)
    for other in [m for key, m in sys.modules.items() if key.startswith("abut")]:
        if vars(other).get(name) == usual:
            setattr(other, name, THREADS // 32 if "TEAMS" in name else THREADS)


def main() -> int:
    """Run pytest with this file as a plugin."""
    cache = os.environ.get("EMULATE_CACHE", str(Path(tempfile.gettempdir(), "abut-emulated")))
    Path(cache).mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"EMULATE_CACHE": cache, "PYTHONPATH": path}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "emulate_cuda", *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())

start()
