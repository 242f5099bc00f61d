"""Arrays whose gradients would be lost are refused, wherever they come in."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases

VERTICES, FACES = cases.gem(20)
EYE = np.eye(4)
SCENE_VERBS = ("collide", "colliding", "within", "distance", "least_distance", "ccd")
PAIR_VERBS = ("collide", "distance", "within")
POINT_VERBS = ("closest_point", "contains", "signed_distance")


class Tensor:
    """An array as of Torch: it has the DLPack protocol, and refuses NumPy."""

    requires_grad = True

    def __init__(self, numbers):
        self.numbers = np.asarray(numbers)
        self.shape = self.numbers.shape

    def __len__(self):
        return len(self.numbers)

    def __dlpack__(self, **_):
        return self.numbers.__dlpack__()

    def __dlpack_device__(self):
        return self.numbers.__dlpack_device__()

    def __array__(self, *_, **__):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach()")


class LinearizeTracer(Tensor):
    """An array as of JAX, in the middle of ``jax.grad``."""

    requires_grad = False

    def __dlpack_device__(self):
        raise AttributeError("LinearizeTracer has no attribute __dlpack_device__")


def gem(device):
    return abut.Mesh(VERTICES, FACES, device)


def field(device):
    return abut.DistanceField(gem(device), resolution=8)


def two(device):
    return abut.Scene([gem(device), gem(device)])


def taped(device):
    return wp.array([wp.transform_identity(wp.float64)], dtype=wp.transformd, device=device)


def pair_verb(name, pose, numbers):
    more = [0.1] if name == "within" else []
    return lambda d, t: getattr(abut, name)(gem(d), gem(d), *more, **{pose: t(numbers)})


def scene_verb(name, **options):
    more = [0.1] if name == "within" else []

    def ask(device, tensor):
        given = {option: tensor(numbers) for option, numbers in options.items()}
        if "pose" in given:
            given["against"] = gem(device)
        return getattr(two(device), name)(*more, **given)

    return ask


CALLS = {
    "Mesh": lambda d, t: abut.Mesh(t(VERTICES), FACES, d),
    "Mesh of a list": lambda d, t: abut.Mesh([t(row) for row in VERTICES], FACES, d),
    "deform": lambda d, t: gem(d).deform(t(VERTICES)),
    "Motion": lambda d, t: abut.Motion(gem(d), t(VERTICES)),
    "start_pose": lambda d, t: abut.Motion(gem(d), start_pose=t(EYE)),
    "end_pose": lambda d, t: abut.Motion(gem(d), end_pose=t(EYE)),
    "poses in a list": lambda d, t: abut.collide(gem(d), gem(d), pose_b=[t(EYE)]),
    "cull": lambda d, t: abut.cull([gem(d), gem(d)], poses=t([EYE, EYE]), pixels=16),
    "cull of a list": lambda d, t: abut.cull([gem(d), gem(d)], poses=[None, t(EYE)], pixels=16),
    "Scene.add": lambda d, t: two(d).add(gem(d), t(EYE)),
    "Scene.move": lambda d, t: two(d).move(0, t(EYE)),
    "SceneObject.pose": lambda d, t: setattr(two(d)[0], "pose", t(EYE)),
    "Scene.deform": lambda d, t: two(d).deform(0, t(VERTICES)),
    "Scene.ccd vertices": lambda d, t: two(d).ccd(vertices={0: t(VERTICES)}),
    "sample": lambda d, t: field(d).sample(t(VERTICES)),
    "closest": lambda d, t: field(d).closest(gem(d), t(EYE)),
    "response": lambda d, t: field(d).response(gem(d), t(EYE)),
    "velocity": lambda d, t: field(d).response(gem(d), velocity=t(np.zeros(6))),
    "velocities": lambda d, t: field(d).response(gem(d), velocity=t(VERTICES)),
    "field_velocity": lambda d, t: field(d).response(gem(d), field_velocity=t(np.zeros(6))),
    "centre": lambda d, t: field(d).response(gem(d), centre=t(np.zeros(3))),
    "on tape": lambda d, t: field(d).response_on_tape(gem(d), taped(d), centre=t(np.zeros(3))),
    "Tracker.step": lambda d, t: abut.Tracker(gem(d)).step(t(VERTICES)),
    "Tracker.advance": lambda d, t: abut.Tracker(gem(d)).advance(t(VERTICES)),
    "intersect_tri_tri": lambda d, t: abut.primitives.intersect_tri_tri(
        t(VERTICES[FACES]), VERTICES[FACES]
    ),
    "ccd_edge_edge": lambda d, t: abut.primitives.ccd_edge_edge(
        np.zeros((1, 4, 3)), t(np.zeros((1, 4, 3)))
    ),
    "hardware": lambda d, t: abut.hardware.simulate(gem(d), gem(d), pose_b=t(EYE)),
    "RigidBodies": lambda d, t: abut.sim.RigidBodies(device=d).add(gem(d), t(EYE), field=8),
}
for verb in PAIR_VERBS:
    CALLS |= {f"{verb} {p}": pair_verb(verb, p, EYE) for p in ("pose_a", "pose_b")}
    CALLS[f"{verb} batch"] = pair_verb(verb, "pose_b", EYE[None])
for verb in SCENE_VERBS:
    CALLS[f"Scene.{verb} poses"] = scene_verb(verb, poses=[[EYE, EYE]])
    CALLS[f"Scene.{verb} pose"] = scene_verb(verb, pose=EYE)
for verb in POINT_VERBS:
    ask = getattr(abut, verb)
    CALLS[f"{verb} points"] = lambda d, t, ask=ask: ask(gem(d), t(VERTICES))
    CALLS[f"{verb} pose"] = lambda d, t, ask=ask: ask(gem(d), VERTICES, pose=t(EYE))


@pytest.mark.parametrize("name", CALLS)
def test_a_tensor_that_requires_a_gradient_is_refused(name, device):
    with pytest.raises(abut.DeviceError, match="detach"):
        CALLS[name](device, Tensor)


@pytest.mark.parametrize("name", [name for name in CALLS if "list" not in name])
def test_an_array_that_jax_traces_is_refused(name, device):
    with pytest.raises(abut.DeviceError, match=r"JAX is tracing .* jax\.lax\.stop_gradient"):
        CALLS[name](device, LinearizeTracer)


def test_joint_values(device):
    from abut.scene.robots.kinematics import Kinematics

    robot = Kinematics(["hinge"], ["link"], [-1], EYE[None], [[]], [(0, EYE)])
    np.testing.assert_array_equal(robot.poses([0.5]), [EYE])
    with pytest.raises(abut.DeviceError, match="detach"):
        robot.poses(Tensor([0.5]))


def test_of_torch(device):
    torch = pytest.importorskip("torch")
    with pytest.raises(abut.DeviceError, match="detach"):
        abut.Mesh(torch.tensor(VERTICES, requires_grad=True), FACES, device)
    mesh = abut.Mesh(torch.tensor(VERTICES, requires_grad=True).detach(), FACES, device)
    for pose in (torch.tensor(EYE, requires_grad=True), [torch.tensor(EYE, requires_grad=True)]):
        with pytest.raises(abut.DeviceError, match="detach"):
            abut.distance(mesh, mesh, pose_b=pose)


def test_of_jax(device):
    jax = pytest.importorskip("jax")

    def distance(points):
        return abut.closest_point(gem(device), points).distance

    for traced in (jax.grad(distance), jax.jit(distance)):
        with pytest.raises(abut.DeviceError, match="stop_gradient"):
            traced(jax.numpy.asarray(VERTICES))
