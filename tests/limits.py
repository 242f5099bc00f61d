"""Limits of a process: the size of files."""

import resource
from contextlib import contextmanager


@contextmanager
def files_limited_to(size):
    """No file grows beyond ``size`` bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
