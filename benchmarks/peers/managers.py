"""Collision managers of FCL and Coal: one object against a scene, and a scene of which one moves.

A yes or no each; both stop at the first contact. Only libraries that are installed answer.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from abut.cases import Shape

Ask = Callable[[np.ndarray], bool]  # of a pose of the object that moves


def one_against(shape: Shape, poses: np.ndarray) -> dict[str, Ask]:
    """Whether an object at a pose meets any of the objects of a scene."""
    return {name: make(shape, poses, None) for name, make in _installed().items()}


def one_moved(shape: Shape, poses: np.ndarray, row: int) -> dict[str, Ask]:
    """Whether any two objects of a scene meet, after one of them was moved to a pose."""
    return {name: make(shape, poses, row) for name, make in _installed().items()}


def _installed() -> dict[str, Callable[[Shape, np.ndarray, int | None], Ask]]:
    found: dict[str, Any] = {}
    try:
        import fcl  # noqa: F401

        found["fcl"] = _fcl
    except ImportError:
        print("python-fcl is not installed")
    try:
        import coal  # noqa: F401

        found["coal"] = _coal
    except ImportError:
        print("coal is not installed")
    return found


def _fcl(shape: Shape, poses: np.ndarray, row: int | None) -> Ask:
    import fcl

    def place(pose: np.ndarray) -> Any:
        return fcl.Transform(pose[:3, :3], pose[:3, 3])

    model = fcl.BVHModel()
    model.beginModel(len(shape.vertices), len(shape.faces))
    model.addSubModel(shape.vertices, shape.faces)
    model.endModel()
    objects = [fcl.CollisionObject(model, place(pose)) for pose in poses]
    manager = fcl.DynamicAABBTreeCollisionManager()
    manager.registerObjects(objects)
    manager.setup()
    probe = fcl.CollisionObject(model) if row is None else objects[row]

    def ask(pose: np.ndarray) -> bool:
        probe.setTransform(place(pose))
        data = fcl.CollisionData()
        if row is None:
            manager.collide(probe, data, fcl.defaultCollisionCallback)
        else:
            manager.update(probe)
            manager.collide(data, fcl.defaultCollisionCallback)
        return data.result.is_collision

    return ask


def _coal(shape: Shape, poses: np.ndarray, row: int | None) -> Ask:
    import coal

    from benchmarks.peers.coal import _model

    def place(pose: np.ndarray) -> Any:
        return coal.Transform3s(pose[:3, :3], pose[:3, 3])

    model = _model(shape.vertices, shape.faces, "obbrss")
    objects = [coal.CollisionObject(model, place(pose)) for pose in poses]
    manager = coal.DynamicAABBTreeCollisionManager()
    for held in objects:
        manager.registerObject(held)
    manager.setup()
    probe = coal.CollisionObject(model) if row is None else objects[row]

    def ask(pose: np.ndarray) -> bool:
        probe.setTransform(place(pose))
        probe.computeAABB()
        callback = coal.CollisionCallBackDefault()
        if row is None:
            manager.collide(probe, callback)
        else:
            manager.update(probe)
            manager.collide(callback)
        return callback.data.result.isCollision()

    ask.held = objects, model  # type: ignore[attr-defined]  (the manager keeps no references)
    return ask
