# Type checkers treat Warp as untyped. The annotations of Warp 1.19 do not fit its use: the default
# `dtype=float` rejects every other dtype, a decorated kernel is not a `Kernel`, a struct is not a
# class, an element of an array may be an `indexedarray`, and `array.device` may be None.
from typing import Any

def __getattr__(name: str) -> Any: ...
