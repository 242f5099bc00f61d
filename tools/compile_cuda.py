"""Compile for CUDA, on a machine without a GPU, every kernel that tests use on the CPU.

Warp brings NVIDIA's compiler, so native code, templates and register limits of kernels are
checked where nothing can run them: ``python tools/compile_cuda.py [--arch 90] [pytest arguments]``.
The exit status is 1 if a module does not compile. Modules that compiled before are not compiled
again; the folder of the kernel cache holds them.
"""

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
ARCHITECTURE = "ABUT_COMPILE_ARCH"
FAILURES = "ABUT_COMPILE_FAILURES"


def loaded_modules() -> list:
    """Return the Warp modules of abut in this process that have kernels."""
    from warp._src.context import Module

    modules = [m for m in gc.get_objects() if isinstance(m, Module)]
    return [m for m in modules if m.name.startswith("abut") and m.kernels]


def compile_module(module, arch: int, folder: Path) -> str | None:
    """Compile one module for ``arch`` and return the compiler's message if that fails.

    Of several processes that hold the same module one compiles it.
    """
    import warp as wp

    claim = folder / module.get_module_hash().hex()
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        return None
    began = time.perf_counter()
    try:
        wp.compile_aot_module(module, arch=arch, module_dir=str(folder / module.name[:80]))
    except Exception as error:
        claim.unlink()
        return f"{module.name}: {error}"
    sys.stderr.write(f"{time.perf_counter() - began:6.1f} s  {module.name}\n")
    return None


def pytest_sessionfinish(session) -> None:
    """Compile the modules of a process of tests; pytest calls this, as this file is a plugin."""
    import warp as wp

    if not os.environ.get("PYTEST_XDIST_WORKER") and session.config.getoption("numprocesses", None):
        return  # the workers have the kernels
    arch = int(os.environ[ARCHITECTURE])
    folder = Path(wp.config.kernel_cache_dir) / f"aot-sm{arch}"
    folder.mkdir(parents=True, exist_ok=True)
    messages = [compile_module(module, arch, folder) for module in loaded_modules()]
    with open(os.environ[FAILURES], "a") as file:
        file.writelines(f"{message}\n" for message in messages if message)


def main() -> int:
    """Run pytest with this file as a plugin, and report modules that do not compile."""
    arguments = sys.argv[1:]
    arch = "90"
    if arguments[:1] == ["--arch"]:
        arch, arguments = arguments[1], arguments[2:]
    failures = ROOT / "out" / "compile-cuda.txt"
    failures.parent.mkdir(exist_ok=True)
    failures.write_text("")
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {
        ARCHITECTURE: arch,
        FAILURES: str(failures),
        "PYTHONPATH": paths,
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "compile_cuda", *arguments]
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    text = failures.read_text()
    sys.stdout.write(text or "every module compiled\n")
    return 1 if text else status


if __name__ == "__main__":
    raise SystemExit(main())
