"""Type-check ``src`` with pyright: ``python tools/check_types.py``.

Host files are checked with pyright's default rules. Device files are Python to the reader but not
to a type checker: their kernels are checked by Warp, and their RTL by Amaranth. They are checked
with the rules of ``DEVICE_RULES`` off. Warp itself counts as untyped (``tools/typings``).
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEVICE_FILE = re.compile(r"^\s*@wp\.|wp\.set_module_options|^\s*(from|import) amaranth", re.M)
DEVICE_RULES = (
    "reportInvalidTypeForm",
    "reportAttributeAccessIssue",
    "reportIndexIssue",
    "reportOperatorIssue",
    "reportCallIssue",
    "reportArgumentType",
    "reportReturnType",
    "reportGeneralTypeIssues",
    "reportOptionalMemberAccess",
    "reportOptionalSubscript",
    "reportPossiblyUnboundVariable",
    "reportRedeclaration",
    "reportIncompatibleMethodOverride",
)


def is_device_file(path: Path) -> bool:
    """Return whether a file holds kernels, device functions or RTL."""
    return DEVICE_FILE.search(path.read_text()) is not None


def check(files: list[Path], rules_off: tuple[str, ...] = ()) -> int:
    """Run pyright over the files and return its exit status."""
    config = {
        "include": [str(path.relative_to(ROOT)) for path in files],
        "pythonVersion": "3.11",
        "stubPath": "tools/typings",
        "typeCheckingMode": "standard",
        "reportMissingModuleSource": False,
        **dict.fromkeys(rules_off, False),
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json", prefix=".pyright-", dir=ROOT) as file:
        json.dump(config, file)
        file.flush()
        command = [sys.executable, "-m", "pyright", "-p", file.name, "--pythonpath", sys.executable]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


def main() -> int:
    """Check host files, then device files; 1 if either has findings."""
    files = sorted((ROOT / "src").rglob("*.py"))
    device_files = [path for path in files if is_device_file(path)]
    host_files = [path for path in files if path not in device_files]
    print(f"{len(host_files)} host files, default rules", flush=True)
    wrong = check(host_files)
    print(f"{len(device_files)} device files, relaxed rules", flush=True)
    return int(bool(check(device_files, DEVICE_RULES)) or bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
