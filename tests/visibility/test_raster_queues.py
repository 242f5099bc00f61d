"""The raster kernels of CUDA, run on the CPU with a few threads one after the other."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.core.launch import UNKNOWN_COUNT
from abut.operands.soup import soup_of
from abut.options import CULL_METHODS
from abut.query.cull import _settings
from abut.visibility import raster_target
from abut.visibility.culler import Culler
from abut.visibility.raster_target import AREA, BLOCKS, DRAW_COUNTS, LARGE, SMALL, STORED, Draw

THREADS, SLOT = 128, 50  # two blocks at a time; somewhere in the counts


class SerialTask:
    """A Task of CUDA whose threads run one after the other."""

    def __init__(self, kernel, count, args, device, **_):
        self.kernel, self.args = kernel, args
        self.threads = THREADS if count == UNKNOWN_COUNT else count
        self.span = wp.vec3i(0, count, self.threads)

    def run(self):
        wp.launch(self.kernel, self.threads, [self.span, *self.args], device="cpu")


def fragments(culler, on_cuda, monkeypatch):
    """Sorted rows (near, far, face, pixel) of a FragmentTarget, and the counts of the draw."""
    step, soup = culler.steps[-1], culler.soup
    target = raster_target.FragmentTarget(soup, culler.settings, step.pixels, culler.setup)
    target.fragment_capacity = 1 << 17
    target.allocate()
    counts = wp.zeros(SLOT + DRAW_COUNTS, dtype=wp.int64, device="cpu")
    (lists,) = target.parts
    with monkeypatch.context() as patch:
        if on_cuda:
            for name in ("_blocks", "_large", "_small"):
                setattr(target, name, wp.empty(1 << 15, dtype=wp.int64, device="cpu"))
            patch.setattr(raster_target, "Task", SerialTask)
            patch.setattr(target, "device", SimpleNamespace(is_cpu=False, is_cuda=True))
        draw = Draw(lists, culler.primitives(step.level), 0, step, counts, counts[SLOT:])
        for run in target.rasterise(draw):
            run()
    found = counts.numpy()[SLOT:].tolist()
    area, count = found[AREA], found[STORED]
    rows = lists.fragments.numpy()[:count]
    assert count < len(lists.fragments) and not lists.counts.numpy().any()
    return (
        rows[np.lexsort(rows.view(np.int32).T)].view(np.int32),
        area,
        [found[k] for k in (BLOCKS, LARGE, SMALL)],
    )


@pytest.mark.parametrize("method", CULL_METHODS)
@pytest.mark.parametrize("faces", [20, 400, 4000])
def test_both_rasterisers_make_the_same_fragments(faces, method, monkeypatch):
    meshes = [abut.Mesh(*shape, "cpu") for shape in cases.pair("tori", faces)]
    settings = _settings(method, 120, "y", "face", 0.0, None, False)
    culler = Culler(soup_of(meshes), settings)
    culler.setup.update_views()
    rows, area, _ = fragments(culler, False, monkeypatch)
    found, other_area, items = fragments(culler, True, monkeypatch)
    assert len(rows) > 1000 and area == other_area
    assert np.array_equal(rows, found)
    blocks, large, small = items
    assert blocks and (large or faces > 20) and (small or faces < 4000)
