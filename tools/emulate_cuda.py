"""Run tests on an emulated CUDA device: ``python tools/emulate_cuda.py [pytest arguments]``.

The threads of a launch run on the CPU as fibers (``tools/simt/warps.c``), in a random order, with the
native code that kernels have for CUDA; lanes that do not all reach ``__shfl_sync`` are an error. Host
code of abut sees a device "cuda:0" whose launches and copies wait until the host synchronises, as
late as a stream allows. Graphs are lists of such launches. ``EMULATE_SEED`` chooses the order,
``EMULATE_THREADS`` the threads of launches whose count the host does not know.

It is no proof: fibers change only where lanes meet or atomics are, memory is in order, one stream
holds all work, and times mean nothing.
"""

import ctypes
import os
import re
import subprocess
import sys
import tempfile
import threading
from copy import copy
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
SIMT = Path(__file__).parent / "simt"
SEED = int(os.environ.get("EMULATE_SEED", "1"))
THREADS = int(os.environ.get("EMULATE_THREADS", "256"))
RESIDENT = 1024  # threads that run at once
FIXED_GRIDS = (
    "abut.core.launch.CUDA_THREADS",
    "abut.core.team.TEAM_GRID",
    "abut.core.point_check.CUDA_LANES",
    "abut.bvh.refit.CUDA_LANES",
    "abut.narrow.exact.EXACT_THREADS",
    "abut.query.team_passes.CUDA_TEAMS",
    "abut.query.contact_plan.UNPACKING_THREADS",
    "abut.query.contact_stages.LEAF_WALK_THREADS",
    "abut.query.distance_stages.CUDA_WALKS",
    "abut.sdf.draw_batches.THREADS",
)
LAUNCHED: set = set()  # (module, threads of a block) that were asked for


# Native code --------------------------------------------------------------------------------------

ASSEMBLY = re.compile(r"asm volatile\((.*?)\);", re.DOTALL)
OPERAND = re.compile(r'"=?[rlf]"\(((?:[^()]|\([^()]*\))*)\)')
INSTRUCTIONS = [
    (r"mov\.u32 %0, %%laneid;", "{0} = simt::lane();"),
    (r"ld\.shared\.v2\.s32 .*", "{0} = ((int*)({2}))[0]; {1} = ((int*)({2}))[1];"),
    (r"ld\.shared\.s32 %0, \[%1(.*)\];", "{0} = *(int*)(({1}){offset});"),
    (r"ld\.shared\.f32 %0, \[%1(.*)\];", "{0} = *(float*)(({1}){offset});"),
    (r"st\.shared\.v2\.s32 .*", "((int*)({0}))[0] = {1}; ((int*)({0}))[1] = {2};"),
    (r"st\.shared\.s32 \[%0(.*)\], %1;", "*(int*)(({0}){offset}) = {1};"),
    (r"st\.shared\.f32 \[%0(.*)\], %1;", "*(float*)(({0}){offset}) = {1};"),
    (r"ld\.relaxed\.gpu\.global\.s64 .*", "{0} = *(long long*)({1});"),
    (r"atom\.acq_rel\.gpu\.global\.exch\.b32 .*", "{0} = atomicExch({1}, {2});"),
    (r"atom\.acq_rel\.gpu\.global\.add\.u32 .*", "{0} = atomicAdd({1}, 1);"),
]


def translate_assembly(found: re.Match) -> str:
    """Return C++ for one statement of PTX."""
    text = re.match(r'\s*"([^"]*)"', found[1])[1]
    operands = OPERAND.findall(found[1])
    for pattern, code in INSTRUCTIONS:
        match = re.fullmatch(pattern, text)
        if match:
            offset = match[1] if match.groups() else ""
            return code.format(*operands, offset=offset)
    raise NotImplementedError(f"no translation of {text!r}")


def translate_shared(found: re.Match) -> str:
    """Return C++ for an array in the shared memory of a block."""
    kind, name, size = found[1], found[2], found[3]
    return (
        f"static char key; typedef {kind} Shared{size}; "
        f"Shared& {name} = *(Shared*)simt::shared(&key, sizeof(Shared));"
    )


