"""The table of springs: what is added is found, through turns, growth and restored states."""

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.sdf.tangential_springs import (
    SpringTable,
    TangentialSprings,
    add_spring,
    find_spring,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def add_kernel(span: wp.vec3i, keys: wp.array[wp.vec4i], table_out: SpringTable):
    """Add a spring for each key; its anchor is the key's number."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        k = keys[i]
        half = 1 - table_out.turn[0]
        anchor = wp.vec3f(wp.float32(i))
        add_spring(table_out, half, wp.vec2i(k[0], k[1]), k[2], wp.vec2i(k[3], 7), anchor)


@wp.kernel
def find_kernel(
    span: wp.vec3i, keys: wp.array[wp.vec4i], table: SpringTable, found_out: wp.array[wp.float32]
):
    """Write the anchor of each key's spring, -1 where there is none."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        k = keys[i]
        slot = find_spring(table, wp.vec2i(k[0], k[1]), k[2], wp.vec2i(k[3], 7))
        found_out[i] = wp.float32(-1.0)
        if slot >= 0:
            found_out[i] = table.anchors[slot][0]


def step(springs, table, keys, device):
    """Keep springs of these keys alone."""
    clear, turn = springs.stages(table)
    clear()
    rows = wp.array(keys, dtype=wp.vec4i, device=device)
    launch(add_kernel, len(keys), [rows, table], device, grain=16)
    turn()


def anchors(table, keys, device):
    found = wp.empty(len(keys), dtype=wp.float32, device=device)
    rows = wp.array(keys, dtype=wp.vec4i, device=device)
    launch(find_kernel, len(keys), [rows, table, found], device, grain=16)
    return found.numpy()


def test_springs_survive_turns_growth_and_restored_states(device):
    device = wp.get_device(device)
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, 40, size=(3000, 4)), axis=0).astype(np.int32)
    first, second = keys[:1000], keys[500:2500]
    count = wp.zeros(1, dtype=wp.int64, device=device)
    springs = TangentialSprings(device, 0.5)
    table = springs.table(1000, count)
    step(springs, table, first, device)
    assert count.numpy()[0] == 1000
    np.testing.assert_array_equal(anchors(table, first, device), np.arange(1000))
    assert (anchors(table, keys[1000:], device) == -1).all()
    springs.save()
    for room in (1500, 5000):  # too little room; more, twice
        count.zero_()
        step(springs, table, second, device)
        assert count.numpy()[0] == 2000
        springs.restore()
        count.zero_()
        table = springs.table(room, count)
        np.testing.assert_array_equal(anchors(table, first, device), np.arange(1000))
        assert count.numpy()[0] == 0
    step(springs, table, second, device)
    np.testing.assert_array_equal(anchors(table, second, device), np.arange(2000))
    assert (anchors(table, keys[:500], device) == -1).all()
    springs.turn_back()
    np.testing.assert_array_equal(anchors(table, first, device), np.arange(1000))
