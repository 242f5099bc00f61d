"""Rules that every kernel module keeps."""

import importlib
from pathlib import Path

import pytest
import warp as wp

import abut

HOME = Path(abut.__file__).parent
KERNEL_FILES = [path for path in sorted(HOME.rglob("*.py")) if "@wp.kernel" in path.read_text()]
DIFFERENTIATED = "abut.sdf.tape"
NAMES = [".".join(path.relative_to(HOME.parent).with_suffix("").parts) for path in KERNEL_FILES]


@pytest.mark.parametrize("name", NAMES)
def test_no_contraction_and_no_adjoints(name):
    """Fused multiply-add would break exact predicates; options are those of the kernel's module."""
    importlib.import_module(name)
    options = wp.get_module(name).options
    assert options["fuse_fp"] is False
    assert options["enable_backward"] is (name == DIFFERENTIATED)


def test_the_kernel_files_are_found():
    assert {"abut.narrow.filter", "abut.narrow.exact", "abut.bvh.lbvh"} <= set(NAMES)
