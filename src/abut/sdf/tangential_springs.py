"""Tangential springs of samples in contact, in a hash table that is kept between steps.

A sample that enters an object anchors a spring where it touches the surface (Cundall and Strack
1979). The table has two halves: springs of the last step are read from one, those of this step are
written to the other, and the halves take turns. A sample that left the object thereby loses its
spring. Values do not depend on the slots that threads happen to get.
"""

from typing import Any

import warp as wp

from abut.core.atomics import atomic_add_aggregated, atomic_cas
from abut.core.launch import Task, launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

FREE = wp.constant(wp.int32(-1))
# Odd multipliers of known hash functions.
MIX_A, MIX_B = wp.constant(wp.uint32(0x9E3779B1)), wp.constant(wp.uint32(0x85EBCA6B))
MIX_C, MIX_D = wp.constant(wp.uint32(0xC2B2AE35)), wp.constant(wp.uint32(0x27D4EB2F))
SLOTS_PER_SPRING = 2  # of a half, at least: chains of occupied slots stay short
ARRAYS = ("faces", "places", "owners", "anchors")


@wp.struct
class SpringTable:
    """Springs by (owner, face, subtriangle); a half has a power of two of slots."""

    faces: wp.array[wp.int32]  # FREE where a slot is
    places: wp.array[wp.vec2i]  # subtriangle, and subtriangles along a side of the face
    owners: wp.array[wp.vec2i]  # pair of objects
    anchors: wp.array[wp.vec3f]  # in the field's frame [cells]
    turn: wp.array[wp.int32]  # the half with the springs of the last step
    count: wp.array[wp.int64]  # springs of this step, also those without room
    room: wp.int64  # springs of a half, at most
    ratio: wp.float32  # tangential stiffness over stiffness


@wp.func
def first_slot(table: SpringTable, owner: wp.vec2i, face: wp.int32, index: wp.int32):
    """Return the slot of a half where the search for a spring begins."""
    h = wp.uint32(face) * MIX_A
    h = (h ^ wp.uint32(index)) * MIX_B
    h = (h ^ (h >> wp.uint32(15)) ^ wp.uint32(owner[0])) * MIX_C
    h = (h ^ (h >> wp.uint32(13)) ^ wp.uint32(owner[1])) * MIX_D
    h = h ^ (h >> wp.uint32(16))
    return wp.int32(h & wp.uint32(table.faces.shape[0] / 2 - 1))


@wp.func
def find_spring(table: SpringTable, owner: wp.vec2i, face: wp.int32, place: wp.vec2i):
    """Return the slot of a sample's spring of the last step, -1 where it has none."""
    slots = table.faces.shape[0] / 2
    first = table.turn[0] * slots
    at = first_slot(table, owner, face, place[0])
    while table.faces[first + at] != FREE:
        slot = first + at
        if table.faces[slot] == face and table.places[slot] == place:
            if table.owners[slot] == owner:
                return slot
        at = (at + 1) & (slots - 1)
    return -1


@wp.func
def add_spring(
    table: SpringTable,
    half: wp.int32,
    owner: wp.vec2i,
    face: wp.int32,
    place: wp.vec2i,
    anchor: wp.vec3f,
):
    """Add a spring to a half; when that is full, only the count grows, so the host can retry."""
    if atomic_add_aggregated(table.count, 1) >= table.room:
        return
    slots = table.faces.shape[0] / 2
    at = first_slot(table, owner, face, place[0])
    while atomic_cas(table.faces, half * slots + at, FREE, face) != FREE:
        at = (at + 1) & (slots - 1)
    slot = half * slots + at
    table.places[slot] = place
    table.owners[slot] = owner
    table.anchors[slot] = anchor


@wp.kernel
def clear_springs_kernel(
    # in
    span: wp.vec3i,
    # out
    table_out: SpringTable,
):
    """Empty the half for the springs of this step."""
    slots = table_out.faces.shape[0] / 2
    first = (1 - table_out.turn[0]) * slots
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        table_out.faces[first + i] = FREE


