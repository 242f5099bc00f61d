"""Pickling of results: plain arrays, restored on their device, or on the CPU if it is missing."""

from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import warp as wp

from abut.errors import AbutError, SceneError


def device_or_cpu(alias: str) -> wp.Device:
    """Return a device by its alias; the CPU if there is none of that alias."""
    known = alias in [device.alias for device in wp.get_devices()]
    return wp.get_device(alias if known else "cpu")


@dataclass(frozen=True)
class _PickledArray:
    """A Warp array in a pickle."""

    numbers: np.ndarray
    dtype: Any
    device: str


@dataclass(frozen=True)
class _PickledDevice:
    """A device in a pickle."""

    alias: str


def _packed(value: Any) -> Any:
    """Return a value that can be pickled."""
    if isinstance(value, wp.array):
        return _PickledArray(value.numpy(), value.dtype, value.device.alias)
    if isinstance(value, wp.Device):
        return _PickledDevice(value.alias)
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_packed(part) for part in value)
    return _not_pickled if callable(value) else value


def _unpacked(value: Any) -> Any:
    """Return the value that was packed."""
    if isinstance(value, _PickledArray):
        return wp.array(value.numbers, dtype=value.dtype, device=device_or_cpu(value.device))
    if isinstance(value, _PickledDevice):
        return device_or_cpu(value.alias)
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_unpacked(part) for part in value)
    return value


def _not_pickled(*_: Any) -> Any:
    """Raise; it replaces a function that computes a field on demand and cannot be pickled."""
    raise AbutError("the scene had deformed when this was pickled; ask for it before.")


def _brief(value: Any) -> str:
    if isinstance(value, wp.array):
        return f"{np.dtype(wp.dtype_to_numpy(value.dtype)).name} {value.shape}"
    return repr(str(value)) if isinstance(value, Enum) else repr(value)


class PicklableResult:
    """A frozen dataclass of rows. Pickling computes its cached properties first.

    Attributes:
        row_name: Plural of what a row is, for results whose length is shown.
        shown: Properties that are shown, beside the fields.
    """

    row_name: ClassVar[str] = ""
    shown: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        """The number of rows and the fields; arrays as type and shape."""
        count = [f"{len(self):,} {self.row_name}"] if self.row_name else []  # type: ignore[arg-type]
        names = [f.name for f in fields(self) if f.repr]  # type: ignore[arg-type]
        values = [(name, getattr(self, name)) for name in (*names, *self.shown)]
        told = [f"{name}={_brief(value)}" for name, value in values if value is not None]
        return f"{type(self).__name__}({', '.join(count + told)})"

    def __getstate__(self) -> dict[str, Any]:
        """Return the rows as plain arrays, with the aliases of their devices."""
        members = {name: member for c in type(self).__mro__ for name, member in vars(c).items()}
        for name in sorted(n for n, m in members.items() if isinstance(m, cached_property)):
            try:
                getattr(self, name)
            except SceneError:  # raised again when the property is read
                pass
        return {name: _packed(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the rows on their device, or on the CPU if it is missing."""
        vars(self).update({name: _unpacked(value) for name, value in state.items()})
