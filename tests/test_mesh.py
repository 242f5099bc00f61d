"""Mesh: what it takes, keeps, refuses and derives."""

import gc
import pickle
import weakref

import numpy as np
import pytest
import trimesh
import warp as wp

import abut
from abut import cases
from abut.core.point_check import PointCheck

VERTICES = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])


# ---- arrays in


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_copied(dtype, device):
    vertices, faces = VERTICES.astype(dtype), FACES.astype(np.int32)
    mesh = abut.Mesh(vertices, faces, device)
    vertices *= 0
    faces *= 0
    assert mesh.vertices.numpy().dtype == dtype
    np.testing.assert_array_equal(mesh.vertices.numpy(), VERTICES)
    np.testing.assert_array_equal(mesh.faces.numpy(), FACES)


@pytest.mark.parametrize("dtype", [wp.vec3f, wp.vec3d, wp.float32, wp.float64])
def test_warp_arrays_are_copied(dtype, device):
    vertices = wp.array(VERTICES, dtype=dtype, device=device)
    faces = wp.array(FACES, dtype=wp.int32, device=device)
    mesh = abut.Mesh(vertices, faces)
    assert mesh.device == wp.get_device(device)
    vertices.zero_()
    faces.zero_()
    np.testing.assert_array_equal(mesh.vertices.numpy(), VERTICES)
    np.testing.assert_array_equal(mesh.faces.numpy(), FACES)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.uint64])
def test_faces_of_any_integer(dtype, device):
    mesh = abut.Mesh(VERTICES, FACES.astype(dtype), device)
    np.testing.assert_array_equal(mesh.faces.numpy(), FACES)


def test_other_arrays_are_copied_right(device):
    for vertices in (
        VERTICES.tolist(),
        VERTICES.astype(int),
        np.asfortranarray(VERTICES),
        np.repeat(VERTICES, 2, axis=0)[::2],
        np.flip(np.flip(VERTICES, 0), 0),
    ):
        mesh = abut.Mesh(vertices, FACES.tolist(), device)
        np.testing.assert_array_equal(mesh.points.numpy(), VERTICES)


def test_read_only_arrays_are_taken(device):
    vertices = VERTICES.copy()
    vertices.flags.writeable = False
    np.testing.assert_array_equal(abut.Mesh(vertices, FACES, device).points.numpy(), VERTICES)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_tensors_are_copied(dtype):
    torch = pytest.importorskip("torch")
    vertices = torch.tensor(VERTICES, dtype=getattr(torch, dtype))
    faces = torch.tensor(FACES, dtype=torch.int32)
    mesh = abut.Mesh(vertices, faces)
    vertices.zero_()
    faces.zero_()
    np.testing.assert_array_equal(mesh.vertices.numpy(), VERTICES)
    np.testing.assert_array_equal(mesh.faces.numpy(), FACES)


def test_jax_arrays_are_taken():
    jax = pytest.importorskip("jax")
    mesh = abut.Mesh(jax.numpy.array(VERTICES), jax.numpy.array(FACES))
    np.testing.assert_array_equal(mesh.vertices.numpy(), VERTICES.astype(np.float32))


# ---- bad input


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("count", "bad"), [(4, [3]), (5000, [1234, 4000]), (5000, [0]), (1, [0])])
def test_coordinates_must_be_finite(count, bad, dtype, value, device):
    vertices = np.ones((count, 3), dtype)
    vertices[bad, 1] = value
    with pytest.raises(abut.MeshError, match=rf"vertices\[{bad[0]}\] is .*must be finite"):
        abut.Mesh(vertices, np.zeros((1, 3), int), device)


@pytest.mark.parametrize("index", [-1, 4, 2**40])
def test_indices_must_be_in_range(index, device):
    faces = FACES.copy()
    faces[2:, 1] = index
    message = rf"faces\[2\] refers to vertex {index} but the mesh has 4 vertices; reindex"
    with pytest.raises(abut.MeshError, match=message):
        abut.Mesh(VERTICES, faces, device)


@pytest.mark.parametrize(
    ("vertices", "faces", "message"),
    [
        (VERTICES[:, :2], FACES, r"vertices must have shape \(n, 3\), not \(4, 2\)"),
        (VERTICES.ravel(), FACES[:1], r"vertices must have shape \(n, 3\), not \(12,\)"),
        (VERTICES[None], FACES[:0], r"vertices must have shape \(n, 3\), not \(1, 4, 3\)"),
        (np.float64(1), FACES, r"vertices must have shape \(n, 3\), not \(\)"),
        (VERTICES, FACES[:, :2], r"faces must have shape \(m, 3\), not \(4, 2\)"),
        (VERTICES, FACES.ravel(), r"faces must have shape \(m, 3\), not \(12,\)"),
        (VERTICES, np.int64(1), r"faces must have shape \(m, 3\), not \(\)"),
        (VERTICES.astype(np.float16), FACES, "vertices must be float32 or float64, not float16"),
        (VERTICES + 0j, FACES, "vertices must be float32 or float64, not complex128"),
        (VERTICES.astype(str), FACES, "vertices must be float32 or float64, not <U"),
        (VERTICES, FACES.astype(float), "faces must be integers, not float64"),
        (VERTICES, FACES.astype(bool), "faces must be integers, not bool"),
    ],
)
def test_bad_arrays_are_refused(vertices, faces, message, device):
    with pytest.raises(abut.MeshError, match=message):
        abut.Mesh(vertices, faces, device)


