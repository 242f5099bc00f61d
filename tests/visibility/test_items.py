"""The kernels that CUDA draws with, run on the CPU with a few threads that take turns."""

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
from abut.visibility import screen as screens
from abut.visibility.culler import Culler

THREADS, SLOT = 128, 50  # two blocks at a time; somewhere in the tally


class Turns:
    """A task of CUDA whose threads run one after the other."""

    def __init__(self, kernel, count, args, device, **_):
        self.kernel, self.args = kernel, args
        self.threads = THREADS if count == UNKNOWN_COUNT else count
        self.span = wp.vec3i(0, count, self.threads)

    def run(self):
        wp.launch(self.kernel, self.threads, [self.span, *self.args], device="cpu")


def fragments(culler, on_cuda, monkeypatch):
    """Sorted rows (near, far, face, pixel) that a screen of lists draws, and what it counted."""
    step, soup = culler.steps[-1], culler.soup
    screen = screens.ListScreen(soup, culler.settings, step.pixels, culler.faces)
    screen.fragment_room = 1 << 17
    screen._make_room()
    tally = wp.zeros(SLOT + screens.TALLY, dtype=wp.int64, device="cpu")
    (canvas,) = screen.parts
    with monkeypatch.context() as patch:
        if on_cuda:
            for name in ("_items", "_large", "_small"):
                setattr(screen, name, wp.empty(1 << 15, dtype=wp.int64, device="cpu"))
            patch.setattr(screens, "Task", Turns)
            patch.setattr(screen, "device", SimpleNamespace(is_cpu=False, is_cuda=True))
        primitives = culler._primitives(step.level)
        for task in screen.expose(canvas, primitives, 0, step, tally, SLOT):
            task.run()
    blocks, large, area, count, small = tally.numpy()[SLOT:].tolist()
    rows = canvas.fragments.numpy()[:count]
    assert count < len(canvas.fragments) and not canvas.counts.numpy().any()
    return rows[np.lexsort(rows.view(np.int32).T)].view(np.int32), area, (blocks, large, small)


@pytest.mark.parametrize("method", CULL_METHODS)
@pytest.mark.parametrize("faces", [20, 400, 4000])
def test_both_ways_to_draw_make_the_same_fragments(faces, method, monkeypatch):
    meshes = [abut.Mesh(*shape, "cpu") for shape in cases.pair("tori", faces)]
    settings = _settings(method, 120, "y", "face", 0.0, None, False)
    culler = Culler(soup_of(meshes), settings)
    culler.faces.aim()
    rows, area, _ = fragments(culler, False, monkeypatch)
    found, other_area, items = fragments(culler, True, monkeypatch)
    assert len(rows) > 1000 and area == other_area
    assert np.array_equal(rows, found)
    blocks, large, small = items
    assert blocks and (large or faces > 20) and (small or faces < 4000)
