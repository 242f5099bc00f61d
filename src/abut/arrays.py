"""Arrays in: NumPy, Warp, Torch, JAX and lists, without a copy where dtype and device allow."""

from typing import Any

import numpy as np
import warp as wp


def to_plain(data: Any) -> Any:
    """``data`` as a NumPy array or as a Warp array of scalars, sharing memory where possible."""
    if isinstance(data, np.ndarray):
        return data if data.dtype.isnative else data.astype(data.dtype.newbyteorder("="))
    if not isinstance(data, wp.array) and hasattr(data, "__dlpack__"):
        data = wp.from_dlpack(data.detach() if getattr(data, "requires_grad", False) else data)
    if isinstance(data, wp.array):
        scalar = getattr(data.dtype, "_wp_scalar_type_", data.dtype)
        return data if scalar is data.dtype else data.contiguous().view(scalar)
    try:
        return np.asarray(data)
    except ValueError:  # rows of different lengths: their common shape will be refused
        return np.asarray(data, dtype=object)


def to_rows(data: Any, dtype: Any, device: wp.Device) -> wp.array:
    """A checked (n, 3) array as a contiguous Warp array of 3-vectors on ``device``."""
    if isinstance(data, np.ndarray):
        return wp.array(np.ascontiguousarray(data), dtype=dtype, device=device, copy=device.is_cuda)
    return data.contiguous().to(device).view(dtype)


def scalar_dtype(data: Any) -> np.dtype:
    """The NumPy dtype of the scalars of a plain array."""
    return data.dtype if isinstance(data, np.ndarray) else np.dtype(wp.dtype_to_numpy(data.dtype))
