"""Pickles: answers as plain arrays, and back on their device, or on the CPU where it is missing."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.errors import AbutError, SceneError


def device_or_cpu(alias: str) -> wp.Device:
    """A device by its name; the CPU on a machine that has none of that name."""
    known = alias in [device.alias for device in wp.get_devices()]
    return wp.get_device(alias if known else "cpu")


@dataclass(frozen=True)
class _Rows:
    """A Warp array in a pickle."""

    numbers: np.ndarray
    dtype: Any
    device: str


@dataclass(frozen=True)
class _Place:
    """A device in a pickle."""

    alias: str


def packed(value: Any) -> Any:
    """A value for a pickle."""
    if isinstance(value, wp.array):
        return _Rows(value.numpy(), value.dtype, value.device.alias)
    if isinstance(value, wp.Device):
        return _Place(value.alias)
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(packed(part) for part in value)
    return left_behind if callable(value) else value


def unpacked(value: Any) -> Any:
    """What was packed."""
    if isinstance(value, _Rows):
        return wp.array(value.numbers, dtype=value.dtype, device=device_or_cpu(value.device))
    if isinstance(value, _Place):
        return device_or_cpu(value.alias)
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(unpacked(part) for part in value)
    return value


def left_behind() -> Any:
    """In place of what computes the rest of an answer, where it had nothing to compute it from."""
    raise AbutError("the scene had deformed when this was pickled; ask for it before.")


class PicklableResult:
    """A frozen dataclass of rows. In a pickle it has all that it computes when first asked."""

    def __getstate__(self) -> dict[str, Any]:
        """Rows as plain arrays, and the names of their devices."""
        later = {n for c in type(self).__mro__ for n, v in vars(c).items() if _is_cached(v)}
        for name in sorted(later):
            try:
                getattr(self, name)
            except SceneError:  # it says so to those who ask
                pass
        return {name: packed(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Go back to the device they were on, or to the CPU where that is missing."""
        vars(self).update({name: unpacked(value) for name, value in state.items()})


def _is_cached(member: Any) -> bool:
    return isinstance(member, cached_property)
