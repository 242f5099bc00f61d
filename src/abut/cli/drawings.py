"""Drawings: surfaces and lines of the picture of each answer."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from abut import view
from abut.cli import field_drawings
from abut.cli.contacts import lines_of, segments_of
from abut.cli.impacts import Step
from abut.cli.operands import pose_of
from abut.cli.report import Meshes
from abut.mesh import Mesh
from abut.query.cull import Culled
from abut.query.overlap import Overlap
from abut.results import Contacts, Distances, Gaps
from abut.scene import Scene
from abut.scene.files.robot_parts import is_half_space
from abut.sdf.distance_field import DistanceField

COLORS = (view.SAND, view.TEAL, view.INDIGO)
LINE, DOT = 2.5, 7.0  # width of lines [pixels], and of those of a small answer
MOST_LINES = 20_000  # of gaps in a picture
SMALL = 0.02  # size of a small answer over the extent of the bodies


class Drawing(NamedTuple):
    """Surfaces, red lines or points (k, 3), and further points to look at."""

    bodies: list[view.Body]
    lines: list[np.ndarray]
    points: np.ndarray = np.empty((0, 3))


def draw(args: argparse.Namespace, vertical: str, drawing: Drawing) -> None:
    """Write --picture, from a side from which the answer is seen."""
    bodies, lines, points = drawing
    answer = np.concatenate([*map(_dense, lines), points])
    look = {"size": args.size, "device": args.device}
    seen, camera = view.aim(bodies, answer, vertical=vertical, **look)
    extent = max(np.ptp(body.shape.vertices, axis=0).max() for body in bodies)
    small = len(answer) > 0 and np.ptp(answer, axis=0).max() < SMALL * extent
    width = DOT if small else LINE
    options = {"camera": camera, "curve_color": view.RED, "curve_width": width, **look}
    view.save_picture(args.picture, view.render(seen, lines, **options))


def _dense(line: np.ndarray) -> np.ndarray:
    """Points of a line, also between the two ends of a segment."""
    if len(line) != 2:
        return line
    return line[0] + np.linspace(0, 1, 5)[:, None] * (line[1] - line[0])


def of_operands(
    operands: Meshes,
    poses: dict[str, Any],
    row: int | None = None,
    marked: Sequence[Any] = ((), ()),
) -> list[view.Body]:
    """The meshes of a query at their poses, or at those of a row of a batch; faces in gold."""
    painted = zip(operands.items(), COLORS, marked, strict=False)
    return [
        view.Body(mesh, color, marked=faces, pose=pose_of(poses.get(f"pose_{name}"), row))
        for (name, (_, mesh)), color, faces in painted
    ]


def of_self_contacts(hits: Contacts, mesh: Mesh) -> Drawing:
    """A mesh with its faces that meet, and the curves in which they do."""
    body = view.Body(mesh, COLORS[0], marked=np.unique(hits.pairs.numpy()))
    return Drawing([body], lines_of(*segments_of(hits)))


def of_contacts(
    hits: Contacts, operands: Meshes, poses: dict[str, Any], row: int | None
) -> Drawing:
    """The meshes and the curves in which they meet; an enclosed mesh that counts is red."""
    bodies = of_operands(operands, poses, row)
    lines = lines_of(*segments_of(hits, row))
    inner = int(np.argmin([np.ptp(body.shape.vertices, axis=0).max() for body in bodies]))
    points = bodies[inner].shape.vertices
    if lines or not (hits or _surrounds(bodies[1 - inner], points)):
        return Drawing(bodies, lines)
    color = view.RED if hits else bodies[inner].color
    bodies[inner] = replace(bodies[inner], color=color, opacity=0.99)  # it does not hide itself
    return Drawing(bodies, [], points)


def _surrounds(body: view.Body, points: np.ndarray) -> bool:
    """Whether points lie in the box of a body, which may hide them."""
    low, high = body.shape.vertices.min(axis=0), body.shape.vertices.max(axis=0)
    return bool((low <= points.min(axis=0)).all() and (points.max(axis=0) <= high).all())


def of_distance(near: Distances, operands: Meshes, poses: dict[str, Any]) -> Drawing:
    """The meshes, at the nearest pose of a batch; the nearest faces and the segment there."""
    rows = near.numpy()
    row = int(np.argmin(rows["distance"])) if rows["distance"].ndim else None
    faces, points = rows["faces"], rows["points"]
    if row is not None:
        faces, points = faces[row], points[row]
    if faces[0] < 0:
        return Drawing(of_operands(operands, poses, row), [])
    return Drawing(of_operands(operands, poses, row, [faces[:1], faces[1:]]), [points])


def of_overlap(found: Overlap, operands: Meshes, poses: dict[str, Any], row: int | None) -> Drawing:
    """The solids at one pose, their curves, the deepest points' ways out, and the separation."""
    bodies = of_operands(operands, poses, row)
    regions: Any = found.regions if row is None else found.regions[row]
    lines = [curve for curves in regions.curves for curve in curves]
    pick = slice(None) if row is None else row
    deepest, way, move = (
        x.numpy()[pick] for x in (found.deepest, found.direction, found.separation)
    )
    depths = [x if row is None else x.numpy()[row] for x in (found.inside_a, found.inside_b)]
    if np.isfinite(deepest).all():
        ends = deepest + np.array(depths)[:, None] * way
        lines += [np.stack(ends) for ends in zip(deepest, ends, strict=True)]
        lines += _arrow(deepest.mean(axis=0), move)
    return Drawing(bodies, lines)


