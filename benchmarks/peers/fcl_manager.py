"""FCL's manager of many objects through python-fcl, and trimesh's, which is built on it."""

from collections.abc import Callable

import numpy as np

MOST_CONTACTS = 1000  # of a pair of boxes; there are 144 pairs of faces


def manager_calls(
    vertices: np.ndarray, faces: np.ndarray, frames: list[np.ndarray]
) -> dict[str, Callable[[], float]]:
    """Calls that move all objects and list all contacts, frame by frame; those installed here."""
    calls: dict[str, Callable[[], float]] = {}
    try:
        import fcl
    except ImportError:
        print("python-fcl is not installed")
        return calls
    calls["fcl"] = _fcl(fcl, vertices, faces, frames)
    calls["trimesh"] = _trimesh(vertices, faces, frames)
    return calls


def _fcl(
    fcl: object, vertices: np.ndarray, faces: np.ndarray, frames: list[np.ndarray]
) -> Callable:
    model = fcl.BVHModel()
    model.beginModel(len(vertices), len(faces))
    model.addSubModel(vertices, faces)
    model.endModel()
    turns = [[fcl.Transform(pose[:3, :3], pose[:3, 3]) for pose in frame] for frame in frames]
    objects = [fcl.CollisionObject(model, turn) for turn in turns[0]]
    manager = fcl.DynamicAABBTreeCollisionManager()
    manager.registerObjects(objects)
    manager.setup()
    request = fcl.CollisionRequest(num_max_contacts=MOST_CONTACTS, enable_contact=True)
    found = [0]

    def both(a: object, b: object, data: object) -> bool:
        result = fcl.CollisionResult()
        found[0] += fcl.collide(a, b, request, result)
        return False

    def run() -> float:
        found[0] = 0
        for frame in turns:
            for held, turn in zip(objects, frame, strict=True):
                held.setTransform(turn)
            manager.update()
            manager.collide(None, both)
        return found[0] / len(frames)

    return run


def _trimesh(vertices: np.ndarray, faces: np.ndarray, frames: list[np.ndarray]) -> Callable:
    import trimesh

    manager = trimesh.collision.CollisionManager()
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    for k, pose in enumerate(frames[0]):
        manager.add_object(str(k), mesh, pose)

    def run() -> float:
        count = 0
        for frame in frames:
            for k, pose in enumerate(frame):
                manager.set_transform(str(k), pose)
            _, data = manager.in_collision_internal(return_data=True)
            count += len(data)
        return count / len(frames)

    return run
