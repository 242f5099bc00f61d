"""Signs of distances: the choice of a method, and its application."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import UNKNOWN_COUNT, launch
from abut.core.pair_queue import PairQueue, PairQueues
from abut.core.timing import stage
from abut.errors import MeshError
from abut.mesh import Mesh
from abut.operands.posed_mesh import make_posed_mesh
from abut.options import Sign, chosen
from abut.point.enclosure import enclosure_of
from abut.point.pseudonormals import pseudonormals_of
from abut.point.signed_distance import (
    boundary_sign_kernel,
    pseudonormal_sign_kernel,
    winding_sign_kernel,
)
from abut.query.self_collide import self_collide


def chosen_sign(mesh: Mesh, signed: bool | str, name: str = "signed") -> Sign | None:
    """Return the sign method of a mesh, None for unsigned. ``name``: of the option."""
    if isinstance(signed, bool):
        if not signed:
            return None
        return Sign.PSEUDONORMAL if _is_plain(mesh) else Sign.WINDING
    sign = chosen(Sign, signed, name)
    if sign is Sign.PSEUDONORMAL and not mesh.oriented:
        what = "is not consistently oriented" if mesh.watertight else "is open"
        raise MeshError(
            f"a sign by pseudonormals needs a closed, oriented mesh, but this one {what}; "
            f'repair it, or take {name}="winding".'
        )
    return sign


def _is_plain(mesh: Mesh) -> bool:
    """Whether a mesh is one closed surface, normals outwards, that nowhere meets itself."""

    def found() -> bool:
        return (
            mesh.oriented
            and len(mesh.topology.anchors) == 1
            and signed_volume(mesh) > 0
            and not self_collide(mesh)
        )

    return mesh.per_shape("plain", found)


def signed_volume(mesh: Mesh) -> float:
    """Volume that a closed mesh encloses, negative where its normals point inwards."""

    def volume() -> float:
        corners = (mesh.points.numpy() - mesh.bounds.mean(axis=0))[mesh.faces.numpy()]
        a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
        return float(np.einsum("ni,ni->", a, np.cross(b, c))) / 6.0

    return mesh.per_shape("volume", volume)


def set_signs(
    mesh: Mesh,
    points: wp.array,
    order: wp.array,
    poses: np.ndarray | None,
    sign: Sign,
    face: wp.array,
    weights: wp.array,
    distance: wp.array,
) -> None:
    """Turn distances (B, n) negative inside.

    Args:
        mesh, points, poses: Those of the query.
        order: Order in which points are taken; may be empty.
        sign: Sign method.
        face, weights: Of each closest point.
        distance: Updated; zeros and infinities are left alone.
    """
    device = mesh.device
    side = make_posed_mesh(mesh.points, mesh.faces, poses)
    undecided = PairQueues(device, points=distance.size)["points"]
    found = face, weights, distance
    with stage("sign", device):
        for kernel, count, args in sign_launches(
            mesh, points, order, side, sign, *found, undecided
        ):
            launch(kernel, count, args, device, grain=256)


def sign_launches(
    mesh: Mesh,
    points: wp.array,
    order: wp.array,
    side: Any,
    sign: Sign,
    face: wp.array,
    weights: wp.array,
    distance: wp.array,
    undecided: Any,
) -> Iterator[tuple[wp.Kernel, int, list[Any]]]:
    """Kernels, counts and arguments of the launches that ``set_signs`` makes, one after another.

    ``side`` is the posed mesh, ``undecided`` an empty queue with room for all points.
    """
    enclosure, count, flipped = enclosure_of(mesh), distance.size, False
    if sign is Sign.PSEUDONORMAL:
        normals = pseudonormals_of(mesh, enclosure.faces)
        args = [points, side, enclosure.faces, normals, face, weights, distance, undecided]
        yield pseudonormal_sign_kernel, count, args
        flipped = signed_volume(mesh) < 0
    elif enclosure.boundary.corners is not None and enclosure.boundary.corners.shape[0]:
        yield boundary_sign_kernel, count, [points, order, side, enclosure, distance, undecided]
    else:
        args = [points, order, side, enclosure, False, PairQueue(), distance]
        yield winding_sign_kernel, count, args
        return
    left = UNKNOWN_COUNT if mesh.device.is_cuda else int(undecided.count.numpy()[0])
    yield winding_sign_kernel, left, [points, order, side, enclosure, flipped, undecided, distance]
