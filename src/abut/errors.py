"""The exceptions of abut. All derive from ``AbutError``."""


class AbutError(Exception):
    """Base of all errors raised by abut."""


class MeshError(AbutError, ValueError):
    """A mesh is invalid: bad shape, index or coordinate, or open where it must be closed."""


class PointError(AbutError, ValueError):
    """Points are invalid: bad shape or coordinate."""


class PoseError(AbutError, ValueError):
    """A pose is not a rigid motion, or numbers of poses differ."""


class OptionError(AbutError, ValueError):
    """The value of an option is not among the choices."""


class DeviceError(AbutError, ValueError):
    """Operands are on different devices, or a device does not exist."""


class SceneError(AbutError, ValueError):
    """An object is not in the scene, or does not allow the requested change."""


class FileError(AbutError, OSError):
    """A file cannot be read or written."""


class CapacityError(AbutError, MemoryError):
    """A buffer of fixed size was too small; the message names the size needed."""


class ToolError(AbutError, RuntimeError):
    """A program that abut runs is missing or has failed."""
