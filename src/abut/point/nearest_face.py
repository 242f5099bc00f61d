"""The face nearest to a point: best first down the tree, with a short stack.

Each thread searches alone; see candidates for the lanes of a CUDA warp.
"""

import warp as wp

from abut.bounds.probe import Probe, faces_within, probe_limit, probe_posed, probe_unposed
from abut.bvh.wide import BLOCK, BLOCK_LINKS, NO_CHILD, WIDE_ROWS, wide_reach, wide_root
from abut.core.memory_access import load_readonly_vec4f
from abut.geometry.closest_point_tri import closest_point_tri, is_beyond
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.point.descent import step_back, step_down

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(96)  # a tree is at most 30 + 31 deep, half of that in wide nodes
NO_FACE = wp.constant(2147483647)  # any face wins against it


@wp.struct
class NearestFace:
    """The nearest face so far, of ties the lowest."""

    squared: wp.float64
    face: wp.int32


@wp.func_native("""
    const float low = which & 1 ? values.c[1] : values.c[0];
    const float high = which & 1 ? values.c[3] : values.c[2];
    return which & 2 ? high : low;
""")
def select_component(values: wp.vec4f, which: wp.int32) -> wp.float32:
    """Component ``which`` of four, without going through memory."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __ffs(bits) - 1;
#else
    return __builtin_ctz(bits);
#endif
""")
def lowest_bit(bits: wp.int32) -> wp.int32:
    """Index of the lowest bit that is set."""
    ...


@wp.func
def probe_at(
    p: wp.vec3d,
    poses: wp.array[wp.mat44d],
    pose: wp.int32,
    origin: wp.vec3d,
    reach: wp.float64,
):
    """A probe at p for a mesh in a pose, whose boxes are relative to ``origin``."""
    probe = Probe()
    if poses.shape[0] > 0:
        probe = probe_posed(p, poses[wp.min(pose, poses.shape[0] - 1)], origin, reach)
    else:
        probe = probe_unposed(p, origin, reach)
    return probe


@wp.func
def no_face_within(bound: wp.float64):
    """A search that has found no face yet and takes none farther than ``bound``, squared."""
    out = NearestFace()
    out.squared = bound
    out.face = NO_FACE
    return out


@wp.func
def nearer_face(best: NearestFace, squared: wp.float64, face: wp.int32):
    """The nearer of the best face so far and a face at a squared distance; of ties the lower."""
    out = NearestFace()
    out.squared = best.squared
    out.face = best.face
    if squared < best.squared or (squared == best.squared and face < best.face):
        out.squared = squared
        out.face = face
    return out


@wp.func
def nearest_face(
    probe: Probe,
    side: PosedMesh,
    pose: wp.int32,
    wide: wp.array[wp.vec4f],
    start: NearestFace,
    links: wp.array[wp.int32],
    gaps: wp.array[wp.float32],
):
    """The nearest face, if one is as near as ``start``, which is a face or a bound alone.

    ``links`` and ``gaps`` are room for STACK entries.

    Guarantee:
        Of all faces, the one with the least (squared distance, index) as ``closest_point_tri``
        gives it.
    """
    best = NearestFace()
    best.squared = start.squared
    best.face = start.face
    within = wp.float32(probe_limit(probe, best.squared))
    middle = wp.float32(0.5) * (probe.lower + probe.upper)
    link = wide_root(wide)
    depth = wp.int32(0)
    while depth >= 0:
        step = wp.vec2i()
        if link < 0 or link >= BLOCK:
            names = wp.vec4f(wp.cast(link, wp.float32))
            todo = wp.int32(1)
            if link >= BLOCK:
                first = WIDE_ROWS * (link - BLOCK)
                names = load_readonly_vec4f(wide, first + BLOCK_LINKS)
                todo = faces_within(middle, within, probe.blur, wide, first, NO_CHILD)
            while todo != 0:
                face = -1 - wp.cast(select_component(names, lowest_bit(todo)), wp.int32)
                corners = load_face(side, face, pose)
                if not is_beyond(probe.point, corners, probe_limit(probe, best.squared)):
                    foot = closest_point_tri(probe.point, corners)
                    best = nearer_face(best, foot.squared, face)
                todo = todo & (todo - 1)
            within = wp.float32(probe_limit(probe, best.squared))
            step = step_back(within, links, gaps, depth, False)
        else:
            step = step_down(
                probe.lower, probe.upper, within, wide, link, links, gaps, depth, False
            )
        link = step[0]
        depth = step[1]
    return best


@wp.func
def search_nearest_face(
    p: wp.vec3d,
    guess: wp.int32,
    side: PosedMesh,
    pose: wp.int32,
    origin: wp.vec3d,
    wide: wp.array[wp.vec4f],
    bound: wp.float64,
    links: wp.array[wp.int32],
    gaps: wp.array[wp.float32],
):
    """The face nearest to p within a bound, squared, or NO_FACE; ``guess`` is tested first, if any.

    ``links`` and ``gaps`` are room for STACK entries.
    """
    probe = probe_at(p, side.poses, pose, origin, wide_reach(wide))
    start = no_face_within(bound)
    if guess != NO_FACE:
        foot = closest_point_tri(probe.point, load_face(side, guess, pose))
        start = nearer_face(start, foot.squared, guess)
    return nearest_face(probe, side, pose, wide, start, links, gaps).face


@wp.kernel(cuda_max_registers=128)  # two blocks of 256 threads at a time
def nearest_face_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    order: wp.array[wp.int32],
    side: PosedMesh,
    origin: wp.vec3d,
    wide: wp.array[wp.vec4f],
    bound: wp.float64,
    # out
    face_out: wp.array2d[wp.int32],
):
    """The nearest face of every (pose, point), NO_FACE where none is within the bound, squared.

    Points are taken in ``order``, if there is one. A thread's answer for one point is where its
    search for the next one starts.
    """
    links = wp.zeros(shape=(STACK,), dtype=wp.int32)
    gaps = wp.zeros(shape=(STACK,), dtype=wp.float32)
    count = points.shape[0]
    last = wp.int32(NO_FACE)
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / count
        i = work - pose * count
        if order.shape[0] > 0:
            i = order[i]
        last = search_nearest_face(points[i], last, side, pose, origin, wide, bound, links, gaps)
        face_out[pose, i] = last


@wp.kernel
def brute_nearest_face_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    side: PosedMesh,
    bound: wp.float64,
    # out
    face_out: wp.array2d[wp.int32],
):
    """The nearest face of every (pose, point), by testing every face."""
    count = points.shape[0]
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / count
        i = work - pose * count
        best = no_face_within(bound)
        for face in range(side.faces.shape[0]):
            squared = closest_point_tri(points[i], load_face(side, face, pose)).squared
            best = nearer_face(best, squared, face)
        face_out[pose, i] = best.face
