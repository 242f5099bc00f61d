"""Array inputs: NumPy, Warp, Torch, JAX and lists."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.kernel_cache import init_warp
from abut.errors import DeviceError


def to_plain(data: Any) -> Any:
    """Return ``data`` as a NumPy array or a Warp array of scalars, sharing memory if possible."""
    if isinstance(data, np.ndarray):
        return data if data.dtype.isnative else data.astype(data.dtype.newbyteorder("="))
    if is_foreign(data):
        data = _shared(data)
    if isinstance(data, wp.array):
        scalar = getattr(data.dtype, "_wp_scalar_type_", data.dtype)
        return data if scalar is data.dtype else data.contiguous().view(scalar)
    try:
        return np.asarray(data)
    except ValueError:  # rows of different lengths; the shape will be refused
        return np.asarray(data, dtype=object)
    except (RuntimeError, TypeError) as error:  # tensors in a list, whose library refuses
        raise DeviceError(f"this cannot be read as an array: {error}") from error


def is_foreign(data: Any) -> bool:
    """Return whether ``data`` is an array of another library, possibly on a device."""
    return not isinstance(data, np.ndarray | wp.array) and hasattr(data, "__dlpack__")


def _shared(data: Any) -> wp.array:
    """Return a Warp array of the same memory, ordered after pending writes of its library."""
    if getattr(data, "requires_grad", False):
        raise DeviceError("this tensor requires a gradient, which would be lost; give t.detach().")
    if type(data).__name__.endswith("Tracer"):
        raise DeviceError(
            "JAX is tracing this array (jit, grad or vmap), so it has no values to read, and a "
            "gradient would be lost; call abut outside, or by jax.pure_callback with "
            "jax.lax.stop_gradient(x)."
        )
    init_warp()  # in case this is the first array of the process
    try:
        return wp.from_dlpack(data)
    except Exception as error:
        kind = f"{type(data).__module__}.{type(data).__name__}"
        raise DeviceError(f"this {kind} cannot be read where it lies: {error}.") from error


def wait_for_readers(data: Any, device: wp.Device) -> None:
    """Wait for launches that read an array of another library, which may overwrite it next."""
    if device.is_cuda and is_foreign(data):
        wp.synchronize_stream(device)


def as_vec3_array(data: Any, dtype: Any, device: wp.Device) -> wp.array:
    """Return a checked (n, 3) array as a contiguous Warp array of 3-vectors on ``device``.

    It may share the caller's memory, so it must not outlive the call.
    """
    if isinstance(data, np.ndarray):
        return wp.array(np.ascontiguousarray(data), dtype=dtype, device=device, copy=device.is_cuda)
    return data.contiguous().to(device).view(dtype)


def copy_vec3_array(data: Any, dtype: Any, device: wp.Device) -> wp.array:
    """Return a checked (n, 3) array as 3-vectors in memory of its own."""
    if isinstance(data, np.ndarray):
        return wp.array(np.ascontiguousarray(data), dtype=dtype, device=device)
    rows = as_vec3_array(data, dtype, device)
    return wp.clone(rows) if rows.ptr == data.ptr else rows


def scalar_dtype(data: Any) -> np.dtype:
    """Return the NumPy dtype of the scalars of a plain array."""
    return data.dtype if isinstance(data, np.ndarray) else np.dtype(wp.dtype_to_numpy(data.dtype))


def extended(rows: np.ndarray, count: int) -> np.ndarray:
    """Return an array of ``count`` rows that begins with ``rows``; the rest is zero.

    Both are views of one buffer, which doubles when it is full: rows are seldom copied.
    """
    buffer = rows if rows.base is None else rows.base
    assert isinstance(buffer, np.ndarray)
    if len(buffer) < count:
        buffer = np.zeros(max(count, 2 * len(buffer)), rows.dtype)
        buffer[: len(rows)] = rows
    return buffer[:count]
