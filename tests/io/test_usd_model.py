"""Models of USD files."""

import random

import numpy as np
import pytest

import abut
from abut.io import read_model

pytest.importorskip("pxr", reason="usd-core is missing: pip install 'abut[usd]'")

from abut.io.models.usd_model import read_usd_here
from ifc_files import bounds

BOX = """
    int[] faceVertexCounts = [4, 4, 4, 4, 4, 4]
    int[] faceVertexIndices = [0,1,3,2, 4,6,7,5, 0,4,5,1, 2,3,7,6, 0,2,6,4, 1,5,7,3]
    point3f[] points = [(0,0,0), (0,0,3), (0,2,0), (0,2,3), (1,0,0), (1,0,3), (1,2,0), (1,2,3)]
    uniform token subdivisionScheme = "none"
"""
HEAD = '#usda 1.0\n(\n metersPerUnit = {unit}\n upAxis = "{up}"\n)\n'


def written(path, text, unit=1, up="Z"):
    for mark in ("{ ", "} "):
        text = text.replace(mark, mark[0] + "\n")
    text = text.replace(" }", "\n}")
    path.write_text(HEAD.format(unit=unit, up=up) + text)
    return path


def read_here(path, chord=0.001, unit=None):
    return read_usd_here(path, lambda damaged: None, chord, unit)


def by_id(model):
    return {part.id: part for part in model.parts}


def solid(model, part):
    mesh = model.meshes[part.mesh]
    made = abut.Mesh(mesh.vertices, mesh.faces, "cpu")
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    return made.watertight and made.oriented and (a * np.cross(b, c)).sum() > 0


def test_a_mesh(tmp_path):
    text = f"""def Xform "site" {{
      double3 xformOp:translate = (1000, 0, 0)
      uniform token[] xformOpOrder = ["xformOp:translate"]
      def Mesh "box" (displayName = "a box") {{ {BOX}
        custom string userProperties:mark = "B1"
        custom int userProperties:count = 3
        color3f[] primvars:displayColor = [(1, 0, 0)] }} }}"""
    model = read_model(written(tmp_path / "box.usda", text, 0.001))
    (part,) = model.parts
    assert (part.id, part.name, part.type) == ("/site/box", "a box", "Mesh")
    assert part.assembly == "site" and part.properties == {"mark": "B1", "count": 3}
    assert bounds(model, part) == [[1, 0, 0], [1.001, 0.002, 0.003]]
    assert model.unit == 0.001 and model.deviation == 0.0 and model.skipped == []
    assert solid(model, part) and part.pose[0, 3] == 1.0


def test_the_up_axis_and_the_unit_of_the_standard(tmp_path):
    """Without a unit a file is in centimetres, without an axis y is up."""
    path = tmp_path / "box.usda"
    path.write_text(f'#usda 1.0\ndef Mesh "box" {{\n{BOX}\n}}')
    model = read_here(path)
    assert model.unit == 0.01
    assert bounds(model, model.parts[0]) == [[0, -0.03, 0], [0.01, 0, 0.02]]
    assert bounds(read_here(path, unit=1.0), model.parts[0])[1] == [1, 0, 2]
    stated = read_here(written(path, f'def Mesh "box" {{ {BOX} }}', 0.1, "Z"), unit=1.0)
    assert stated.unit == 0.1 and bounds(stated, stated.parts[0])[1] == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("scale", ["(2, 1, 1)", "(-1, 1, 1)", "(2, 2, 2)"])
def test_scales_are_in_the_mesh(tmp_path, scale):
    text = f"""def Mesh "box" {{ {BOX}
        double3 xformOp:translate = (5, 0, 0)
        double3 xformOp:scale = {scale}
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"] }}"""
    model = read_here(written(tmp_path / "box.usda", text))
    (part,) = model.parts
    x, y, z = eval(scale)
    ends = sorted([5, 5 + x])
    assert bounds(model, part) == [[ends[0], 0, 0], [ends[1], 2 * y, 3 * z]]
    assert solid(model, part) and np.linalg.det(part.pose[:3, :3]) == pytest.approx(1)


def test_orientation_and_holes(tmp_path):
    left = BOX + 'uniform token orientation = "leftHanded"'
    open_ = BOX + "int[] holeIndices = [0, 5]"
    text = f'def Mesh "left" {{ {left} }}\ndef Mesh "open" {{ {open_} }}'
    model = read_here(written(tmp_path / "box.usda", text))
    parts = by_id(model)
    mesh = model.meshes[parts["/left"].mesh]
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    assert (a * np.cross(b, c)).sum() / 6 == pytest.approx(-6)  # its faces look inward
    assert len(model.meshes[parts["/open"].mesh].faces) == 8
    assert not solid(model, parts["/open"])