def test_errors_can_be_caught_as_usual():
    assert issubclass(abut.MeshError, ValueError) and issubclass(abut.MeshError, abut.AbutError)
    assert issubclass(abut.FileError, OSError)


def test_unknown_devices_are_refused():
    with pytest.raises(abut.DeviceError, match=r"there is no device 'abacus' here; .*cpu"):
        abut.Mesh(VERTICES, FACES, "abacus")


# ---- what it knows


def test_counts_and_names(device):
    mesh = abut.Mesh(VERTICES, FACES, device)
    assert (mesh.vertex_count, mesh.face_count) == (4, 4)
    assert repr(mesh) == f"Mesh(4 vertices, 4 faces, {device})"
    assert mesh.bounds.tolist() == [[0, 0, 0], [1, 1, 1]]


def test_empty_meshes(device):
    for faces in (np.zeros((0, 3), int), []):
        mesh = abut.Mesh(np.zeros((0, 3)), faces, device)
        assert (mesh.vertex_count, mesh.face_count) == (0, 0)
        assert mesh.edges.shape == (0,) and not mesh.watertight


def test_edges(device):
    mesh = abut.Mesh(VERTICES, FACES, device)
    assert mesh.edges.numpy().tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    shape = cases.torus(20, 10)
    edges = abut.Mesh(*shape, device).edges.numpy()
    assert len(edges) == 3 * len(shape.faces) // 2
    assert (edges[:, 0] < edges[:, 1]).all()
    assert edges.tolist() == sorted(map(list, {tuple(edge) for edge in edges.tolist()}))
    np.testing.assert_array_equal(
        edges, np.unique(np.sort(shape.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)), axis=0)
    )


def test_watertight(device):
    assert abut.Mesh(VERTICES, FACES, device).watertight
    assert not abut.Mesh(VERTICES, FACES[:3], device).watertight
    assert not abut.Mesh(VERTICES, np.concatenate([FACES, FACES[:1]]), device).watertight
    turned = FACES.copy()
    turned[0] = turned[0, ::-1]
    assert abut.Mesh(VERTICES, turned, device).watertight
    assert not abut.Mesh(*cases.plane(3, 3), device).watertight


# ---- moving on


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pickle(dtype, device):
    mesh = abut.Mesh(VERTICES.astype(dtype), FACES, device)
    mesh.parts = np.array([0, 1, 4])
    assert abut.self_collide(mesh).colliding is False  # makes a hierarchy, which is not kept
    copy = pickle.loads(pickle.dumps(mesh))
    assert copy.device == mesh.device and copy.vertices.numpy().dtype == dtype
    np.testing.assert_array_equal(copy.vertices.numpy(), mesh.vertices.numpy())
    np.testing.assert_array_equal(copy.faces.numpy(), FACES)
    np.testing.assert_array_equal(copy.parts, mesh.parts)
    assert len(abut.collide(copy, mesh)) == len(abut.collide(mesh, mesh))


def test_to(device):
    mesh = abut.Mesh(VERTICES.astype(np.float32), FACES, "cpu")
    mesh.parts = np.array([0, 1, 4])
    there = mesh.to(device)
    assert there.device == wp.get_device(device) and there.to(device) is there
    np.testing.assert_array_equal(there.vertices.numpy(), mesh.vertices.numpy())
    np.testing.assert_array_equal(there.parts, mesh.parts)
    assert there.vertices.dtype is mesh.vertices.dtype
    with pytest.raises(abut.DeviceError):
        mesh.to("abacus")


def test_default_device_is_the_first_cuda_device_else_the_cpu():
    expected = "cuda:0" if wp.is_cuda_available() else "cpu"
    assert abut.Mesh(VERTICES, FACES).device.alias == expected


def test_meshes_are_freed(device):
    """Hierarchies, plans and results of queries do not keep meshes alive."""
    a, b = abut.Mesh(VERTICES, FACES, device), abut.Mesh(VERTICES + 0.1, FACES, device)
    hits = abut.collide(a, b), abut.collide(a, a), abut.self_collide(b)
    alive = weakref.ref(a), weakref.ref(b)
    del a, b
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
    assert len(hits[0].segments.numpy()) > 0


def test_from_trimesh(device):
    shape = trimesh.creation.icosphere(1)
    mesh = abut.Mesh.from_trimesh(shape, device)
    np.testing.assert_array_equal(mesh.vertices.numpy(), shape.vertices)
    np.testing.assert_array_equal(mesh.faces.numpy(), shape.faces)


@pytest.mark.parametrize("count", [1, 3, 1000, 60_000])
def test_extents_of_float32_make_float64_on_the_way(count, device):
    vertices = np.random.default_rng(count).normal(size=(2, count, 3)).astype(np.float32)
    rows = [wp.array(v, dtype=wp.vec3f, device=device) for v in vertices]
    points = wp.zeros(count, dtype=wp.vec3d, device=device)
    extent = PointCheck(points, None, rows[0])
    for given, row in zip(vertices, rows, strict=True):
        extent.start(row)
        first_bad, bounds = extent.read()
        assert first_bad == -1
        np.testing.assert_array_equal(bounds, [given.min(axis=0), given.max(axis=0)])
        np.testing.assert_array_equal(points.numpy(), given)
    vertices[1, count // 2, 1] = np.nan
    rows[1].assign(vertices[1])
    extent.start(rows[1])
    assert extent.read()[0] == count // 2
