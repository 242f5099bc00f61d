"""Exact proximity queries between triangle meshes, on CPU and CUDA.

Public names are listed in ``__init__.pyi`` and imported when they are first used: declaring every
kernel of abut takes a second, and most programs need a few.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
