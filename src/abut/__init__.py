"""Exact proximity queries between triangle meshes, on CPU and CUDA.

Public names are listed in ``__init__.pyi`` and imported when they are first used: declaring every
kernel of abut takes a second, and most programs need a few.
"""

import lazy_loader

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name not in __all__ and not name.startswith("_"):
        from abut.core.unknown_options import unknown_name

        raise AttributeError(unknown_name(name, __all__))
    return _public(name)
