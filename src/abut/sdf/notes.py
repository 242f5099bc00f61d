"""Sums along rows: a kernel of few registers, beside rows, whose predicates need many."""

import warp as wp

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MOST_CROSSINGS = wp.constant(32767)  # that 16 bits hold


@wp.kernel
def sum_crossings_kernel(
    # in
    span: wp.vec3i,
    # out
    notes_out: wp.array3d[wp.vec3s],
):
    """To the first component of each note, add those that follow along the first axis."""
    count = notes_out.shape[0]
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        j = row / notes_out.shape[2]
        k = row - j * notes_out.shape[2]
        total = wp.int32(0)
        for n in range(count):
            i = count - 1 - n
            note = wp.int32(notes_out[i, j, k][0])
            total += note
            held = wp.clamp(total, -MOST_CROSSINGS, MOST_CROSSINGS)
            if held != note:  # most notes are zero and stay so
                notes_out[i, j, k] = wp.vec3s(wp.int16(held), wp.int16(0), wp.int16(0))
