"""Objects that a robot holds: they move with a link until they are detached."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abut.errors import SceneError
from abut.scene.inputs import given_poses
from abut.scene.robots.joint_values import known_name

if TYPE_CHECKING:
    from abut.scene.robots.robot import Robot


class Attachment(NamedTuple):
    """State of an object before it was attached.

    Attributes:
        link: The link that carries it.
        filters: ``static``, ``group`` and ``mask`` before.
        pairs: Indices of objects that it has not been tested against since.
    """

    link: str
    filters: dict[str, int]
    pairs: list[int]


def attach_objects(
    robot: "Robot", handles: Any, link: str, pose: Any, at: Any, touch_links: Iterable[str]
) -> None:
    """Attach objects to a link, as ``Robot.attach`` does."""
    scene, state, kinematics = robot.scene, robot._state, robot.kinematics
    with scene.lock:
        rows = scene._objects.rows(handles)
        index = robot.links.index(known_name(link, robot.links, "link"))
        if np.isin(rows, state.objects).any():
            raise SceneError("the robot carries one of these objects already.")
        touched = [robot.links.index(known_name(x, robot.links, "link")) for x in touch_links]
        rigid = np.flatnonzero(kinematics.rigid_groups() == kinematics.rigid_groups()[index])
        values = kinematics.rows_of(state.at if at is None else at)
        kinematics.require(values)
        if values.ndim != 1:
            raise SceneError("objects are attached at one configuration, not at a batch.")
        above = kinematics.link_poses(values)[index]
        if pose is None:
            local = np.linalg.inv(above) @ scene._objects.poses.numpy()[rows]
        else:
            local = given_poses(pose)
            local = np.broadcast_to(local, (len(rows), 4, 4)) if len(local) == 1 else local
            scene.move(rows, above @ given_poses(local, len(rows)))
        partners = [row for k in {*rigid.tolist(), *touched} for row in robot.objects_of(k)]
        for row in rows.tolist():
            _hold(robot, row, link, [*partners, *rows.tolist()])
        like = partners[0] if partners else None
        table = scene._objects
        group, mask = (1, -1) if like is None else (int(table.group[like]), int(table.mask[like]))
        scene.set(rows, static=False, group=group, mask=mask)
        state.carry(rows, index, local)


def _hold(robot: "Robot", row: int, link: str, partners: list[int]) -> None:
    """Remember what an object was, and ignore its pairs with partners."""
    table = robot.scene._objects
    known = {*table.ignored.partners(row), row}
    fresh = [other for other in partners if other not in known]
    filters = {name: int(getattr(table, name)[row]) for name in ("static", "group", "mask")}
    robot._state.attached[row] = Attachment(link, filters, fresh)
    if fresh:
        robot.scene.ignore(row, fresh)


def detach_objects(robot: "Robot", handles: Any) -> None:
    """Leave objects where they are, as ``Robot.detach`` does."""
    scene, state = robot.scene, robot._state
    with scene.lock:
        rows = scene._objects.rows(handles)
        loose = [row for row in rows.tolist() if row not in state.attached]
        if loose:
            raise SceneError(f"object {loose[0]} is not attached to the robot.")
        for row in rows.tolist():
            held = state.attached[row]
            there = [other for other in held.pairs if other in scene]
            if there:
                scene.allow(row, there)
            scene.set(row, **{**held.filters, "static": bool(held.filters["static"])})
        state.drop(rows)
