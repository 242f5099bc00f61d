"""Launches on the emulated device: threads are fibers, and the arguments are those of the call."""

import ctypes
import os
import subprocess
from copy import copy
from pathlib import Path

from simt.device import Stream

HERE = Path(__file__).parent
SEED = int(os.environ.get("EMULATE_SEED", "1"))
RESIDENT = 1024  # threads that run at once
LAUNCHED: set = set()  # (module, threads of a block) that were asked for


def load_warps():
    """Compile and load the fibers."""
    library = Path(os.environ["EMULATE_CACHE"], f"warps-{os.getpid()}.so")
    source = str(HERE / "warps.c")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), source], check=True)
    warps = ctypes.CDLL(str(library))
    library.unlink()
    warps.simt_launch.restype = ctypes.c_char_p
    warps.simt_launch.argtypes = [
        *[ctypes.c_void_p] * 3, *[ctypes.c_size_t] * 3, ctypes.c_int, ctypes.c_uint64
    ]  # fmt: skip
    if not warps.simt_publish():
        raise RuntimeError("the address of the emulation is taken")
    return warps


def emulate_launches(device) -> None:
    """Let launches on the device wait in the stream and run as fibers."""
    import warp as wp
    from warp._src import context

    warps, plain, count = load_warps(), context.launch, [0]

    def prepared(command):
        """A launch with its arguments as they are now."""
        fields = [(f"argument_{i}", type(p)) for i, p in enumerate(command.params[1:])]
        kind = type("Arguments", (ctypes.Structure,), {"_fields_": fields})
        values, bounds = kind(*command.params[1:]), copy(command.params[0])
        kept = list(command.fwd_args or []), command

        def run():
            count[0] += 1
            message = warps.simt_launch(
                ctypes.cast(command.hooks.forward, ctypes.c_void_p), ctypes.addressof(bounds),
                ctypes.addressof(values), bounds.size, command.simt_block, RESIDENT, int(SEED > 0),
                SEED + count[0],
            )  # fmt: skip
            if message:
                name = f"{command.kernel.func.__module__}.{command.kernel.key}"
                raise RuntimeError(f"{name}: {message.decode()} {kept and ''}")

        return run

    def launch(kernel, dim, inputs=(), outputs=(), *args, **options):
        target = wp.get_device(options.get("device"))
        if target is not device:
            return plain(kernel, dim, inputs, outputs, *args, **options)
        if context.runtime.tape is not None and options.get("record_tape", True):
            Stream.wait()
            return plain(kernel, dim, inputs, outputs, *args, **options)
        record, block = options.pop("record_cmd", False), options.pop("block_dim", None)
        options.pop("record_tape", None)
        command = plain(kernel, dim, inputs, outputs, *args, record_cmd=True, **options)
        if command is None:  # no threads
            return None
        command.simt_block = block or kernel.module.options["block_dim"]
        LAUNCHED.add((kernel.module, command.simt_block))
        return command if record else Stream.add(prepared(command))

    launch_plain = context.Launch.launch

    def launch_command(self, stream=None):
        if self.device is not device:
            return launch_plain(self, stream)
        return Stream.add(prepared(self))

    wp.launch = context.launch = launch
    context.Launch.launch = launch_command
