"""Questions of a part of a scene: which=, against=, meshes and scenes that are not added."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abut
from abut.cases import box, icosphere, torus
from abut.scene.selection import MOST_EXTERNALS
from shapes import random_poses, shift

COUNT = 9
GONE = 4


def random_scene(device, spread=1.3, seed=0, count=COUNT):
    """Objects with groups, static ones, ignored pairs, a removed one and one that has deformed."""
    scene = abut.Scene(device)
    shapes = [abut.Mesh(*s, device=device) for s in (icosphere(80), torus(8, 6), box())]
    for k, pose in enumerate(random_poses(count, spread, seed)):
        options = {"static": k in (2, 5), "group": 1 + k % 2, "mask": 3 - (k == 7)}
        scene.add(shapes[k % 3], pose, f"object {k}", **options)
    scene.remove(GONE)
    scene.deform(6, shapes[0].vertices.numpy() * [1.5, 0.6, 0.4])
    scene.ignore(0, 3)
    return scene


def rows_of(found):
    """(n, 5): copy, objects, faces."""
    pose = np.zeros(len(found), int) if found.pose is None else found.pose.numpy()
    return np.concatenate([pose[:, None], found.objects.numpy(), found.pairs.numpy()], axis=1)


def asked(rows, which, against):
    """Rows of a whole scene that a question is about, in its order, sorted."""
    out = []
    for copy, i, j, face, other in rows.tolist():
        if i in which and j in against:
            out.append((copy, i, j, face, other))
        elif j in which and i in against:
            out.append((copy, j, i, other, face))
    return np.array(sorted(out)).reshape(-1, 5)


def as_set(rows):
    return set(map(tuple, rows.tolist()))


EVERY = [k for k in range(COUNT) if k != GONE]
some = st.none() | st.lists(st.sampled_from(EVERY), max_size=5)


@settings(max_examples=25)
@given(which=some, against=some, seed=st.integers(0, 3), own=st.booleans())
def test_a_part_has_the_rows_of_the_whole(device, which, against, seed, own):
    scene = random_scene(device, seed=seed)
    sides = [EVERY if side is None else side for side in (which, against)]
    whole = rows_of(scene.collide(self_collisions=own, method="brute"))
    want = asked(whole, *sides)
    part = {"which": which, "against": against}
    for how in ({}, {"broad": "sweep"}, {"broad": "tree"}, {"method": "brute"}):
        hits = scene.collide(**part, self_collisions=own, **how)
        assert np.array_equal(rows_of(hits), want)
    first = scene.collide(**part, self_collisions=own, first=True)
    assert as_set(rows_of(first)) <= as_set(want)
    pairs = np.unique(want[:, 1:3], axis=0)
    assert np.array_equal(first.objects.numpy(), pairs)
    assert np.array_equal(first.object_pairs.numpy(), pairs)
    assert scene.colliding(**part, self_collisions=own) == (len(want) > 0)
    assert np.array_equal(rows_of(scene.collide(self_collisions=own)), whole)


@pytest.mark.parametrize("method", ["far", "kdop", "front", "cullide"])
def test_every_method_takes_a_part(device, method):
    scene = random_scene(device)
    want = asked(rows_of(scene.collide()), [8, 6], [0, 1, 7, 8])
    for _ in range(2):
        got = rows_of(scene.collide(which=[8, 6], against=[0, 1, 7, 8], method=method))
        if method == "cullide":
            assert as_set(got) <= as_set(want)
        else:
            assert len(want) and np.array_equal(got, want)


def test_a_part_is_a_fresh_scene_of_its_objects(device):
    scene = random_scene(device, seed=1)
    which, against = [8, 1], [0, 2, 6]
    fresh = abut.Scene(device)
    for k in which + against:
        fresh.add(scene.mesh(k), scene.poses.numpy()[k])
    fresh.ignore([0, 2, 2, 3], [1, 3, 4, 4])
    hits, alone = scene.collide(which=which, against=against), fresh.collide()
    assert len(hits) > 0
    named = np.array(which + against)[alone.objects.numpy()]
    rows = np.concatenate([named, alone.pairs.numpy()], axis=1)
    assert as_set(rows_of(hits)[:, 1:]) == as_set(rows)


@settings(max_examples=15)
@given(which=some, against=some, far=st.sampled_from([(1.3, 0.2), (5.0, 1.0)]), own=st.booleans())
def test_within_of_a_part(device, which, against, far, own):
    scene, distance = random_scene(device, far[0]), far[1]
    sides = [EVERY if side is None else side for side in (which, against)]
    whole = scene.within(distance, self_collisions=own)
    assert len(whole) > 0
    want = asked(rows_of(whole), *sides)
    part = {"which": which, "against": against, "self_collisions": own}
    gaps, brute = (scene.within(distance, **part, method=m) for m in ("bvh", "brute"))
    assert np.array_equal(rows_of(gaps), want)
    assert np.array_equal(rows_of(brute), want)
    assert np.array_equal(gaps.distance.numpy(), brute.distance.numpy())
    np.testing.assert_allclose(gaps.points.numpy(), brute.points.numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("gap", [0.5, 1e-9, 1e6])
def test_within_pads_the_boxes_of_the_few(device, gap):
    scene = abut.Scene(device)
    cube = abut.Mesh(*box(), device=device)
    size = float(np.ptp(cube.vertices.numpy()[:, 0]))
    scene.add(cube, [shift(k * (size + gap), 0, 0) for k in range(3)])
    for far, count in ((gap * 1.01 + 1e-9, 2), (gap * 0.9, 0)):
        gaps = scene.within(far, which=1)
        assert len(np.unique(gaps.objects.numpy(), axis=0)) == count
        assert np.array_equal(rows_of(gaps), rows_of(scene.within(far, which=1, method="brute")))


def test_parts_by_name(device):
    scene = random_scene(device)
    by_name = scene.collide(which="object 8", against=["object 0", "object 1"])
    assert np.array_equal(rows_of(by_name), rows_of(scene.collide(which=8, against=[0, 1])))
    for handles in ("nobody", 99, [1.5]):
        for side in ("which", "against"):
            with pytest.raises(abut.SceneError):
                scene.collide(**{side: handles})


def test_a_mesh_that_is_not_added(device):
    scene = random_scene(device)
    mesh, pose = abut.Mesh(*torus(10, 8), device=device), random_poses(1, 0.5, 3)[0]
    for where in (pose, None, pose.astype(np.float32)):
        hits = scene.collide(against=mesh, pose=where)
        added = scene.add(mesh, where, group=-1)
        want = scene.collide(against=added)
        assert len(want) > 0 and (want.objects.numpy()[:, 1] == added).all()
        assert (hits.objects.numpy()[:, 1] == 0).all()
        for column in ("pairs", "segments", "coplanar"):
            assert np.array_equal(*(getattr(x, column).numpy() for x in (hits, want)))
        assert np.array_equal(hits.objects.numpy()[:, 0], want.objects.numpy()[:, 0])
        truth = scene.within(0.1, against=added)
        scene.remove(added)
        gaps = scene.within(0.1, against=mesh, pose=where)
        for column in ("pairs", "distance", "points"):
            assert np.array_equal(*(getattr(x, column).numpy() for x in (gaps, truth)))
        assert scene.colliding(against=mesh, pose=where)
    assert len(scene) == COUNT - 1 and scene.names == random_scene(device).names


def test_a_mesh_meets_all_groups_and_follows_deformation(device):
    scene = abut.Scene(device)
    ball = abut.Mesh(*icosphere(80), device=device)
    scene.add(ball, group=4, mask=8, static=True)
    other = abut.Mesh(*icosphere(80), device=device)
    assert scene.colliding(against=other, pose=shift(1.5, 0, 0))
    other.deform(other.vertices.numpy() * 0.2)
    assert not scene.colliding(against=other, pose=shift(1.5, 0, 0))
    assert scene.colliding(against=other, pose=shift(1.0, 0, 0))
    ball.deform(ball.vertices.numpy() * 2)
    assert not scene.colliding(against=other, pose=shift(1.0, 0, 0))
    assert scene.colliding(against=ball, pose=shift(1.0, 0, 0))


def test_many_meshes_in_turn(device):
    scene = random_scene(device)
    pose = random_poses(1, 0.5, 3)[0]
    meshes = [abut.Mesh(*icosphere(80), device=device) for _ in range(MOST_EXTERNALS + 3)]
    size = None
    for _ in range(3):
        for k, mesh in enumerate(meshes):
            mesh.deform(icosphere(80).vertices * (0.5 + 0.1 * k))
            hits = scene.collide(against=mesh, pose=pose)
            added = scene.add(mesh, pose, group=-1)
            want = scene.collide(against=added)
            scene.remove(added)
            assert len(want) and np.array_equal(hits.pairs.numpy(), want.pairs.numpy())
        size = size or scene._pool.arrays.points.shape[0]
    assert scene._pool.arrays.points.shape[0] == size


@pytest.mark.parametrize("which", [None, [0, 6, 8]])
def test_another_scene(device, which):
    scene, other = random_scene(device), random_scene(device, seed=5)
    both = abut.Scene(device)
    for source in (scene, other):
        for k in EVERY:
            bits = {"group": 1 + k % 2, "mask": 3 - (k == 7)}
            both.add(source.mesh(k), source.poses.numpy()[k], **bits)
    count = len(EVERY)
    mine = range(count) if which is None else [EVERY.index(k) for k in which]
    for turn in range(3):
        hits = scene.collide(which=which, against=other)
        want = asked(rows_of(both.collide()), mine, range(count, 2 * count))
        want[:, 1:3] = np.array(EVERY * 2)[want[:, 1:3]]
        assert len(want) and np.array_equal(rows_of(hits), want)
        assert np.array_equal(
            rows_of(scene.collide(which=which, against=other, method="far")), want
        )
        assert scene.colliding(which=which, against=other)
        first = scene.collide(which=which, against=other, first=True)
        assert np.array_equal(first.objects.numpy(), hits.object_pairs.numpy())
        assert hits.segments.shape[0] == len(hits)
        pose, at = random_poses(1, 1.0, seed=20 + turn)[0], EVERY.index(3)
        other.move(3, pose)
        both.move(count + at, pose)
        vertices = other.mesh(6).vertices.numpy() * 0.9
        other.deform(6, vertices)
        both.deform(count + EVERY.index(6), vertices)
        scene.move(8, pose @ shift(0.1, 0.2, 0.0))
        both.move(EVERY.index(8), pose @ shift(0.1, 0.2, 0.0))
    assert np.array_equal(rows_of(scene.collide(against=scene)), rows_of(scene.collide()))
    assert np.array_equal(
        rows_of(scene.collide(which=3, against=scene)), rows_of(scene.collide(which=3))
    )


@pytest.mark.parametrize("own", [False, True])
def test_parts_of_batches(device, own):
    scene = random_scene(device)
    poses = random_poses(5 * COUNT, 1.5, seed=7).reshape(5, COUNT, 4, 4)
    mesh, pose = abut.Mesh(*torus(10, 8), device=device), random_poses(1, 0.5, 3)[0]
    parts = [{"which": [8, 1]}, {"which": [6], "against": [0, 1, 2, 6]}]
    parts += [{"against": mesh, "pose": pose}, {"which": [1, 3], "against": mesh}, {}]
    for part in parts:
        hits = scene.collide(**part, poses=poses, self_collisions=own)
        flags = scene.colliding(**part, poses=poses, self_collisions=own).numpy()
        gaps = scene.within(0.1, **part, poses=poses, self_collisions=own)
        slow = scene.within(0.1, **part, poses=poses, self_collisions=own, method="brute")
        assert np.array_equal(rows_of(gaps), rows_of(slow))
        assert np.array_equal(gaps.distance.numpy(), slow.distance.numpy())
        before = scene.poses.numpy().copy()
        for copy in range(5):
            scene.move(EVERY, poses[copy][EVERY])
            alone = scene.collide(**part, self_collisions=own)
            mine = hits.pose.numpy() == copy
            assert np.array_equal(rows_of(hits)[mine][:, 1:], rows_of(alone)[:, 1:])
            assert flags[copy] == bool(alone)
            near, one = scene.within(0.1, **part, self_collisions=own), gaps.pose.numpy() == copy
            for column in ("objects", "pairs", "distance", "points"):
                got, want = (getattr(x, column).numpy() for x in (gaps, near))
                assert np.array_equal(got[one], want)
        scene.move(EVERY, before[EVERY])


def test_pairs_of_objects_of_a_batch(device):
    scene = random_scene(device)
    poses = random_poses(3 * COUNT, 1.2, seed=7).reshape(3, COUNT, 4, 4)
    hits = pickle.loads(pickle.dumps(scene.collide(poses=poses)))
    pairs = np.concatenate([hits.object_pair_pose.numpy()[:, None], hits.object_pairs.numpy()], 1)
    assert pairs.dtype == np.int32
    assert np.array_equal(pairs, np.unique(rows_of(hits)[:, :3], axis=0))
    assert scene.collide().object_pair_pose is None


def test_what_is_refused(device):
    scene, mesh = random_scene(device), abut.Mesh(*box(), device=device)
    with pytest.raises(abut.OptionError, match="pose"):
        scene.collide(against=[0], pose=np.eye(4))
    with pytest.raises(abut.OptionError, match="pose"):
        scene.collide(against=mesh, pose=np.tile(np.eye(4), (2, 1, 1)))
    with pytest.raises(abut.PoseError):
        scene.collide(against=mesh, pose=2 * np.eye(4))
    with pytest.raises(abut.SceneError):
        scene.within(0.1, against={0: 1})


def test_empty_parts(device):
    scene = abut.Scene(device)
    mesh = abut.Mesh(*box(), device=device)
    nothing = abut.Mesh(np.zeros((0, 3)), np.zeros((0, 3), np.int32), device)
    for other in (mesh, nothing, abut.Scene(device), []):
        assert len(scene.collide(against=other)) == 0
        assert not scene.colliding(against=other)
        assert len(scene.within(1.0, against=other)) == 0
    scene.add(mesh)
    for part in ({"against": nothing}, {"which": []}, {"against": abut.Scene(device)}):
        assert len(scene.collide(**part)) == len(scene.within(1.0, **part)) == 0
        assert not scene.colliding(**part)
    assert scene.colliding(against=mesh)


edit = st.tuples(
    st.sampled_from(["move", "move", "move", "many", "write", "deform", "ignore", "add", "remove"]),
    st.integers(0, 1000),
)


@settings(max_examples=30)
@given(edits=st.lists(edit, min_size=3, max_size=12), spread=st.sampled_from([1.5, 3.0, 8.0]))
def test_verdicts_follow_every_change(device, edits, spread):
    scene = random_scene(device, spread)
    ball = abut.Mesh(*icosphere(80), device=device)
    other = abut.Scene(device)
    other.add(ball, random_poses(3, spread, 9))
    for name, number in edits:
        rows = scene.indices
        row = int(rows[number % len(rows)])
        poses = random_poses(len(rows), spread, number)
        if name == "move":
            scene.move(row, poses[0])
            other.move(number % 3, poses[0])
        elif name == "many":
            scene.move(rows, poses)
        elif name == "write":
            held = scene.poses.numpy()
            held[row] = poses[0]
            scene.poses.assign(held)
        elif name == "deform":
            scene.deform(row, scene.mesh(row).vertices.numpy() * 0.8)
        elif name == "ignore":
            scene.ignore(row, int(rows[number // 7 % len(rows)]))
        elif name == "add":
            scene.add(ball, poses[0])
        elif len(rows) > 3:
            scene.remove(row)
        rows = scene.indices
        some = rows[number % len(rows) :][:2]
        fresh = pickle.loads(pickle.dumps(scene))
        assert scene.colliding() == bool(fresh.collide(method="brute"))
        parts = [{"which": some}, {"which": some, "against": rows[::2]}, {"against": other}]
        for part in [*parts, {"against": ball, "pose": poses[0]}]:
            want = fresh.collide(**part, method="brute")
            assert scene.colliding(**part) == bool(want)
            assert np.array_equal(rows_of(scene.collide(**part)), rows_of(want))
        near, want = (x.within(0.3, which=some) for x in (scene, fresh))
        assert np.array_equal(rows_of(near), rows_of(want))
        assert np.array_equal(near.distance.numpy(), want.distance.numpy())


def test_one_object_is_asked_again_after_every_change(device):
    """The same question, of the same index, after changes of all kinds but its own pose."""
    ball = icosphere(80)
    mesh, other = (abut.Mesh(*ball, device=device) for _ in range(2))
    scene = abut.Scene(device)
    one, near = scene.add(mesh), scene.add(other, shift(1.5, 0, 0))

    def meets():
        found = scene.colliding(which=one)
        assert found == (len(scene.collide(which=one)) > 0)
        return found

    assert meets() and meets()
    other.deform(0.1 * ball.vertices)  # of a mesh that was given
    assert not meets()
    other.deform(ball.vertices)
    assert meets()
    scene.set(one, mask=2)
    assert not meets()
    scene.set(one, mask=1)
    scene.ignore(one, near)
    assert not meets()
    scene.allow(one, near)
    assert meets()
    scene.remove(one)
    with pytest.raises(abut.SceneError):
        scene.colliding(which=one)
    assert scene.add(mesh, shift(0, 9, 0)) == one
    assert not meets()
    for _ in range(40):  # the array of poses grows
        scene.add(mesh, shift(0, 20, 0))
    scene.move(one, shift(0, 1, 0))
    assert meets()
    scene.poses.assign(np.repeat(np.eye(4)[None], len(scene), axis=0))
    assert meets()
    scene.deform(near, 0.1 * ball.vertices)
    scene.move(near, shift(5, 0, 0))
    scene.move(range(2, len(scene)), np.repeat(shift(0, 20, 0)[None], len(scene) - 2, axis=0))
    assert not meets()


def test_bad_poses_are_refused_at_every_question(device):
    scene = random_scene(device)
    good = scene.poses.numpy().copy()
    for known in (False, True):
        if known:
            scene.colliding(which=8)
        bad = good.copy()
        bad[3] *= 1.5
        scene.poses.assign(bad)
        for _ in range(2):
            for ask in (scene.colliding, scene.collide):
                for part in ({}, {"which": 8}, {"against": scene.mesh(0)}):
                    with pytest.raises(abut.PoseError, match="object 3 is not"):
                        ask(**part)
        scene.poses.assign(good)
        want = rows_of(scene.collide(which=8, method="brute"))
        assert np.array_equal(rows_of(scene.collide(which=8)), want)


def test_one_pose_is_written_by_a_launch(device):
    scene = random_scene(device)
    before, pose = scene.poses.numpy().copy(), random_poses(1, 2.0, 8)[0]
    for row in (3, 8, 3):
        scene._objects._write_pose(row, pose)
        before[row] = pose
        assert np.array_equal(scene.poses.numpy(), before)
    scene.add(abut.Mesh(*box(), device=device), random_poses(30, 2.0, 9))
    scene._objects._write_pose(20, pose)
    assert np.array_equal(scene.poses.numpy()[20], pose)


def test_touching_objects_are_decided_exactly(device):
    scene = abut.Scene(device)
    cube = abut.Mesh(*box(), device=device)
    size = float(np.ptp(cube.vertices.numpy()[:, 0]))
    scene.add(cube, [shift(k * size * 3, 0, 0) for k in range(40)])
    probe = scene.add(cube, shift(0, size * 5, 0))
    assert not scene.colliding() and not scene.colliding(which=probe)
    scene.move(probe, shift(6 * size, size, 0))  # on top of the third
    assert scene.colliding(which=probe) and scene.colliding()
    scene.move(1, shift(3 * size, 0, 4 * size))
    assert scene.colliding()
    scene.move(probe, shift(6 * size, np.nextafter(size, np.inf), 0))
    assert not scene.colliding(which=probe) and not scene.colliding()


def test_many_objects_at_one_place(device):
    scene = abut.Scene(device)
    ball = abut.Mesh(*icosphere(20), device=device)
    scene.add(ball, np.tile(np.eye(4), (1500, 1, 1)))
    small = abut.Mesh(icosphere(20).vertices * 0.5, icosphere(20).faces, device)
    inside = scene.add(small)
    assert not scene.colliding(
        which=inside
    )  # surfaces do not meet; more pairs than a FewSearch takes
    assert scene.colliding(which=3) and scene.colliding()


def impact_rows(impacts):
    """(n, 6): step, objects, kind, features."""
    step = np.zeros(len(impacts), int) if impacts.pose is None else impacts.pose.numpy()
    columns = (step[:, None], impacts.objects.numpy(), impacts.kind.numpy()[:, None])
    return np.concatenate([*columns, impacts.features.numpy()], axis=1)


def asked_impacts(impacts, which, against):
    """Rows (step, objects, kind, features) and times that a question is about, sorted."""
    turned = {kind: kind for kind in abut.ImpactKind}
    turned[abut.ImpactKind.VERTEX_FACE] = abut.ImpactKind.FACE_VERTEX
    turned[abut.ImpactKind.FACE_VERTEX] = abut.ImpactKind.VERTEX_FACE
    out = []
    for row, time in zip(impact_rows(impacts).tolist(), impacts.time.numpy(), strict=True):
        step, i, j, kind, a, b = row
        if i in which and j in against:
            out.append((*row, time))
        elif j in which and i in against:
            out.append((step, j, i, int(turned[kind]), b, a, time))
    table = np.array(sorted(out)).reshape(-1, 7)
    return table[:, :6], table[:, 6]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    ("which", "against"), [([8, 6], None), (None, [1, 0]), ([8, 1, 2], [0, 2, 8]), ([7], [3])]
)
def test_ccd_of_a_part(device, which, against, own):
    scene = random_scene(device, 3.0)
    ends = scene.poses.numpy().copy()
    ends[:, :3, 3] *= 0.3
    ends[::2] = ends[::2] @ random_poses(1, 0.0, 3)[0]
    options = {"vertices": {6: scene.mesh(6).vertices.numpy() * 1.4}, "self_collisions": own}
    sides = [EVERY if side is None else side for side in (which, against)]
    rows, times = asked_impacts(scene.ccd(ends, **options), *sides)
    part = {"which": which, "against": against, **options}
    for method in ("bvh", "brute"):
        impacts = scene.ccd(ends, **part, method=method)
        assert np.array_equal(impact_rows(impacts), rows)
        np.testing.assert_allclose(impacts.time.numpy(), times, rtol=0, atol=1e-6)
    first = scene.ccd(ends, **part, first=True)
    assert len(first) == min(len(rows), 1)
    assert abs(first.safe_step - min([1.0, *times])) <= 1e-6


def test_steps_of_a_batch(device):
    scene = random_scene(device, 3.0)
    rest = scene.poses.numpy().copy()
    ends = np.stack([rest, rest, rest, rest])
    ends[1, :, :3, 3] *= 0.3
    ends[2, :, :3, 3] *= 0.6
    ends[3, ::2] = ends[3, ::2] @ random_poses(1, 0.0, 3)[0]
    mesh = abut.Mesh(*torus(10, 8), device=device)
    for part in ({}, {"which": [8, 1]}, {"against": mesh, "pose": shift(0.3, 0, 0)}):
        batch = pickle.loads(pickle.dumps(scene.ccd(ends, **part)))
        assert len(batch) > 0 and batch.numpy()["pose"].max() < 4
        for step in range(4):
            alone, mine = scene.ccd(ends[step], **part), batch.pose.numpy() == step
            assert np.array_equal(impact_rows(batch)[mine][:, 1:], impact_rows(alone)[:, 1:])
            assert np.array_equal(batch.time.numpy()[mine], alone.time.numpy())
            assert batch.first.numpy()[step] == alone.first
            assert batch.safe_step.numpy()[step] == alone.safe_step
    assert scene.ccd(ends[:0]).first.shape == (0,)
    for wrong in (ends[:, :3], ends[0, 0], ends[None]):
        with pytest.raises(abut.PoseError, match="shape"):
            scene.ccd(wrong)


def test_ccd_against_what_is_not_added(device):
    scene, other = random_scene(device, 3.0), random_scene(device, 2.0, seed=5)
    mesh, pose = abut.Mesh(*torus(10, 8), device=device), shift(0.3, 0.1, 0)
    ends = scene.poses.numpy().copy()
    ends[:, :3, 3] *= 0.2
    bent = {6: scene.mesh(6).vertices.numpy() * 1.4}
    impacts = scene.ccd(ends, against=mesh, pose=pose, vertices=bent, which=[6, 8, 1])
    row = scene.add(mesh, pose, group=-1)
    assert row == GONE
    ends[row] = pose
    want = scene.ccd(ends, against=row, vertices=bent, which=[6, 8, 1])
    assert len(want) > 0 and (impacts.objects.numpy()[:, 1] == 0).all()
    named = impact_rows(want) - [0, 0, row, 0, 0, 0]
    assert np.array_equal(impact_rows(impacts), named)
    np.testing.assert_allclose(impacts.time.numpy(), want.time.numpy(), rtol=0, atol=1e-6)
    scene.remove(row)
    found = scene.ccd(ends, against=other)
    slow = scene.ccd(ends, against=other, method="brute")
    assert len(found) > 0 and set(found.objects.numpy()[:, 1]) <= set(EVERY)
    assert np.array_equal(impact_rows(found), impact_rows(slow))