def test_references_and_instances_share_meshes(tmp_path):
    written(tmp_path / "bolt.usda", f'def Xform "bolt" {{ def Mesh "head" {{ {BOX} }} }}')
    uses = [
        f"""def Xform "b{k}" (
          instanceable = {str(k < 2).lower()}
          references = @./bolt.usda@</bolt>
        ) {{
          double3 xformOp:translate = ({10 * k}, 0, 0)
          uniform token[] xformOpOrder = ["xformOp:translate"]
        }}"""
        for k in range(3)
    ]
    model = read_here(written(tmp_path / "plate.usda", "\n".join(uses)))
    assert [part.id for part in model.parts] == ["/b0/head", "/b1/head", "/b2/head"]
    assert len(model.meshes) == 1
    assert [bounds(model, part)[0][0] for part in model.parts] == [0, 10, 20]


def test_point_instancers(tmp_path):
    text = f"""def PointInstancer "trees" {{
        double3 xformOp:translate = (0, 0, 7)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        point3f[] positions = [(0,0,0), (10,0,0), (20,0,0), (30,0,0)]
        quath[] orientations = [(1,0,0,0), (1,0,0,0), (0,0,0,1), (1,0,0,0)]
        float3[] scales = [(1,1,1), (1,1,1), (1,1,1), (2,2,2)]
        int[] protoIndices = [0, 1, 0, 0]
        int64[] inactiveIds = []
        int64[] invisibleIds = [1]
        rel prototypes = [ </trees/kinds/oak>, </trees/kinds/elm> ]
        def Scope "kinds" {{
          def Xform "oak" {{ def Mesh "stem" {{ {BOX} }} }}
          def Mesh "elm" {{ {BOX} }} }} }}"""
    model = read_here(written(tmp_path / "trees.usda", text))
    parts = by_id(model)
    assert list(parts) == ["/trees[0]/stem", "/trees[2]/stem", "/trees[3]/stem"]
    assert parts["/trees[0]/stem"].mesh == parts["/trees[2]/stem"].mesh
    assert bounds(model, parts["/trees[0]/stem"]) == [[0, 0, 7], [1, 2, 10]]
    assert bounds(model, parts["/trees[2]/stem"]) == [[19, -2, 7], [20, 0, 10]]
    assert bounds(model, parts["/trees[3]/stem"]) == [[30, 0, 7], [32, 4, 13]]
    assert model.skipped == []


ROUND = {
    "Sphere": ("double radius = 2", 4 / 3 * np.pi * 8),
    "Cylinder": ('double radius = 2\ndouble height = 3\ntoken axis = "X"', np.pi * 12),
    "Cone": ('double radius = 2\ndouble height = 3\ntoken axis = "Y"', np.pi * 4),
    "Capsule": ("double radius = 2\ndouble height = 3", np.pi * 12 + 4 / 3 * np.pi * 8),
}


def off_surface(kind, points):
    if kind == "Cylinder":
        across = np.hypot(points[:, 1], points[:, 2])
        return np.minimum(np.abs(across - 2), np.abs(np.abs(points[:, 0]) - 1.5))
    if kind == "Cone":
        across = np.hypot(points[:, 0], points[:, 2])
        side = np.abs((across - 2) * 3 + (points[:, 1] + 1.5) * 2) / np.hypot(3, 2)
        return np.minimum(side, np.abs(points[:, 1] + 1.5))
    height = 1.5 if kind == "Capsule" else 0
    middle = np.clip(points[:, 2], -height, height)
    return np.abs(np.linalg.norm(points - np.outer(middle, [0, 0, 1]), axis=1) - 2)


@pytest.mark.parametrize("chord", [0.5, 0.01])
@pytest.mark.parametrize("kind", ROUND)
def test_round_shapes_keep_the_chord(tmp_path, kind, chord):
    values, volume = ROUND[kind]
    model = read_here(written(tmp_path / "round.usda", f'def {kind} "it" {{ {values} }}'), chord)
    (part,) = model.parts
    assert solid(model, part) and model.deviation == chord and part.type == kind
    mesh = model.meshes[part.mesh]
    share = np.array([(i, j, 8 - i - j) for i in range(9) for j in range(9 - i)]) / 8
    points = np.einsum("sc,ncx->nsx", share, mesh.vertices[mesh.faces]).reshape(-1, 3)
    assert off_surface(kind, points @ part.pose[:3, :3].T).max() <= chord
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    held = (a * np.cross(b, c)).sum() / 6
    assert 0.6 * volume < held < volume and (chord > 0.1 or held > 0.98 * volume)


def test_a_scaled_sphere_keeps_the_chord(tmp_path):
    text = """def Sphere "it" {
        double radius = 1
        double3 xformOp:scale = (100, 1, 1)
        uniform token[] xformOpOrder = ["xformOp:scale"] }"""
    model = read_here(written(tmp_path / "round.usda", text), 0.1)
    mesh = model.meshes[0]
    points = mesh.vertices[mesh.faces].mean(axis=1) @ model.parts[0].pose[:3, :3].T
    assert np.abs(np.linalg.norm(points / [100, 1, 1], axis=1) - 1).max() < 0.1 / 100


