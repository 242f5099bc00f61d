"""tools/check_kernels.py lets our sources pass and finds each kind of slip."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOL = ROOT / "tools" / "check_kernels.py"

spec = importlib.util.spec_from_file_location("check_kernels", TOOL)
check_kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_kernels)

OPTIONS = 'wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})'
KERNEL = """
@wp.kernel
def twice_kernel(
    # in
    x: wp.array[wp.int32],
    # out
    y_out: wp.array[wp.int32],
):
    i = wp.tid()
    y_out[i] = 2 * x[i]
"""
CHANGING = """
@wp.func
def f(n: wp.int32):
    x = wp.int64(MOST)
    for i in range(n):
        if x == MOST:
            x = wp.int64(i)
    return x
"""
GOOD = f"import warp as wp\n{OPTIONS}\n{KERNEL}"
UNIQUE = '@wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})'


def test_our_sources_pass():
    command = [sys.executable, TOOL, ROOT / "src" / "abut"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "source",
    [
        GOOD,
        GOOD.replace("    # out\n    y_out: wp.array[wp.int32],\n", "").replace("y_out[i]", "z"),
        KERNEL.replace("@wp.kernel", UNIQUE),
        GOOD.replace("2 * x[i]", "2 * x[i]\n    k = wp.vec2i(0)\n    k[0] = 1"),
        "import warp as wp\n\n@wp.func\ndef f(x: wp.int32):\n    y = x\n    return y",
        CHANGING.replace("wp.int64(MOST)", "wp.int32(MOST)"),
        CHANGING.replace("x == MOST", "x < n"),
        "@wp.func\ndef f(x: wp.int32):\n    return wp.float64(x / 3) + wp.float64(-1.0)",
    ],
)
def test_good_sources(source):
    assert check_kernels.check(source) == []


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (GOOD.replace(OPTIONS, ""), "set_module_options"),
        (GOOD.replace(OPTIONS, 'wp.set_module_options({"fuse_fp": False})'), "set_module_options"),
        (GOOD.replace('"fuse_fp": False', '"fuse_fp": True'), "set_module_options"),
        (GOOD.replace(OPTIONS, f"def set_up():\n    {OPTIONS}"), "set_module_options"),
        (KERNEL.replace("@wp.kernel", '@wp.kernel(module="unique")'), "module_options"),
        (GOOD.replace("twice_kernel", "twice"), "ends in _kernel"),
        (GOOD.replace("    # in\n", ""), "'# in' must come before"),
        (GOOD.replace("    # out\n", ""), "y_out stands before '# out'"),
        (GOOD.replace("y_out", "y"), "y stands after '# out'"),
        (GOOD.replace("y_out[i] =", "x[i] ="), "writes to x"),
        (GOOD.replace("y_out[i] =", "x[i] +="), "writes to x"),
        (GOOD.replace("y_out[i] = 2 * x[i]", "wp.atomic_add(x, i, 1)"), "writes to x"),
        (GOOD.replace("y_out[i] = 2 * x[i]", "push_pair(x, i)"), "writes to x"),
        (GOOD.replace("y_out[i] = 2 * x[i]", "atomic_min_int64(x.best, i, i)"), "writes to x"),
        (GOOD.replace("    i = ", "    twice_kernel = ") + "\n", "hides another twice_kernel"),
        ("@wp.func\ndef f(g: wp.int32):\n    return g\n\ndef g():\n    pass", "hides another g"),
        (
            "@wp.func\ndef f():\n    return wp.float64(1.0 / 3.0)",
            "1.0 / 3.0 is computed in float32",
        ),
        (CHANGING, "the constant MOST changes with x"),
        (CHANGING.replace("wp.int64(MOST)", "MOST"), "the constant MOST changes with x"),
    ],
)
def test_bad_sources(source, complaint):
    messages = [message for _, message in check_kernels.check(source)]
    assert any(complaint in message for message in messages), messages


def test_findings_name_file_and_line(tmp_path, capsys):
    path = tmp_path / "bad.py"
    path.write_text(GOOD.replace("y_out[i] =", "x[i] ="))
    assert check_kernels.main([str(path)]) == 1
    line = path.read_text().splitlines().index("    x[i] = 2 * x[i]") + 1
    assert capsys.readouterr().out.startswith(f"{path}:{line}: twice_kernel: writes to x")


def test_the_file_that_is_differentiated():
    backward = GOOD.replace('"enable_backward": False', '"enable_backward": True')
    required = check_kernels.DIFFERENTIATED["abut/sdf/tape.py"]
    assert check_kernels.check(backward, required) == []
    assert any("set_module_options" in message for _, message in check_kernels.check(backward))
    assert any("set_module_options" in m for _, m in check_kernels.check(GOOD, required))
