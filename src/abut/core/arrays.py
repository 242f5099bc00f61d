"""Arrays in: NumPy, Warp, Torch, JAX and lists; read where they are, copied where they are kept."""

from typing import Any

import numpy as np
import warp as wp

from abut.errors import DeviceError


def to_plain(data: Any) -> Any:
    """``data`` as a NumPy array or as a Warp array of scalars, sharing memory where possible."""
    if isinstance(data, np.ndarray):
        return data if data.dtype.isnative else data.astype(data.dtype.newbyteorder("="))
    if is_foreign(data):
        data = _shared(data)
    if isinstance(data, wp.array):
        scalar = getattr(data.dtype, "_wp_scalar_type_", data.dtype)
        return data if scalar is data.dtype else data.contiguous().view(scalar)
    try:
        return np.asarray(data)
    except ValueError:  # rows of different lengths: their common shape will be refused
        return np.asarray(data, dtype=object)


def is_foreign(data: Any) -> bool:
    """Whether it is an array of another library, which may lie on a device."""
    return not isinstance(data, np.ndarray | wp.array) and hasattr(data, "__dlpack__")


def _shared(data: Any) -> wp.array:
    """The same memory as a Warp array; what its library has yet to write comes first."""
    wp.init()  # the first array of a process may be such a one
    try:
        return wp.from_dlpack(data.detach() if getattr(data, "requires_grad", False) else data)
    except Exception as error:
        kind = f"{type(data).__module__}.{type(data).__name__}"
        raise DeviceError(f"this {kind} cannot be read where it lies: {error}.") from error


def wait_for_readers(data: Any, device: wp.Device) -> None:
    """Wait for those who read an array of another library: it may be overwritten from now on."""
    if device.is_cuda and is_foreign(data):
        wp.synchronize_stream(device)


def as_vec3_array(data: Any, dtype: Any, device: wp.Device) -> wp.array:
    """A checked (n, 3) array as a contiguous Warp array of 3-vectors on ``device``.

    It may be the caller's memory: not to be kept when the call returns.
    """
    if isinstance(data, np.ndarray):
        return wp.array(np.ascontiguousarray(data), dtype=dtype, device=device, copy=device.is_cuda)
    return data.contiguous().to(device).view(dtype)


def copy_vec3_array(data: Any, dtype: Any, device: wp.Device) -> wp.array:
    """``as_vec3_array`` in memory that the caller does not have, to be kept."""
    if isinstance(data, np.ndarray):
        return wp.array(np.ascontiguousarray(data), dtype=dtype, device=device)
    rows = as_vec3_array(data, dtype, device)
    return wp.clone(rows) if rows.ptr == data.ptr else rows


def scalar_dtype(data: Any) -> np.dtype:
    """The NumPy dtype of the scalars of a plain array."""
    return data.dtype if isinstance(data, np.ndarray) else np.dtype(wp.dtype_to_numpy(data.dtype))
