"""Values of the joints of a robot: by name, as a named state, or as arrays; and their limits."""

import difflib
from collections.abc import Mapping
from typing import Any

import numpy as np

from abut.core.arrays import to_plain
from abut.errors import OptionError, SceneError

LIMIT_CHOICES = ("ignore", "warn", "refuse")


def joint_rows(
    given: Any,
    joints: list[str],
    rest: np.ndarray,
    states: Mapping[str, Mapping[str, float]],
    wide: Mapping[str, list[int]],
) -> np.ndarray:
    """(k,) or (B, k) float64 of values of the joints, on the host.

    Args:
        given: An array; a dict of numbers, or arrays (B,), by joint, where others are at rest; or
            the name of a state. A joint of m values may have all of them, (m,) or (B, m).
        joints: Names of the joints.
        rest: (k,) their values at rest.
        states: Named states: values by joint.
        wide: Columns of joints of several values.

    Raises:
        SceneError: The shape is another one, or there is no such joint or state.
    """
    if isinstance(given, str):
        given = states[known_name(given, states, "state")]
    if isinstance(given, Mapping):
        return _named_rows(_split(given, joints, wide), joints, rest)
    plain = to_plain(given)
    values = np.asarray(plain if isinstance(plain, np.ndarray) else plain.numpy(), np.float64)
    if values.ndim not in (1, 2) or values.shape[-1] != len(joints):
        raise SceneError(
            f"the robot has {len(joints)} joints that move, so values must have shape "
            f"({len(joints)},) or (B, {len(joints)}), not {values.shape}."
        )
    return values


def _split(
    given: Mapping[str, Any], joints: list[str], wide: Mapping[str, list[int]]
) -> dict[str, Any]:
    """Values by the name of each; those of joints of several values are taken apart."""
    out: dict[str, Any] = {}
    for name, value in given.items():
        columns = wide.get(name)
        if columns is None:
            known_name(name, [*joints, *wide], "joint")
            out[name] = value
            continue
        rows = np.asarray(value, np.float64)
        if rows.ndim not in (1, 2) or rows.shape[-1] != len(columns):
            names = " ".join(joints[k].rpartition("_")[2] for k in columns)
            raise SceneError(
                f"joint {name} has {len(columns)} values, {names}; they have shape {rows.shape}."
            )
        out |= {joints[k]: rows[..., i] for i, k in enumerate(columns)}
    return out


def _named_rows(given: Mapping[str, Any], joints: list[str], rest: np.ndarray) -> np.ndarray:
    columns = {name: k for k, name in enumerate(joints)}
    held = {columns[name]: value for name, value in given.items()}
    try:
        arrays = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in held.values()), 0.0)
    except ValueError as error:
        raise SceneError(f"values of joints do not go together: {error}.") from None
    shape = arrays[-1].shape
    if len(shape) > 1:
        raise SceneError(f"values of a joint must be a number or have shape (B,), not {shape}.")
    rows = np.broadcast_to(rest, (*shape, len(joints))).copy()
    for column, values in zip(held, arrays, strict=False):
        rows[..., column] = values
    return rows


def known_name(name: Any, names: Any, kind: str) -> Any:
    """A name that is among ``names``; another one is refused with the nearest."""
    if name in names:
        return name
    near = difflib.get_close_matches(str(name), [str(x) for x in names], 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names) or 'none'}."
    raise SceneError(f"the robot has no {kind} {name!r}{hint}")


def require_finite(values: np.ndarray, joints: list[str]) -> None:
    """Refuse values (k,) or (B, k) that are no finite numbers, naming the first joint.

    Raises:
        SceneError: A value is NaN or infinite.
    """
    finite = np.isfinite(values)
    if not finite.all():
        bad = np.argwhere(~finite)[0]
        row = f" of configuration {bad[0]}" if values.ndim == 2 else ""
        raise SceneError(
            f"joint {joints[bad[-1]]}{row} is {values[tuple(bad)]}; values must be finite."
        )


def check_limits(
    values: np.ndarray, outside: np.ndarray, joints: list[str], limits: np.ndarray, how: str
) -> None:
    """Warn of, or refuse, values (k,) or (B, k) outside limits (k, 2), naming the first joint.

    Raises:
        SceneError: ``how`` is ``refuse``, and a value is outside.
    """
    if how not in LIMIT_CHOICES:
        raise OptionError(f"limits must be one of {LIMIT_CHOICES}, not {how!r}.")
    bad = np.argwhere(outside)
    if how == "ignore" or not len(bad):
        return
    column = bad[0][-1]
    row = f" of configuration {bad[0][0]}" if values.ndim == 2 else ""
    text = (
        f"joint {joints[column]}{row} is {values[tuple(bad[0])]:g}, outside its limits "
        f"{limits[column, 0]:g} to {limits[column, 1]:g}."
    )
    if how == "refuse":
        raise SceneError(text)
    import warnings

    warnings.warn(text, stacklevel=3)