def translate(snippet: str) -> str:
    """Return native code that follows its CUDA branch within a fiber."""
    if "__CUDA_ARCH__" not in snippet:
        return snippet
    cuda = snippet.replace("!defined(__CUDA_ARCH__)", "0").replace("defined(__CUDA_ARCH__)", "1")
    cuda = ASSEMBLY.sub(translate_assembly, cuda.replace("__CUDA_ARCH__", "900"))
    cuda = re.sub(r"__shared__ (\w+) (\w+)((?:\[[^\]]+\])+);", translate_shared, cuda)
    cuda = re.sub(r"\(unsigned\)(stack|triples|samples)\b", r"(uint64_t)\1", cuda)
    cuda = cuda.replace("const unsigned at = (uint64_t)", "const uint64_t at = (uint64_t)")
    undefine = "".join(f"#undef {name}\n" for name in re.findall(r"#define (\w+)", snippet))
    fiber = f"if (simt::inside()) {{\nusing wp::max;\nusing wp::min;\n{cuda}\n{undefine}}}"
    return f"{fiber} else {{\n{snippet}\n{undefine}}}\n"


def emulate_native_code() -> None:
    """Make Warp's CPU code hold both branches, and its launches one task of a fiber."""
    import warp as wp
    from warp._src import codegen, context

    functions, snippet_code = context.ModuleBuilder._codegen_functions, codegen.codegen_snippet
    for_cpu = [False]  # codes for both are made from the same text, so hashes are those of CUDA

    def codegen_functions(self, functions_, device, **options):
        for_cpu[0] = device == "cpu"
        return functions(self, functions_, device, **options)

    def codegen_snippet(adj, *, snippet, **options):
        return snippet_code(adj, snippet=translate(snippet) if for_cpu[0] else snippet, **options)

    context.ModuleBuilder._codegen_functions = codegen_functions
    codegen.codegen_snippet = codegen_snippet
    wp.config.kernel_cache_dir = os.environ["EMULATE_CACHE"]
    header = SIMT.joinpath("intrinsics.h").read_text().replace("{", "{{").replace("}", "}}")
    codegen.cpu_module_header = codegen.cpu_module_header + header
    codegen.cpu_module_template_forward = codegen.cpu_module_template_forward.replace(
        "(size_t task_index = 0; task_index < dim->size;",
        "(size_t task_index = simt::first_task(), stop = simt::last_task(dim->size);"
        " task_index < stop;",
    )


# The stream ---------------------------------------------------------------------------------------


class Stream:
    """The only stream: work that waits until the host synchronises."""

    cuda_stream = 1

    def __init__(self, device=None, **_) -> None:
        self.device = device

    waiting: list = []
    captured: list | None = None  # after the thread that captures
    lock = threading.RLock()
    runs = False

    @classmethod
    def add(cls, work) -> None:
        """Append work; while work runs, what it adds runs at once."""
        with cls.lock:
            if cls.runs:
                work()
            elif cls.captured is not None and cls.captured[0] == threading.get_ident():
                cls.captured.append(work)
            else:
                cls.waiting.append(work)

    @classmethod
    def wait(cls, until=None) -> None:
        """Do what waits, up to an event."""
        with cls.lock:
            if cls.runs or (until is not None and until not in cls.waiting):
                return
            if cls.captured is not None and cls.captured[0] == threading.get_ident():
                raise RuntimeError("the host waits for the device while a graph is captured")
            left = cls.waiting.count(until)
            while cls.waiting:
                work = cls.waiting.pop(0)
                if isinstance(work, Event):
                    left -= work is until
                    if until is not None and left == 0:
                        return
                    continue
                cls.runs = True
                try:
                    work()
                finally:
                    cls.runs = False

    @property
    def is_capturing(self) -> bool:
        return Stream.captured is not None and Stream.captured[0] == threading.get_ident()

    def record_event(self, event=None, external=False):
        event = event or Event()
        (Stream.captured if self.is_capturing else Stream.waiting).append(event)
        return event

    def wait_event(self, event) -> None:
        pass

    def wait_stream(self, stream, event=None) -> None:
        pass


class Event:
    """A place in the stream."""

    def __init__(self, device=None, **_) -> None:
        self.device = device


class Capture:
    """Stands for ``wp.ScopedCapture``."""

    def __init__(self, *_, **__) -> None:
        self.graph = None

    def __enter__(self):
        if Stream.captured is not None:
            raise RuntimeError("a capture within a capture")
        Stream.captured = [threading.get_ident()]
        return self

    def __exit__(self, *error) -> None:
        self.graph, Stream.captured = Stream.captured[1:], None


def replay(graph, stream=None) -> None:
    """Stand for ``wp.capture_launch``."""
    for work in graph:
        if isinstance(work, Event):
            Stream.waiting.append(work)
        else:
            Stream.add(work)


# The device ---------------------------------------------------------------------------------------


def sees_cuda() -> bool:
    """Whether the caller's caller is not Warp, which sees a CPU device."""
    return not sys._getframe(2).f_globals.get("__name__", "").startswith("warp")


