"""A folder name for the machine that a result was measured on."""

import os
import platform
import re
from pathlib import Path


def machine_name(device: str) -> str:
    """The GPU, or the CPU and how many of its cores this process may use."""
    if device.startswith("cuda"):
        import warp as wp

        return slug(wp.get_device(device).name)
    return f"{slug(_cpu_model())}-{core_count()}c"


def core_count() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def slug(name: str) -> str:
    """Small letters and digits, joined by hyphens; trademarks and clock rates left out."""
    name = re.sub(r"\((r|tm)\)|@.*|\b(cpu|processor|\d+-core)\b", " ", name.lower())
    return "-".join(re.findall(r"[a-z0-9]+", name)) or "unknown"


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1]
    return platform.processor() or platform.machine()