def _arrow(start: np.ndarray, move: np.ndarray) -> list[np.ndarray]:
    """Lines of an arrow."""
    side = np.cross(move, np.eye(3)[np.argmin(np.abs(move))])
    length = np.linalg.norm(side)
    if length == 0.0:
        return []
    stop, side = start + move, 0.1 * np.linalg.norm(move) * side / length
    barbs = [np.stack([stop, stop - 0.2 * move + sign * side]) for sign in (1, -1)]
    return [np.stack([start, stop]), *barbs]


def of_gaps(
    near: Gaps, operands: Meshes, poses: dict[str, Any], row: int | None, points: np.ndarray
) -> Drawing:
    """The meshes at one pose, their faces that are near, and the segments between them."""
    pairs = near.pairs.numpy()
    if near.pose is not None:
        pairs = pairs[near.pose.numpy() == row]
    faces = pairs.T if len(operands) == 2 else [pairs.ravel()]
    few = points[:: 1 + len(points) // MOST_LINES]
    return Drawing(of_operands(operands, poses, row, faces), [*few])


def of_step(step: Step) -> Drawing:
    """A mesh at its first impact; the points, and the faces and edges that touch."""
    body = view.Body((step.vertices(), step.mesh.faces.numpy()), COLORS[0])
    return Drawing([body], [*step.outlines(), *step.points()[:, None]])


def of_scene(scene: Scene, lines: list[np.ndarray]) -> Drawing:
    """The objects of a scene at their poses; boxes of half-spaces only where nothing else is."""
    rows = [row for row in scene.indices.tolist() if scene.mesh(row).face_count]
    rows = [row for row in rows if not is_half_space(scene.mesh(row))] or rows
    painted = ((row, COLORS[row % len(COLORS)]) for row in rows)
    bodies = [view.Body(scene.mesh(row), color, pose=scene.pose_of(row)) for row, color in painted]
    return Drawing(bodies, lines)


def of_survivors(meshes: list[Mesh], culled: Culled) -> Drawing:
    """The objects of a scene, faces that may collide in red."""
    rows = culled.faces.numpy()
    faces = [rows[rows[:, 0] == k, 1] for k in range(len(meshes))]
    return Drawing(
        [
            view.Body(mesh, COLORS[k % len(COLORS)], marked=faces[k], mark=view.RED)
            for k, mesh in enumerate(meshes)
            if mesh.face_count
        ],
        [],
    )


def of_section(field: DistanceField, mesh: Mesh, vertical: str) -> Drawing:
    """Half of a mesh, and a section through the middle of its field."""
    cut, inside, axis = field_drawings.section(field)
    eye = view.Camera.around(mesh.points.numpy(), vertical=vertical).eye
    at = float(cut.shape.vertices[0, axis])
    half = field_drawings.half_of(mesh, axis, at, eye)
    bodies = [view.Body(half, COLORS[0]), cut] if len(half[1]) else [cut]
    return Drawing(bodies, [], inside if len(inside) else cut.shape.vertices)


def of_closest(
    field: DistanceField, mesh: Mesh, poses: np.ndarray | None, rows: dict[str, np.ndarray]
) -> Drawing:
    """The object of a field, a mesh at its closest pose, and the segment between them."""
    row = int(np.argmin(rows["distance"])) if rows["distance"].ndim else None
    points, face = rows["points"], rows["face"]
    if row is not None:
        points, face = points[row], face[row]
    marked = [int(face)] if face >= 0 else []
    body = view.Body(mesh, COLORS[1], marked=marked, pose=pose_of(poses, row))
    shape = field_drawings.surface(field)
    bodies = [view.Body(shape, COLORS[0]), body] if len(shape[1]) else [body]
    return Drawing(bodies, [points] if np.isfinite(points).all() else [])
