"""Least distances of many objects by the managers of FCL and Coal: dynamic trees of boxes."""

from collections.abc import Callable
from typing import Any

import numpy as np


def manager_calls(
    vertices: np.ndarray, faces: np.ndarray, frames: list[np.ndarray]
) -> dict[str, Callable[[], list[float]]]:
    """Calls that move all objects and ask for their least distance, frame by frame."""
    calls: dict[str, Callable[[], list[float]]] = {}
    for name, make in {"fcl": _fcl, "coal": _coal}.items():
        try:
            calls[name] = make(vertices, faces, frames)
        except ImportError:
            print(f"{name} is not installed")
    return calls


def one_against(
    vertices: np.ndarray, faces: np.ndarray, others: np.ndarray
) -> dict[str, Callable[[np.ndarray], float]]:
    """Functions that return the least distance of one object at a pose to the others."""
    calls: dict[str, Callable[[np.ndarray], float]] = {}
    for name, make in {"fcl": _fcl_one, "coal": _coal_one}.items():
        try:
            calls[name] = make(vertices, faces, others)
        except ImportError:
            print(f"{name} is not installed")
    return calls


def _fcl_model(vertices: np.ndarray, faces: np.ndarray) -> Any:
    import fcl

    model = fcl.BVHModel()
    model.beginModel(len(vertices), len(faces))
    model.addSubModel(vertices, faces)
    model.endModel()
    return model


def _fcl_one(vertices: np.ndarray, faces: np.ndarray, others: np.ndarray) -> Callable:
    import fcl

    model = _fcl_model(vertices, faces)
    turns = [fcl.Transform(pose[:3, :3], pose[:3, 3]) for pose in others]
    manager = fcl.DynamicAABBTreeCollisionManager()
    manager.registerObjects([fcl.CollisionObject(model, turn) for turn in turns])
    manager.setup()
    one = fcl.CollisionObject(model)

    def least(pose: np.ndarray) -> float:
        one.setTransform(fcl.Transform(pose[:3, :3], pose[:3, 3]))
        data = fcl.DistanceData()
        manager.distance(one, data, fcl.defaultDistanceCallback)
        return max(data.result.min_distance, 0.0)

    return least


def _coal_model(vertices: np.ndarray, faces: np.ndarray) -> Any:
    import coal

    model = coal.BVHModelOBBRSS()
    model.beginModel(len(faces), len(vertices))
    model.addVertices(np.asarray(vertices, np.float64))
    model.addTriangles(faces.astype(np.int64))
    model.endModel()
    return model


def _coal_one(vertices: np.ndarray, faces: np.ndarray, others: np.ndarray) -> Callable:
    import coal

    model = _coal_model(vertices, faces)
    turns = [coal.Transform3s(pose[:3, :3], pose[:3, 3]) for pose in others]
    manager = coal.DynamicAABBTreeCollisionManager()
    kept = [coal.CollisionObject(model, turn) for turn in turns]
    for other in kept:
        manager.registerObject(other)
    manager.setup()
    one = coal.CollisionObject(model)

    def least(pose: np.ndarray, kept: Any = kept) -> float:
        one.setTransform(coal.Transform3s(pose[:3, :3], pose[:3, 3]))
        one.computeAABB()
        callback = coal.DistanceCallBackDefault()
        manager.distance(one, callback)
        return max(callback.data.result.min_distance, 0.0)

    return least


def _fcl(vertices: np.ndarray, faces: np.ndarray, frames: list[np.ndarray]) -> Callable:
    import fcl

    model = _fcl_model(vertices, faces)
    turns = [[fcl.Transform(pose[:3, :3], pose[:3, 3]) for pose in frame] for frame in frames]
    objects = [fcl.CollisionObject(model, turn) for turn in turns[0]]
    manager = fcl.DynamicAABBTreeCollisionManager()
    manager.registerObjects(objects)
    manager.setup()

    def least() -> float:
        data = fcl.DistanceData()
        manager.distance(data, fcl.defaultDistanceCallback)
        return max(data.result.min_distance, 0.0)

    return _frames(objects, turns, manager, least)


def _coal(vertices: np.ndarray, faces: np.ndarray, frames: list[np.ndarray]) -> Callable:
    import coal

    model = _coal_model(vertices, faces)
    turns = [[coal.Transform3s(pose[:3, :3], pose[:3, 3]) for pose in frame] for frame in frames]
    objects = [coal.CollisionObject(model, turn) for turn in turns[0]]
    manager = coal.DynamicAABBTreeCollisionManager()
    for one in objects:
        manager.registerObject(one)
    manager.setup()

    def least() -> float:
        callback = coal.DistanceCallBackDefault()
        manager.distance(callback)
        return max(callback.data.result.min_distance, 0.0)

    return _frames(objects, turns, manager, least)


def _frames(objects: list[Any], turns: list[list[Any]], manager: Any, least: Callable) -> Callable:
    def run() -> list[float]:
        found = []
        for frame in turns:
            for one, turn in zip(objects, frame, strict=True):
                one.setTransform(turn)
                if hasattr(one, "computeAABB"):
                    one.computeAABB()
            manager.update()
            found.append(least())
        return found

    return run
