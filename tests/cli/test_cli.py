"""The command line: answers on standard output, the rest on standard error, honest exit status."""

import json
import logging
import subprocess
import sys

import numpy as np
import pytest
import trimesh

import abut
from abut import cases
from abut.cli import main


@pytest.fixture(autouse=True)
def logger_left_as_it_was():
    log = logging.getLogger("abut")
    handlers, propagate = list(log.handlers), log.propagate
    yield
    log.handlers[:], log.propagate = handlers, propagate


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Mesh files of some scenes, and poses."""
    folder = tmp_path_factory.mktemp("meshes")
    for name in ("spheres", "apart", "nested"):
        for side, shape in zip("ab", cases.pair(name, faces=300), strict=True):
            trimesh.Trimesh(*shape, process=False).export(folder / f"{name}_{side}.ply")
    cloth = cases.single("folded_cloth", faces=600)
    trimesh.Trimesh(*cloth, process=False).export(folder / "cloth.stl")
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, 0, 3] = [0, 1, 9]
    np.save(folder / "poses.npy", poses)
    np.savetxt(folder / "poses.txt", poses.reshape(-1, 4))
    np.savetxt(folder / "rows.txt", poses.reshape(-1, 16))
    np.savetxt(folder / "one.txt", poses[2])
    np.savetxt(folder / "bad.txt", poses[2] * 2)
    return folder


def run(*args):
    """Exit status of a command."""
    try:
        return main([str(arg) for arg in args])
    except SystemExit as stop:
        return stop.code


def answer(capsys, *args):
    """Exit status and JSON of a command."""
    status = run(*args, "--json", "--device", "cpu")
    return status, json.loads(capsys.readouterr().out)


def test_collide(files, capsys):
    status, said = answer(capsys, "collide", files / "spheres_a.ply", files / "spheres_b.ply")
    a, b = (abut.Mesh.load(files / f"spheres_{side}.ply", "cpu") for side in "ab")
    pairs = abut.collide(a, b).pairs.numpy()
    assert status == 1
    assert said["colliding"] is True
    assert said["pairs"] == pairs.tolist()
    assert said["pair_count"] == len(pairs)
    assert said["a"]["faces"] == a.face_count
    assert {"kernels", "search", "sort"} <= set(said["milliseconds"])


def test_no_contact(files, capsys):
    status, said = answer(capsys, "collide", files / "apart_a.ply", files / "apart_b.ply")
    assert (status, said["colliding"], said["pairs"]) == (0, False, [])


def test_table_for_people(files, capsys):
    paths = files / "spheres_a.ply", files / "spheres_b.ply"
    assert run("collide", *paths, "--pairs", 2, "--device", "cpu") == 1
    lines = capsys.readouterr().out.splitlines()
    facts = "a b contact where pairs device time".split()
    assert [line.split()[0] for line in lines[:7]] == facts
    assert lines[8].split() == "face a face b".split()
    assert len(lines) == 12
    assert "more (--pairs N)" in lines[-1]


def test_pairs_limits_json_too(files, capsys):
    paths = files / "spheres_a.ply", files / "spheres_b.ply"
    _, said = answer(capsys, "collide", *paths, "--pairs", 3)
    assert len(said["pairs"]) == 3 < said["pair_count"]


def test_solid(files, capsys):
    paths = files / "nested_a.ply", files / "nested_b.ply"
    assert answer(capsys, "collide", *paths)[0] == 0
    status, said = answer(capsys, "collide", *paths, "--solid")
    assert (status, said["contained"], said["pair_count"]) == (1, True, 0)


@pytest.mark.parametrize("name", ["poses.npy", "poses.txt", "rows.txt"])
def test_batches_of_poses(files, capsys, name):
    paths = files / "spheres_a.ply", files / "spheres_b.ply"
    status, said = answer(capsys, "collide", *paths, "--pose-b", files / name, "--first")
    assert status == 1
    assert said["colliding"] == [True, True, False]
    assert said["pose"] == [0, 1]


def test_one_pose(files, capsys):
    paths = files / "spheres_a.ply", files / "spheres_b.ply"
    status, said = answer(capsys, "collide", *paths, "--pose-a", files / "one.txt")
    assert (status, said["colliding"]) == (0, False)


def test_methods_agree(files, capsys):
    paths = files / "spheres_a.ply", files / "spheres_b.ply"
    answers = [answer(capsys, "collide", *paths, "--method", m)[1] for m in ("bvh", "brute")]
    assert answers[0]["pairs"] == answers[1]["pairs"]


def test_distance(files, capsys):
    paths = files / "apart_a.ply", files / "apart_b.ply"
    status, said = answer(capsys, "distance", *paths)
    near = abut.distance(*(abut.Mesh.load(path, "cpu") for path in paths))
    assert status == 0
    assert said["distance"] == near.value > 0
    assert said["faces"] == near.faces.numpy().tolist()
    assert said["points"] == near.points.numpy().tolist()
    assert run("distance", *paths, "--device", "cpu") == 0
    assert "nearest b" in capsys.readouterr().out


def test_distance_beyond_the_bound(files, capsys):
    paths = files / "apart_a.ply", files / "apart_b.ply"
    status, said = answer(capsys, "distance", *paths, "--upper-bound", 0.001)
    assert (status, said["distance"], said["faces"]) == (0, None, [-1, -1])
    assert run("distance", *paths, "--upper-bound", 0.001, "--device", "cpu") == 0
    assert "above the upper bound" in capsys.readouterr().out


def test_distances_of_poses(files, capsys):
    paths = files / "spheres_a.ply", files / "spheres_b.ply"
    status, said = answer(capsys, "distance", *paths, "--pose-b", files / "poses.npy")
    assert status == 0
    assert said["distance"][0] == 0 and said["distance"][2] > 7
    assert run("distance", *paths, "--pose-b", files / "poses.npy", "--device", "cpu") == 0
    assert "in pose 0" in capsys.readouterr().out


def test_within(files, capsys):
    paths = files / "apart_a.ply", files / "apart_b.ply"
    status, said = answer(capsys, "within", *paths, 0.1)
    near = abut.within(*(abut.Mesh.load(path, "cpu") for path in paths), 0.1)
    assert status == 0
    assert said["pair_count"] == len(near) > 0
    assert said["pairs"] == near.pairs.numpy().tolist()
    assert said["distance"] == near.distance.numpy().tolist()
    assert run("within", *paths, 0.1, "--pairs", 2, "--device", "cpu") == 0
    assert f"and {len(near) - 2} more" in capsys.readouterr().out


def test_within_one_mesh(files, capsys):
    status, said = answer(capsys, "within", files / "cloth.stl", 0.02)
    cloth = abut.Mesh.load(files / "cloth.stl", "cpu")
    assert (status, said["pair_count"]) == (0, len(abut.within(cloth, None, 0.02)))


def test_scene(tmp_path, capsys):
    far = np.eye(4)
    far[0, 3] = 2.3
    parts = trimesh.Scene()
    parts.add_geometry(trimesh.Trimesh(*cases.icosphere(80)), node_name="ball")
    parts.add_geometry(trimesh.Trimesh(*cases.box((1, 1, 3))), node_name="post")
    parts.add_geometry(trimesh.Trimesh(*cases.box()), node_name="block", transform=far)
    path = str(tmp_path / "parts.glb")
    parts.export(path)
    assert main(["scene", path, "--device", "cpu", "--json", "--within", "1"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["objects"] == 3
    assert [row["objects"] for row in report["contacts"]] == [["ball", "post"]]
    assert report["contacts"][0]["face_pairs"] > 0
    assert report["near"][0]["objects"] == ["ball", "block"]
    assert main(["scene", path, "--device", "cpu", "--self"]) == 1
    out = capsys.readouterr().out
    assert "3 objects" in out
    assert "post" in out


def test_self(files, capsys):
    status, said = answer(capsys, "self", files / "cloth.stl")
    assert status == 1
    _, more = answer(capsys, "self", files / "cloth.stl", "--no-weld")
    assert said["pair_count"] < more["pair_count"]
    assert answer(capsys, "self", files / "spheres_a.ply")[0] == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("collide nothing.ply nothing.ply", "abut: there is no file nothing.ply."),
        ("collide {f}/spheres_a.ply {f}/poses.npy", "is no mesh that abut reads"),
        ("collide {f}/cloth.stl {f}/spheres_a.ply --solid", "needs closed meshes"),
        ("collide {f}/spheres_a.ply {f}/spheres_b.ply --pose-a {f}/bad.txt", "not a rigid motion"),
        ("collide {f}/spheres_a.ply {f}/spheres_b.ply --pose-a {f}/none.npy", "read as poses"),
        ("collide {f}/spheres_a.ply {f}/spheres_b.ply --pose-a {f}/cloth.stl", "read as poses"),
        ("self {f}/cloth.stl --device cuda:99", "there is no device 'cuda:99'"),
        ("collide only_one.ply", "abut collide: the following arguments are required: B"),
        ("collide a b --method magic", "invalid choice"),
        ("self a --pairs many", "not a whole number"),
        ("demo nothing", "invalid choice"),
        ("demo knot --size large", "not like 1200x800"),
        ("dance", "there is no command"),
        ("bench nothing", "abut: there is no"),
    ],
)
def test_errors_are_one_line(files, capsys, args, message):
    assert run(*args.format(f=files).split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err
    assert said.err.count("\n") == 1


def test_unexpected_errors_are_one_line(files, capsys, monkeypatch):
    def fail(*_args, **_options):
        raise ZeroDivisionError("first line\nsecond line")

    monkeypatch.setattr("abut.cli.self_collide.load", fail)
    assert run("self", files / "cloth.stl") == 2
    said = capsys.readouterr().err
    assert said.startswith("abut: ZeroDivisionError: first line second line")
    assert said.count("\n") == 1
    monkeypatch.setenv("ABUT_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run("self", files / "cloth.stl")


def test_interruption(files, capsys, monkeypatch):
    def interrupt(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("abut.cli.self_collide.load", interrupt)
    assert run("self", files / "cloth.stl") == 130


@pytest.mark.parametrize("name", ["knot", "cloth"])
def test_demo(tmp_path, capsys, name):
    from PIL import Image

    args = ["--faces", 500, "--size", "60x40", "--device", "cpu", "--out", tmp_path]
    assert run("demo", name, *args) == 0
    said = capsys.readouterr().out
    with Image.open(tmp_path / f"{name}.png") as picture:
        assert picture.size == (60, 40)
    for fact in ("faces", "pairs", "curves", "hierarchy", "search", "picture", "file"):
        assert f"\n{fact} " in said


def test_demo_names_its_picture(tmp_path, capsys):
    path = tmp_path / "here.png"
    args = ["--faces", 500, "--size", "60x40", "--out", path]
    status, said = answer(capsys, "demo", "tori", *args)
    assert (status, said["picture"], path.is_file()) == (0, str(path), True)
    assert said["pair_count"] > 0 < said["curve_length"]


def test_info(capsys):
    assert run("info") == 0
    assert "kernel cache" in capsys.readouterr().out
    assert run("info", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["devices"][0].startswith("cpu")
    assert said["threads"] >= 1


def test_bench_runs_a_script_of_the_checkout(tmp_path, monkeypatch, capsys):
    (tmp_path / "src" / "abut").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "benchmarks").mkdir()
    script = "def main(argv):\n    print('run_timed', argv)\n    return 7\n"
    (tmp_path / "benchmarks" / "bench_speed.py").write_text(script)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert run("bench", "speed", "--fast", "3") == 7
    assert capsys.readouterr().out == "run_timed ['--fast', '3']\n"
    assert run("bench", "size") == 2
    assert capsys.readouterr().err.endswith("there are: speed.\n")


def test_bench_needs_a_checkout(monkeypatch, capsys):
    monkeypatch.setattr("abut.cli.bench.checkout", lambda: None)
    assert run("bench", "speed") == 2
    assert "inside a checkout" in capsys.readouterr().err


def test_help(capsys):
    assert run() == 0
    said = capsys.readouterr().out
    for command in ("collide", "self", "ccd", "demo", "info", "bench"):
        assert f"  {command} " in said
        assert run(command, "--help") == 0


def test_streams_of_a_real_process(files):
    """Warp prints on neither stream; standard output has JSON alone."""
    command = [sys.executable, "-m", "abut", "collide", "--json", "--device", "cpu"]
    paths = [files / "spheres_a.ply", files / "spheres_b.ply"]
    done = subprocess.run([*command, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["colliding"] is True
    assert "Warp" not in done.stderr


def test_hardware_simulate(files, capsys):
    pair = files / "spheres_a.ply", files / "spheres_b.ply"
    status = run("hardware", "simulate", *pair, "--pipelines", 4, "--clock", 150, "--json")
    said = json.loads(capsys.readouterr().out)
    _, found = answer(capsys, "collide", *pair)
    assert status == 1 and said["pipelines"] == 4
    assert {tuple(p) for p in found["pairs"]} <= {tuple(p) for p in said["pairs"]}
    assert said["microseconds"] == pytest.approx(said["cycles"] / 150, abs=0.1)
    apart = files / "apart_a.ply", files / "apart_b.ply"
    assert run("hardware", "simulate", *apart) == 0
    assert "cycles" in capsys.readouterr().out


def test_hardware_errors_are_one_line(files, capsys):
    pair = files / "spheres_a.ply", files / "spheres_b.ply"
    assert run("hardware", "simulate", *pair, "--width", 50) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and "width" in said.err and said.out == ""
    assert run("hardware", "synth", "--target", "asic") == 2
    assert run("hardware") == 0


def test_closed_output_pipe(files):
    """Leaving early is an error, not a contact."""
    pair = files / "apart_a.ply", files / "apart_b.ply"
    command = [sys.executable, "-m", "abut", "collide", *map(str, pair), "--device", "cpu"]
    ended = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ended.stdout.close()
    assert ended.stderr.read() == b""
    assert ended.wait() == 2
    ended.stderr.close()


@pytest.mark.parametrize("name", ["info", "bench"])
def test_help_describes_commands(name, capsys):
    assert run(name, "--help") == 0
    assert len(capsys.readouterr().out.split("\n\n")[1].split()) > 5
