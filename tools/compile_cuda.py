"""Compile for CUDA, on a machine without a GPU, every kernel that tests use.

Warp brings NVIDIA's compiler, so native code, templates and register limits of kernels are
checked where nothing can run them: ``python tools/compile_cuda.py [--arch 90] [pytest arguments]``.
Kernels are those of the CPU, or with ``--emulate`` those of a CUDA device (tools/emulate_cuda.py).
The exit status is 1 if a module does not compile. Modules that compiled before are not compiled
again. ``out/cuda-kernels`` holds them, laid out as Warp's kernel cache: a GPU machine with
``WARP_CACHE_PATH=out/cuda-kernels`` loads them instead of compiling each at its first use.
"""

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
KERNELS = ROOT / "out" / "cuda-kernels"
ARCHITECTURE = "ABUT_COMPILE_ARCH"
FAILURES = "ABUT_COMPILE_FAILURES"


def loaded_modules() -> list:
    """Return (module, threads of a block) of abut in this process that have kernels."""
    from warp._src.context import Module

    launches = sys.modules.get("simt.launches")  # of the emulated device
    if launches is not None:
        return [(module, block) for module, block in launches.LAUNCHED if is_abut(module)]
    modules = [m for m in gc.get_objects() if isinstance(m, Module)]
    return [(m, m.options["block_dim"]) for m in modules if is_abut(m) and m.kernels]


def is_abut(module) -> bool:
    """Whether kernels of a module are from abut, not from a test."""
    return any(k.func.__module__.startswith("abut") for k in module.kernels.values())


def compile_module(module, block: int, arch: int, folder: Path) -> str | None:
    """Compile one module for ``arch`` and return the compiler's message if that fails.

    Of several processes that hold the same module one compiles it.
    """
    name = module.get_module_identifier(block)
    claim = folder.parent / "claims" / name
    claim.parent.mkdir(parents=True, exist_ok=True)
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        return None
    began = time.perf_counter()
    try:
        options = module.resolved_options[block]
        module._compile(None, folder / name, output_arch=arch, options=options)
    except Exception as error:
        claim.unlink()
        return f"{module.name}: {error}"
    for source in (folder / name).glob("*.cu"):
        source.unlink()
    sys.stderr.write(f"{time.perf_counter() - began:6.1f} s  {module.name}\n")
    return None


def pytest_sessionfinish(session) -> None:
    """Compile the modules of a process of tests; pytest calls this, as this file is a plugin."""
    import warp as wp

    if not os.environ.get("PYTEST_XDIST_WORKER") and session.config.getoption("numprocesses", None):
        return  # the workers have the kernels
    arch, folder = int(os.environ[ARCHITECTURE]), KERNELS / wp.config.version
    messages = [compile_module(m, block, arch, folder) for m, block in loaded_modules()]
    with open(os.environ[FAILURES], "a") as file:
        file.writelines(f"{message}\n" for message in messages if message)


def main() -> int:
    """Run pytest with this file as a plugin, and report modules that do not compile."""
    arguments, arch = sys.argv[1:], "90"
    if arguments[:1] == ["--arch"]:
        arch, arguments = arguments[1], arguments[2:]
    plugins = ["-p", "compile_cuda"]
    failures = ROOT / "out" / "compile-cuda.txt"
    failures.parent.mkdir(exist_ok=True)
    failures.write_text("")
    paths = str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")
    environment = os.environ | {
        ARCHITECTURE: arch,
        FAILURES: str(failures),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    if arguments[:1] == ["--emulate"]:
        plugins, arguments = ["-p", "emulate_cuda", *plugins], arguments[1:]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, *arguments]
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    text = failures.read_text()
    sys.stdout.write(text or "every module compiled\n")
    return 1 if text else status


if __name__ == "__main__":
    raise SystemExit(main())