@wp.kernel
def turn_springs_kernel(
    # in
    span: wp.vec3i,
    # out
    turn_out: wp.array[wp.int32],
):
    """Let the halves of a table take turns."""
    if span[0] + wp.tid() < span[1]:
        turn_out[0] = 1 - turn_out[0]


@wp.kernel
def move_springs_kernel(
    # in
    span: wp.vec3i,
    old: SpringTable,
    # out
    table_out: SpringTable,
):
    """Add the springs of the last step to a larger table."""
    first = old.turn[0] * (old.faces.shape[0] / 2)
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        slot = first + i
        if old.faces[slot] != FREE:
            half = table_out.turn[0]
            place = old.places[slot]
            add_spring(table_out, half, old.owners[slot], old.faces[slot], place, old.anchors[slot])


class TangentialSprings:
    """The table of springs, which survives growth and can go back to a saved state.

    Args:
        device: Where it lives.
        ratio: Tangential stiffness over stiffness.
    """

    def __init__(self, device: wp.Device, ratio: float) -> None:
        self.device = device
        self._table = SpringTable()
        self._table.ratio = ratio
        self._table.turn = wp.zeros(1, dtype=wp.int32, device=device)
        self._saved: Any = None
        self._allocate(1)

    def table(self, room: int, count: wp.array) -> Any:
        """Return the struct with room for springs at least; it adds to ``count``, zero now."""
        if room > self._table.room:
            old = self._table
            self._table = SpringTable()
            self._table.ratio, self._table.turn = old.ratio, old.turn
            self._allocate(room)
            self._table.count = wp.zeros(1, dtype=wp.int64, device=self.device)
            launch(move_springs_kernel, old.faces.shape[0] // 2, [old, self._table], self.device)
        self._table.count = count
        return self._table

    def stages(self, table: Any) -> tuple[Any, Any]:
        """Return the launches before and after the springs of a step are found."""
        half, device = table.faces.shape[0] // 2, self.device
        clear = Task(clear_springs_kernel, half, [table], device, grain=1 << 14).run
        return clear, Task(turn_springs_kernel, 1, [table.turn], device).run

    def turn_back(self) -> None:
        """Forget the springs of the step made last, and return to those before it."""
        launch(turn_springs_kernel, 1, [self._table.turn], self.device)

    def clear(self) -> None:
        """Remove all springs."""
        self._table.faces.fill_(FREE)

    def save(self) -> None:
        """Keep a copy of the springs."""
        names = ("turn", *ARRAYS)
        if self._saved is None or self._saved.room != self._table.room:
            self._saved = SpringTable()
            self._saved.room, self._saved.ratio = self._table.room, self._table.ratio
            for name in names:
                setattr(self._saved, name, wp.clone(getattr(self._table, name)))
        for name in names:
            wp.copy(getattr(self._saved, name), getattr(self._table, name))

    def restore(self) -> None:
        """Return to the springs of the last ``save``; ``table`` must be called again after growth.

        A table that has grown since is dropped.
        """
        assert self._saved is not None
        if self._saved.room != self._table.room:
            self._table, self._saved = self._saved, None
            self.save()
            return
        for name in ("turn", *ARRAYS):
            wp.copy(getattr(self._table, name), getattr(self._saved, name))

    def _allocate(self, room: int) -> None:
        half = 1
        while half < SLOTS_PER_SPRING * room:
            half *= 2
        self._table.room = half // SLOTS_PER_SPRING
        options = {"shape": 2 * half, "device": self.device}
        self._table.faces = wp.full(value=int(FREE), dtype=wp.int32, **options)
        self._table.places = wp.zeros(dtype=wp.vec2i, **options)
        self._table.owners = wp.zeros(dtype=wp.vec2i, **options)
        self._table.anchors = wp.zeros(dtype=wp.vec3f, **options)
