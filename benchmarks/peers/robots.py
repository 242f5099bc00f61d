"""Validity checks of a planner: pinocchio's kinematics with the managers of Coal and FCL.

Obstacles are in a dynamic AABB tree. Each object of the robot is asked against it, and pairs of the
robot's own objects are tested where their boxes overlap. Both stop at the first contact. The same
pairs are tested as by abut.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.robot_cases import RobotCase

Ask = Callable[[np.ndarray], bool]  # whether a configuration is free


def checks(case: RobotCase) -> dict[str, Ask]:
    """The check of each library that is installed."""
    found: dict[str, Ask] = {}
    try:
        import pinocchio  # noqa: F401
    except ImportError:
        print("pin is not installed")
        return found
    for name, make in {"coal": _coal, "fcl": _fcl}.items():
        try:
            found[f"pin+{name}"] = make(case)
        except ImportError:
            print(f"{name} is not installed")
    return found


class _Robot:
    """Placements of the objects of the robot, and the pairs of them that are tested."""

    def __init__(self, case: RobotCase) -> None:
        import pinocchio

        scene, robot = case.scene, case.scene.robot
        self.pin = pinocchio
        self.model = pinocchio.buildModelFromUrdf(str(case.urdf))
        self.data = self.model.createData()
        kinematics, self.rows = robot.kinematics, robot.objects
        self.meshes = [scene.mesh(row) for row in self.rows.tolist()]
        links = [kinematics.links[link] for link, _ in kinematics.parts]
        self.frames = [self.model.getFrameId(link) for link in links]
        self.places = [np.asarray(pose) for _, pose in kinematics.parts]
        self.plain = [np.array_equal(pose, np.eye(4)) for pose in self.places]
        low, high = np.triu_indices(len(self.rows), 1)
        pairs = np.stack([low, high], axis=1)
        self.pairs = pairs[scene._objects.tested(self.rows[pairs])].tolist()
        rest = [row for row in scene.indices.tolist() if row not in self.rows]
        tested = scene._objects.tested
        # links that the filters keep from all obstacles, such as a static base
        self.meets = [
            bool(tested(np.array([[row, other] for other in rest])).all()) for row in self.rows
        ]

    def placements(self, values: np.ndarray) -> Any:
        """SE3 of each object."""
        self.pin.framesForwardKinematics(self.model, self.data, values)
        placed = self.data.oMf
        for k, frame in enumerate(self.frames):
            at = placed[frame]
            yield at if self.plain[k] else at * self.pin.SE3(self.places[k])


def _coal(case: RobotCase) -> Ask:
    import coal

    from benchmarks.peers.coal import _model

    robot = _Robot(case)
    objects = [
        coal.CollisionObject(_model(m.vertices.numpy(), m.faces.numpy(), "obbrss"))
        for m in robot.meshes
    ]
    still = []
    for (vertices, faces, pose), sizes in zip(case.obstacles, case.sizes, strict=True):
        shape = coal.Box(*sizes) if len(sizes) == 3 else _model(vertices, faces, "obbrss")
        still.append(coal.CollisionObject(shape, coal.Transform3s(pose[:3, :3], pose[:3, 3])))
        still[-1].computeAABB()
    manager = coal.DynamicAABBTreeCollisionManager()
    for held in still:
        manager.registerObject(held)
    manager.setup()
    request = coal.CollisionRequest()
    request.enable_contact = False

    def ask(values: np.ndarray) -> bool:
        for held, at in zip(objects, robot.placements(values), strict=True):
            held.setTranslation(at.translation)
            held.setRotation(at.rotation)
            held.computeAABB()
        for held, meets in zip(objects, robot.meets, strict=True):
            if meets:
                callback = coal.CollisionCallBackDefault()
                manager.collide(held, callback)
                if callback.data.result.isCollision():
                    return False
        for i, j in robot.pairs:
            a, b = objects[i], objects[j]
            if a.getAABB().overlap(b.getAABB()):
                result = coal.CollisionResult()
                if coal.collide(a, b, request, result):
                    return False
        return True

    ask.held = still, manager  # type: ignore[attr-defined]  (the manager keeps no references)
    return ask


def _fcl(case: RobotCase) -> Ask:
    import fcl

    from benchmarks.peers.fcl import _model

    robot = _Robot(case)
    objects = [
        fcl.CollisionObject(_model(m.vertices.numpy(), m.faces.numpy())) for m in robot.meshes
    ]
    still = [
        fcl.CollisionObject(
            fcl.Box(*sizes) if len(sizes) == 3 else _model(vertices, faces),
            fcl.Transform(pose[:3, :3], pose[:3, 3]),
        )
        for (vertices, faces, pose), sizes in zip(case.obstacles, case.sizes, strict=True)
    ]
    manager = fcl.DynamicAABBTreeCollisionManager()
    manager.registerObjects(still)
    manager.setup()
    request = fcl.CollisionRequest(1, enable_contact=False)

    def ask(values: np.ndarray) -> bool:
        for held, at in zip(objects, robot.placements(values), strict=True):
            held.setTransform(fcl.Transform(at.rotation, at.translation))
        for held, meets in zip(objects, robot.meets, strict=True):
            if meets:
                data = fcl.CollisionData(request)
                manager.collide(held, data, fcl.defaultCollisionCallback)
                if data.result.is_collision:
                    return False
        for i, j in robot.pairs:
            result = fcl.CollisionResult()
            if fcl.collide(objects[i], objects[j], request, result):
                return False
        return True

    return ask
