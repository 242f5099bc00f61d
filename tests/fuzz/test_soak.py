"""Memory does not grow: new meshes and queries, again and again, in a process of their own."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, gc, sys
import numpy as np
import abut
from abut import cases

verb, calls, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
libc = ctypes.CDLL(None)
ball, box = cases.icosphere(80), cases.box()
points = np.random.default_rng(0).normal(size=(20, 3))
pose = np.eye(4)
pose[2, 3] = 0.9
VERBS = {
    "mesh": lambda a, b: a.watertight,
    "collide": lambda a, b: abut.collide(a, b, pose_b=pose).segments,
    "self_collide": lambda a, b: abut.self_collide(a).pairs,
    "distance": lambda a, b: abut.distance(a, b).points,
    "within": lambda a, b: abut.within(a, b, 0.2, pose_b=pose).points,
    "closest_point": lambda a, b: abut.closest_point(a, points, signed=True).distance,
    "cull": lambda a, b: abut.cull([a, b], pixels=16).pairs,
    "deform": lambda a, b: a.deform(ball.vertices) or abut.collide(a, b).pairs,
    "scene": lambda a, b: make_scene(a, b).collide().pairs,
}


def make_scene(a, b):
    scene = abut.Scene(device)
    scene.add(a)
    scene.add(b, pose)
    return scene


def run(count):
    for k in range(count):
        a = abut.Mesh(ball.vertices * (1 + 1e-3 * (k % 5)), ball.faces, device)
        VERBS[verb](a, abut.Mesh(*box, device))
    gc.collect()


def resident():
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)  # what is free is not growth
    return int(open("/proc/self/statm").read().split()[1]) * 4  # KiB


run(calls)
rates = []
for _ in range(6):
    before = resident()
    run(calls)
    rates.append((resident() - before) * 1000 / calls)
print("KiB per 1,000 calls:", [round(rate) for rate in rates])
print(sorted(rates)[len(rates) // 2 - 1])
"""


def growth(verb, calls, device):
    """Return the growth of a process [KiB per 1,000 calls]: the median of six periods."""
    command = [sys.executable, "-c", PROGRAM, verb, str(calls), device]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    print(done.stdout)
    return float(done.stdout.splitlines()[-1])


MOST = 16.0  # KiB per 1,000 calls, after warm-up
QUICK = ["mesh", "collide"]
ALL = [*QUICK, "self_collide", "distance", "within", "closest_point", "cull", "deform", "scene"]


@pytest.mark.slow
@pytest.mark.parametrize("verb", ALL)
def test_memory_of_many_calls(verb, device):
    calls = 3000 if verb == "closest_point" else 1000  # its memory settles later
    assert growth(verb, calls, device) <= MOST
