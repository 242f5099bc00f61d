"""Stage timers."""

import warp as wp

from abut.core.timing import recording, stage


def test_a_stage_outlives_its_recording():
    """Another thread may end a recording while a stage that it has begun to time still runs."""
    with recording() as timer:
        running = stage("search", wp.get_device("cpu"))
        running.__enter__()
    running.__exit__(None, None, None)
    assert list(timer.milliseconds) == ["search"]
    with stage("sort", wp.get_device("cpu")):
        pass
    assert list(timer.milliseconds) == ["search"]