def add_device() -> object:
    """Give Warp a device "cuda:0" that only other code takes for one."""
    import warp as wp
    from warp._src import context

    wp.init()
    runtime = context.runtime
    device = context.Device(runtime, "cuda:0")
    device.sm_count, device.arch, device.name = 8, 90, "emulated"
    runtime.device_map["cuda:0"] = device
    stream = device._stream = Stream(device)
    properties = context.Device
    properties.is_cuda = property(lambda self: self is device and sees_cuda())
    properties.is_cpu = property(lambda self: not (self is device and sees_cuda()))
    properties.stream = property(lambda self: stream)
    properties.__eq__ = lambda self, other: (
        self is other or (isinstance(other, str) and other == self.alias)
    )
    properties.__hash__ = lambda self: hash(self.alias)
    plain = context.CpuDefaultAllocator.allocate

    def allocate(self, size):
        start = plain(self, size)
        ctypes.memset(start, 0xCD, size)  # memory begins with anything
        return start

    context.CpuDefaultAllocator.allocate = context.CpuPinnedAllocator.allocate = allocate
    context.CpuPinnedAllocator.deallocate = context.CpuDefaultAllocator.deallocate
    wp.is_cuda_available = lambda: True
    wp.get_cuda_devices = lambda: [device]
    wp.get_devices = lambda: [runtime.cpu_device, device]
    wp.is_mempool_enabled = lambda device: True
    wp.get_mempool_release_threshold = lambda device: 1 << 40
    wp.set_mempool_release_threshold = lambda device, threshold: None
    wp.get_mempool_used_mem_high = lambda device: 0
    wp.Stream, wp.Event, wp.ScopedCapture, wp.capture_launch = Stream, Event, Capture, replay
    wp.get_stream = lambda device=None: stream
    wp.record_event = stream.record_event
    wp.get_event_elapsed_time = lambda *events, **_: 0.0
    wp.synchronize_event = lambda event: Stream.wait(event)
    wp.synchronize_stream = wp.synchronize_device = lambda *_: Stream.wait()
    wp.synchronize = Stream.wait
    return device


def delay_arrays(device) -> None:
    """Let fills, copies and Warp's sorts of arrays on the device wait in the stream."""
    import warp as wp
    from warp._src import context, types

    def delayed(function):
        def add(*args, **options):
            if any(getattr(a, "device", None) is device for a in [*args, *options.values()]):
                return Stream.add(lambda: function(*args, **options))
            return function(*args, **options)

        return add

    types.array.zero_ = delayed(types.array.zero_)
    types.array.fill_ = delayed(types.array.fill_)
    for name in ("radix_sort_pairs", "array_scan", "array_cast", "segmented_sort_pairs"):
        setattr(wp.utils, name, delayed(getattr(wp.utils, name)))
    encode = wp.utils.runlength_encode
    wp.utils.runlength_encode = lambda *a, **k: (Stream.wait(), encode(*a, **k))[1]

    plain = context.copy

    def copy(dest, src, *args, **options):
        hosts = [array for array in (dest, src) if array.device is not device]
        if len(hosts) == 2:
            return plain(dest, src, *args, **options)
        options["stream"] = device._stream  # some paths of Warp ask it whether it captures
        if hosts and not hosts[0].pinned:
            Stream.wait()
            return plain(dest, src, *args, **options)
        return Stream.add(lambda: plain(dest, src, *args, **options))

    context.copy = wp.copy = copy


# Launches -----------------------------------------------------------------------------------------


def load_warps():
    """Compile and load the fibers."""
    library = Path(os.environ["EMULATE_CACHE"], f"warps-{os.getpid()}.so")
    source = str(SIMT / "warps.c")
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


def capture_call(device, launch):
    """Stand for ``abut.core.call._captured``."""
    with Capture() as capture:
        launch(device.stream)
    return capture.graph


def start() -> None:
    """Prepare this process, before abut is imported."""
    emulate_native_code()
    device = add_device()
    delay_arrays(device)
    emulate_launches(device)
    import abut.core.call

    abut.core.call._captured = capture_call
    for name in FIXED_GRIDS:
        shrink_grid(*name.rsplit(".", 1))


def shrink_grid(module: str, name: str) -> None:
    """Let launches of a fixed size be small, wherever the number of their threads was imported."""
    usual = getattr(import_module(module), name)
    for other in [m for key, m in sys.modules.items() if key.startswith("abut")]:
        if vars(other).get(name) == usual:
            setattr(other, name, THREADS // 32 if "TEAMS" in name else THREADS)


def main() -> int:
    """Run pytest with this file as a plugin."""
    cache = os.environ.get("EMULATE_CACHE", str(Path(tempfile.gettempdir(), "abut-emulated")))
    Path(cache).mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"EMULATE_CACHE": cache, "PYTHONPATH": path}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "emulate_cuda", *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())

start()
