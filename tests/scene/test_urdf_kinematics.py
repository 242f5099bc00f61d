"""URDF files: links are where yourdfpy puts them."""

import numpy as np
import pytest

import abut

SHAPE = "<collision><geometry><sphere radius='0.01'/></geometry></collision>"


def random_urdf(seed, links=8):
    """A tree of fixed joints, hinges and slides, at random places, one that mimics another."""
    rng = np.random.default_rng(seed)
    text = f"<robot name='r'><link name='l0'>{SHAPE}</link>"
    for k in range(1, links):
        kind = ("revolute", "prismatic", "continuous", "fixed")[k % 4]
        rows = rng.uniform(-2, 2, (3, 3))
        rows[2] /= np.linalg.norm(rows[2])  # yourdfpy slides along axes as they are
        numbers = [" ".join(map(repr, row.tolist())) for row in rows]
        mimic = "<mimic joint='j1' multiplier='-0.7' offset='0.3'/>" if k == 5 else ""
        text += f"""<link name='l{k}'>{SHAPE}</link>
          <joint name='j{k}' type='{kind}'><parent link='l{rng.integers(k)}'/><child link='l{k}'/>
          <origin xyz='{numbers[0]}' rpy='{numbers[1]}'/><axis xyz='{numbers[2]}'/>{mimic}
          <limit lower='-2' upper='2' effort='1' velocity='1'/></joint>"""
    return text + "</robot>"


@pytest.mark.parametrize("seed", range(4))
def test_links_are_where_yourdfpy_puts_them(tmp_path, seed):
    yourdfpy = pytest.importorskip("yourdfpy")
    path = tmp_path / "robot.urdf"
    path.write_text(random_urdf(seed))
    scene = abut.Scene.load(path, "cpu")
    model = yourdfpy.URDF.load(str(path), build_scene_graph=True, load_meshes=False)
    assert scene.robot.joints == list(model.actuated_joint_names)
    for values in np.random.default_rng(seed).uniform(-2, 2, (5, len(scene.robot.joints))):
        model.update_cfg(values)
        poses = scene.robot.poses(values)
        for name, row in scene.names.items():
            assert np.allclose(poses[row], model.get_transform(name, "l0"), atol=1e-12)
