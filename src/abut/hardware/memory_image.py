"""Memory image: memory and registers of the machine as words, for simulators and boards."""

import numpy as np

from abut.hardware.config import SIZE_BITS, SLOT_BITS
from abut.hardware.model import axis_rows, idle_row
from abut.hardware.program import EncodedTree, Program


def record_beats(program: Program, tree: EncodedTree, slot: int) -> list[int]:
    """The beats of a record: link, leaf and size, then four reaches at a time."""
    machine = program.machine
    mask = (1 << machine.width) - 1
    head = int(tree.links[slot]) | int(tree.leaves[slot]) << SLOT_BITS
    head |= (int(tree.sizes[slot]) & ((1 << SIZE_BITS) - 1)) << (SLOT_BITS + 1)
    reaches = [int(x) & mask for x in tree.reaches[slot]]
    beats = [head]
    for slab in range(0, machine.half, 2):
        beat = 0
        for place, n in enumerate((slab, slab + machine.half, slab + 1, slab + 1 + machine.half)):
            if n % machine.half == slab % machine.half or slab + 1 < machine.half:
                beat |= reaches[n] << (machine.width * place)
        beats.append(beat)
    return beats


def packed(numbers: np.ndarray, bits: int) -> int:
    """Concatenate numbers of ``bits`` bits, the first lowest."""
    mask, word = (1 << bits) - 1, 0
    for place, number in enumerate(np.asarray(numbers).ravel().tolist()):
        word |= (int(number) & mask) << (bits * place)
    return word


def triangle_word(tree: EncodedTree, face: int) -> int:
    """Nine coordinates of 18 bits of a face."""
    return packed(tree.triangles[face], 18)


def table_words(program: Program) -> list[tuple[int, int, int]]:
    """(pipeline, row, word) of the axis table; axes are dealt to pipelines round robin."""
    machine = program.machine
    rows = axis_rows(program)
    rows += [idle_row(machine)] * (machine.steps * machine.pipelines - len(rows))
    return [(n % machine.pipelines, n // machine.pipelines, word) for n, word in enumerate(rows)]


def register_words(program: Program) -> dict[str, int]:
    """Registers that stay constant during a query."""
    return {
        "root_a": program.a.root,
        "root_b": program.b.root,
        "turn": packed(program.rotation, 18),
        "shift": packed(program.shift, 36),
        "slack": program.slack,
    }
