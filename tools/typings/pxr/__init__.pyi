# Type checkers treat pxr (usd-core) as untyped: it is a native module without annotations.
from typing import Any

def __getattr__(name: str) -> Any: ...
