"""The graphics driver of this thread: an off-screen OpenGL context and its capabilities."""

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from abut.errors import ToolError

LEAST_VERSION = 430  # storage buffers and image atomics
MOST_SIDE = 8192  # pixels of one framebuffer: a quarter of a gigabyte
CONSERVATIVE_NV, CONSERVATIVE_INTEL = 0x9346, 0x83FE  # arguments of glEnable
EGL_DRAW, EGL_READ = 0x3059, 0x305A
INSTALL = (
    "install the extra (pip install 'abut[gl]') and, where there is no GPU driver, Mesa "
    "(apt install libegl1 libegl-mesa0 libgl1-mesa-dri)"
)

LIBRARIES = {"libegl": ("libEGL.so.1", "libEGL.so"), "libgl": ("libOpenGL.so.0", "libGL.so.1")}

_per_thread = threading.local()


@dataclass
class Driver:
    """An OpenGL context, its capabilities and its caches.

    Attributes:
        context: ModernGL's context.
        use_interlock: Order whole passes in the shader where the driver supports it.
        use_conservative: Rasterise conservatively where the driver supports it.
    """

    context: Any
    use_interlock: bool = True
    use_conservative: bool = True
    targets: dict[Any, Any] = field(default_factory=dict)
    programs: dict[Any, Any] = field(default_factory=dict)
    queries: list[Any] = field(default_factory=list)

    @contextmanager
    def current(self) -> Iterator[Any]:
        """Make the context current for the block; restores the previous one afterwards."""
        before = _current()
        try:
            with self.context:
                yield self.context
                self.context.gc()  # deletes unused objects; needs this context to be current
        finally:
            _restore(before)

    @cached_property
    def name(self) -> str:
        """Name and version that the driver reports."""
        info = self.context.info
        return f"{info['GL_RENDERER']}, OpenGL {info['GL_VERSION']}"

    @cached_property
    def most_side(self) -> int:
        """The widest framebuffer to use [pixels]."""
        return min(MOST_SIDE, *self.context.info["GL_MAX_VIEWPORT_DIMS"])

    @cached_property
    def subpixel_bits(self) -> int:
        """Bits of window coordinates below the pixel."""
        return int(self.context.info["GL_SUBPIXEL_BITS"])

    @property
    def interlock(self) -> str | None:
        """The extension that orders the fragments of a pixel by drawing order; None without one."""
        names = ("GL_ARB_fragment_shader_interlock", "GL_NV_fragment_shader_interlock")
        found = (name for name in names if name in self.context.extensions)
        return next(found, None) if self.use_interlock else None

    @property
    def conservative(self) -> int | None:
        """Argument of glEnable for conservative rasterisation; None where it is not supported."""
        ways = {
            "GL_NV_conservative_raster": CONSERVATIVE_NV,
            "GL_INTEL_conservative_rasterization": CONSERVATIVE_INTEL,
        }
        found = (way for name, way in ways.items() if name in self.context.extensions)
        return next(found, None) if self.use_conservative else None


def driver() -> Driver:
    """This thread's driver, created on first use.

    Raises:
        ToolError: There is no OpenGL here; the message says what to install.
    """
    held = getattr(_per_thread, "driver", None)
    if held is None:
        held = _per_thread.driver = _create()
    return held


def unavailable() -> str | None:
    """The reason why OpenGL cannot be used here; None where it can."""
    try:
        driver()
    except ToolError as error:
        return str(error)
    return None


def _create() -> Driver:
    try:
        import moderngl
    except ImportError:
        raise ToolError(f"backend='gl' needs ModernGL, which is missing; {INSTALL}.") from None
    before = _current()
    context = _context(moderngl)
    context.gc_mode = "context_gc"
    _restore(before)
    return Driver(context)


def _context(moderngl: Any) -> Any:
    """Create an off-screen context and make it current."""
    libraries = {kind: _loadable(names) for kind, names in LIBRARIES.items()}
    try:
        return moderngl.create_context(
            standalone=True, backend="egl", require=LEAST_VERSION, **libraries
        )
    except Exception as error:
        why = " ".join(str(error).split())
        raise ToolError(
            f"backend='gl' found no OpenGL {LEAST_VERSION / 100} through EGL ({why}); {INSTALL}."
        ) from error


def _loadable(names: Sequence[str]) -> str:
    """The first library that can be loaded; the first name where none can."""
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    return names[0]


@cache
def _egl() -> Any:
    """The EGL library, for the current context; None where there is no EGL."""
    try:
        egl = ctypes.CDLL(_loadable(LIBRARIES["libegl"]))
    except OSError:
        return None
    for name in ("eglGetCurrentDisplay", "eglGetCurrentSurface", "eglGetCurrentContext"):
        getattr(egl, name).restype = ctypes.c_void_p
    egl.eglMakeCurrent.argtypes = [ctypes.c_void_p] * 4
    return egl


def _current() -> tuple[Any, ...]:
    """Current display, surfaces and context of this thread; None where there is none."""
    egl = _egl()
    if egl is None:
        return None, None, None, None
    surfaces = (egl.eglGetCurrentSurface(kind) for kind in (EGL_DRAW, EGL_READ))
    return egl.eglGetCurrentDisplay(), *surfaces, egl.eglGetCurrentContext()


def _restore(before: tuple[Any, ...]) -> None:
    if before[-1]:
        _egl().eglMakeCurrent(*before)
