"""Keys that sort by distance, then by face."""

import warp as wp

from abut.bounds.sortable_float import from_sortable, to_sortable


@wp.func
def key_of(distance: wp.float32, face: wp.int32):
    """Sorts by distance, then by face."""
    bits = to_sortable(distance + wp.float32(0.0))  # -0 is 0
    return (wp.int64(bits) << wp.int64(32)) | wp.int64(face)


@wp.func
def distance_in(key: wp.int64):
    """The distance of a key."""
    return from_sortable(wp.int32(key >> wp.int64(32)))


@wp.func
def face_in(key: wp.int64):
    """The face of a key."""
    return wp.int32(key & wp.int64(4294967295))
