# Type checkers treat OMPL as untyped: it is optional, and abut has a module of the same name.
from typing import Any

def __getattr__(name: str) -> Any: ...