def test_cubes_and_planes(tmp_path):
    text = 'def Cube "cube" { double size = 3 }\ndef Plane "floor" { double width = 4 }'
    model = read_here(written(tmp_path / "cube.usda", text))
    parts = by_id(model)
    assert bounds(model, parts["/cube"]) == [[-1.5] * 3, [1.5] * 3] and solid(model, parts["/cube"])
    assert bounds(model, parts["/floor"]) == [[-2, -1, 0], [2, 1, 0]] and model.deviation == 0.0


def test_what_is_no_part_is_listed(tmp_path):
    bad = BOX.replace("1,5,7,3", "1,5,7,9")
    text = f"""def Mesh "box" {{ {BOX} }}
        def Mesh "bad" {{ {bad} }}
        def Mesh "empty" {{ }}
        def Mesh "cage" {{ {BOX.replace('"none"', '"catmullClark"')} }}
        def Xform "hidden" {{ token visibility = "invisible"
            def Mesh "in" {{ {BOX} }} }}
        def Mesh "helper" {{ {BOX}
            uniform token purpose = "guide" }}
        def Scope "shown" {{ uniform token purpose = "render"
            def Mesh "in" {{ {BOX} }} }}
        def BasisCurves "wire" {{ }}
        def Mesh "flat" {{ {BOX}
            double3 xformOp:scale = (1, 1, 0)
            uniform token[] xformOpOrder = ["xformOp:scale"] }}
        def Xform "gone" (references = @./nowhere.usda@) {{ }}
        def Camera "eye" {{ }}
        over "later" {{ def Mesh "in" {{ {BOX} }} }}"""
    model = read_model(written(tmp_path / "parts.usda", text))
    assert set(by_id(model)) == {"/box", "/cage", "/shown/in"}
    reasons = {row.id: row.reason for row in model.skipped}
    gone = reasons.pop("/gone")
    assert "nowhere.usda" in gone and "\n" not in gone
    assert reasons == {
        "/": "1 meshes are cages of subdivision surfaces, which are not refined; "
        "the first is /cage.",
        "/bad": "its faces refer to points that it does not have.",
        "/empty": "it has no points.",
        "/hidden/in": "it is invisible.",
        "/helper": "its purpose is guide.",
        "/wire": "a BasisCurves has no surface that is read.",
        "/flat": "its transform flattens it.",
    }


def test_animated_files_are_read_at_their_first_time(tmp_path):
    text = f"""def Mesh "box" {{ {BOX}
        double3 xformOp:translate.timeSamples = {{ 5: (1, 0, 0), 10: (2, 0, 0) }}
        uniform token[] xformOpOrder = ["xformOp:translate"] }}"""
    model = read_here(written(tmp_path / "box.usda", text))
    assert bounds(model, model.parts[0])[0] == [1, 0, 0]


@pytest.mark.parametrize("ending", ["usdc", "usdz"])
def test_binary_files(tmp_path, ending):
    from pxr import Usd, UsdUtils

    text = written(tmp_path / "box.usda", f'def Mesh "box" {{ {BOX} }}')
    path = tmp_path / f"box.{ending}"
    if ending == "usdz":
        assert UsdUtils.CreateNewUsdzPackage(str(text), str(path))
    else:
        stage = Usd.Stage.Open(str(text))
        stage.GetRootLayer().Export(str(path))
    packed, plain = read_model(path), read_model(text)
    for a, b in zip(packed.meshes, plain.meshes, strict=True):
        assert a.vertices.tobytes() == b.vertices.tobytes()
        assert a.faces.tobytes() == b.faces.tobytes()


def test_damaged_files(tmp_path, capfd):
    """One line that names the file; Pixar's library prints nothing."""
    from pxr import Usd

    text = written(tmp_path / "box.usda", f'def Mesh "box" {{ {BOX} }}')
    stage = Usd.Stage.Open(str(text))
    stage.GetRootLayer().Export(str(tmp_path / "box.usdc"))
    whole = (tmp_path / "box.usdc").read_bytes()
    capfd.readouterr()
    chance = random.Random(4)
    cut = [text.read_bytes()[:150], b"", whole[: len(whole) // 2]]
    wrong = bytearray(whole)
    for _ in range(20):
        wrong[chance.randrange(len(wrong))] = chance.randrange(256)
    for content, ending in zip([*cut, bytes(wrong)], ["usda", "usda", "usdc", "usdc"], strict=True):
        path = tmp_path / f"damaged.{ending}"
        path.write_bytes(content)
        with pytest.raises(abut.FileError) as error:
            read_model(path)
        assert "\n" not in str(error.value) and str(path) in str(error.value)
    assert capfd.readouterr() == ("", "")


def test_a_missing_package(tmp_path, monkeypatch):
    path = written(tmp_path / "box.usda", f'def Mesh "box" {{ {BOX} }}')
    monkeypatch.setattr("abut.io.models.reader_process.find_spec", lambda name: None)
    with pytest.raises(abut.ToolError, match=r"USD files need usd-core; pip install 'abut\[usd\]'"):
        read_model(path)
