"""Damaged files: good ones of every format that abut reads, and mutations of them."""

import base64
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import trimesh

import abut
from abut import cases
from abut.cli.animations import frame_count, frames_of
from abut.cli.operands import read_poses

FACES = 80

URDF = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <link name="upper"><collision><origin xyz="0 0 1" rpy="0 0.1 0"/>
    <geometry><cylinder radius="0.2" length="2"/></geometry></collision></link>
  <link name="hand"><collision><geometry><mesh filename="ball.stl" scale="0.3 0.3 0.3"/></geometry>
    </collision></link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.5"/><axis xyz="0 1 0"/><limit lower="-2" upper="3"/></joint>
  <joint name="wrist" type="prismatic"><parent link="upper"/><child link="hand"/>
    <origin xyz="0 0 2"/><axis xyz="0 0 1"/><mimic joint="turn" multiplier="0.5" offset="0.1"/>
    <limit lower="0" upper="1"/></joint>
</robot>
"""
MJCF = """<mujoco><asset><mesh name="m" file="ball.stl"/></asset><worldbody>
  <geom name="floor" type="plane" size="5 5 0.1"/>
  <body name="base" pos="0 0 0.5"><geom name="foot" type="box" size="0.3 0.3 0.4"/>
    <body name="upper" pos="0 0 0.5"><joint name="turn" axis="0 0 1" range="-2 2"/>
      <geom name="arm" type="capsule" size="0.15" fromto="0 0 0 1.4 0 0"/>
      <geom name="hand" type="mesh" mesh="m" pos="1.5 0 0"/></body></body>
