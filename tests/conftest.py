"""Devices, data and options shared by all tests."""

import os
from pathlib import Path

import hypothesis
import pytest
import warp as wp

from abut.core.device import thread_count

wp.config.log_level = wp.LOG_WARNING

hypothesis.settings.register_profile("abut", deadline=None, derandomize=True, max_examples=100)
hypothesis.settings.load_profile("abut")

CUDA = pytest.param(
    "cuda:0",
    marks=pytest.mark.skipif(not wp.is_cuda_available(), reason="there is no CUDA device"),
)


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run tests marked slow")
    parser.addoption("--device", help="leave out tests on another device")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))
    device = config.getoption("--device")
    if device:
        others = [item for item in items if device_of(item) not in (None, device)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if device_of(item) in (None, device)]


def device_of(item):
    """The device that a test is given; None for one that chooses its own."""
    return item.callspec.params.get("device") if hasattr(item, "callspec") else None


@pytest.fixture(scope="session", params=["cpu", CUDA])
def device(request):
    """Each device in turn; session-wide, so that Hypothesis may run many examples on it."""
    return request.param


@pytest.fixture(scope="session")
def data():
    """The folder of test data: ``ABUT_DATA``, else ``../shared/data`` beside the checkout."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ABUT_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"there is no test data at {folder}; set ABUT_DATA")
    return folder


@pytest.fixture
def threads(monkeypatch):
    """A function that sets the number of CPU threads."""

    def set_threads(count):
        monkeypatch.setenv("ABUT_THREADS", str(count))
        thread_count.cache_clear()
        assert thread_count() == count

    yield set_threads
    monkeypatch.undo()
    thread_count.cache_clear()
