"""Memory of continuous queries is bounded, however many candidates there are."""

import subprocess
import sys

import pytest

CODE = """
import resource, sys
import numpy as np, warp as wp
wp.config.log_level = wp.LOG_WARNING
import abut
from abut.cases import plane
from abut.query.ccd import plan_of

device, rows, far = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
shape = plane(rows, rows, size=1.0)
bumps = 1e-3 * np.random.default_rng(0).normal(size=shape.vertices.shape)
start = shape.vertices + bumps
move = abut.Motion(abut.Mesh(start, shape.faces, device), start + far)
count = plan_of(move).candidate_count()
hits = abut.ccd(move)
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
if device != "cpu":
    held = wp.get_mempool_used_mem_high(wp.get_device(device))
print(count, held, len(hits))
"""
GIB = 1 << 30


def asked(device, rows, far):
    """Candidates, bytes and impacts of a sheet that goes a long way, aslant."""
    command = [sys.executable, "-c", CODE, device, str(rows), str(far)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return (int(word) for word in run.stdout.split())


@pytest.mark.slow
def test_a_hundred_million_candidates(device):
    """A whole process takes less than 1 GiB; 2 were allowed."""
    candidates, held, impacts = asked(device, 128, 0.15)
    assert candidates > 100_000_000
    assert impacts == 0 and held < GIB