</worldbody></mujoco>
"""


class Format(NamedTuple):
    """A format, and how abut reads it.

    Attributes:
        suffix: Of the file.
        content: A good file.
        is_text: Whether words and lines are mutated, too.
        read: Returns the number of faces, frames or numbers read from a path.
    """

    suffix: str
    content: bytes
    is_text: bool
    read: object


def read_mesh(path):
    """Read a file as a mesh and as a scene, which must agree."""
    faces = abut.Mesh.load(path, "cpu").face_count
    scene = abut.Scene.load(path, "cpu")
    assert sum(scene.mesh(k).face_count for k in scene.indices) == faces
    return faces


def read_robot(path):
    scene = abut.Scene.load(path, "cpu")
    assert np.isfinite(scene.robot.poses(np.zeros(len(scene.robot.joints)))).all()
    return sum(scene.mesh(k).face_count for k in scene.indices)


def read_frames(path):
    count = frame_count(path)
    frames = [abut.Mesh(vertices, faces, "cpu") for _, vertices, faces in frames_of(path)]
    assert len(frames) == count
    return count


def read_pose_file(path):
    return read_poses(str(path)).size


def read_field(path):
    return abut.DistanceField.load(path, "cpu").distance.size


def formats():
    """Return a good file of every format by name."""
    ball = trimesh.Trimesh(*cases.icosphere(FACES), process=False)
    scene = trimesh.Scene([ball, trimesh.Trimesh(*cases.box(), process=False)])
    texts = {"obj": "obj", "off": "off", "stl_ascii": "stl", "dae": "dae"}
    made = {
        name: Format(suffix, _bytes(ball.export(file_type=name)), True, read_mesh)
        for name, suffix in texts.items()
    }
    ascii_ply = ball.export(file_type="ply", encoding="ascii")
    made |= {
        "ply_ascii": Format("ply", ascii_ply, True, read_mesh),
        "ply": Format("ply", ball.export(file_type="ply"), False, read_mesh),
        "stl": Format("stl", ball.export(file_type="stl"), False, read_mesh),
        "glb": Format("glb", scene.export(file_type="glb"), False, read_mesh),
        "gltf": Format("gltf", _gltf(scene), True, read_mesh),
        "3mf": Format("3mf", scene.export(file_type="3mf"), False, read_mesh),
        "zip": Format("zip", _zip(ball), False, read_mesh),
        "tar": Format("tar.gz", _tar(ball), False, read_mesh),
        "urdf": Format("urdf", URDF.encode(), True, read_robot),
        "mjcf": Format("xml", MJCF.encode(), True, read_robot),
    }
    poses = np.tile(np.eye(4), (3, 1, 1))
    frames = {"vertices": np.stack([ball.vertices] * 2), "faces": ball.faces}
    text = io.StringIO()
    np.savetxt(text, poses.reshape(-1, 16))
    made |= {
        "frames": Format("npz", _saved(np.savez, **frames), False, read_frames),
        "frames_packed": Format("npz", _saved(np.savez_compressed, **frames), False, read_frames),
        "poses": Format("npy", _saved(np.save, poses), False, read_pose_file),
        "poses_text": Format("txt", text.getvalue().encode(), True, read_pose_file),
        "field": Format("npz", _field(), False, read_field),
    }
    return made


def write_beside(folder: Path) -> None:
    """Write the mesh that robots refer to."""
    trimesh.Trimesh(*cases.icosphere(FACES), process=False).export(folder / "ball.stl")


def mutate(content: bytes, is_text: bool, rng: np.random.Generator) -> bytes:
    """Damage a file in one to three places."""
    kinds = [_cut, _flip, _overwrite, _remove, _repeat, _splice]
    if is_text:
        kinds += [_drop_line, _repeat_line, _change_number, _change_word] * 2
    for _ in range(rng.integers(1, 4)):
        content = kinds[rng.integers(len(kinds))](content, rng)
    return content


def _bytes(content):
    return content.encode() if isinstance(content, str) else content


def _gltf(scene):
    """Return one glTF file with its buffers inside."""
    files = scene.export(file_type="gltf")
    tree = json.loads(files["model.gltf"])
    for buffer in tree["buffers"]:
        packed = base64.b64encode(files[buffer["uri"]]).decode()
        buffer["uri"] = f"data:application/octet-stream;base64,{packed}"
    return json.dumps(tree, indent=1).encode()


def _zip(ball):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ball.obj", ball.export(file_type="obj"))
        archive.writestr("more/ball.stl", ball.export(file_type="stl"))
    return out.getvalue()


def _tar(ball):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name in ("ply", "off"):
            content = _bytes(ball.export(file_type=name))
            member = tarfile.TarInfo(f"ball.{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def _saved(save, *args, **arrays):
    out = io.BytesIO()
    save(out, *args, **arrays)
    return out.getvalue()


def _field():
    import tempfile

    field = abut.DistanceField(abut.Mesh(*cases.box(), "cpu"), resolution=6)
    with tempfile.TemporaryDirectory() as folder:
        field.save(Path(folder, "field.npz"))
        return Path(folder, "field.npz").read_bytes()


def _span(content, rng, most):
    start = int(rng.integers(max(len(content), 1)))
    return start, min(start + int(rng.integers(1, most)), len(content))


def _cut(content, rng):
    return content[: int(rng.integers(len(content) + 1))]


def _flip(content, rng):
    out = bytearray(content)
    for at in rng.integers(0, len(out), rng.integers(1, 8)) if out else ():
        out[at] ^= 1 << int(rng.integers(8))
    return bytes(out)


def _overwrite(content, rng):
    start, stop = _span(content, rng, 16)
    filler = [b"\0", b"\xff", rng.bytes(1)][rng.integers(3)]
    return content[:start] + filler * (stop - start) + content[stop:]


def _remove(content, rng):
    start, stop = _span(content, rng, 200)
    return content[:start] + content[stop:]


def _repeat(content, rng):
    start, stop = _span(content, rng, 200)
    return content[:stop] + content[start:stop] + content[stop:]


def _splice(content, rng):
    start, stop = _span(content, rng, 100)
    other, _ = _span(content, rng, 100)
    return content[:other] + content[start:stop] + content[other:]


def _drop_line(content, rng):
    lines = content.splitlines(keepends=True)
    if lines:
        del lines[int(rng.integers(len(lines)))]
    return b"".join(lines)


def _repeat_line(content, rng):
    lines = content.splitlines(keepends=True)
    if lines:
        k = int(rng.integers(len(lines)))
        lines.insert(int(rng.integers(len(lines))), lines[k])
    return b"".join(lines)


NUMBERS = b"0 -1 1e400 nan inf -inf 1.7 2147483648 99999999999999999999 1e-320 0x10 -0 1_0".split()
WORDS = [b"", b"\xff\xfe", b"../..", b"\0", "ß".encode(), b'"', b"<", b"{}", b"null", b"a" * 300]


def _change_number(content, rng):
    import re

    found = list(re.finditer(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?", content))
    if not found:
        return content
    match = found[int(rng.integers(len(found)))]
    number = NUMBERS[int(rng.integers(len(NUMBERS)))]
    return content[: match.start()] + number + content[match.end() :]


def _change_word(content, rng):
    import re

    found = list(re.finditer(rb"[A-Za-z_]{2,}", content))
    if not found:
        return content
    match = found[int(rng.integers(len(found)))]
    word = [*WORDS, found[int(rng.integers(len(found)))][0]][int(rng.integers(len(WORDS) + 1))]
    return content[: match.start()] + word + content[match.end() :]
