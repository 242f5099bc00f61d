"""Every exception abut raises. All derive from ``AbutError``."""


class AbutError(Exception):
    """Base of all errors raised by abut."""


class MeshError(AbutError, ValueError):
    """A mesh that cannot be used: bad shape, index or coordinate, or open where it must not be."""


class PointError(AbutError, ValueError):
    """Points that cannot be used: bad shape or coordinate."""


class PoseError(AbutError, ValueError):
    """A pose that is not a rigid motion, or poses of different number."""


class OptionError(AbutError, ValueError):
    """An option with a value that is not among the choices."""


class DeviceError(AbutError, ValueError):
    """Operands on different devices, or a device that is not there."""


class SceneError(AbutError, ValueError):
    """An object that is not in the scene, or that cannot be what it was asked to become."""


class FileError(AbutError, OSError):
    """A file that cannot be read as a mesh."""


class CapacityError(AbutError, MemoryError):
    """A buffer of fixed size was too small; the message names the size needed."""


class ToolError(AbutError, RuntimeError):
    """A program that abut calls is missing or has failed."""
