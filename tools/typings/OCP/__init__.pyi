# Type checkers treat OCP as untyped: it is a native module without annotations in its package.
from typing import Any

def __getattr__(name: str) -> Any: ...
