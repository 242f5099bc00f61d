"""Native code of kernels for a CPU that runs their CUDA branches within fibers (warps.c)."""

import os
import re
from pathlib import Path

HERE = Path(__file__).parent
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
    header = HERE.joinpath("intrinsics.h").read_text().replace("{", "{{").replace("}", "}}")
    codegen.cpu_module_header = codegen.cpu_module_header + header
    codegen.cpu_module_template_forward = codegen.cpu_module_template_forward.replace(
        "(size_t task_index = 0; task_index < dim->size;",
        "(size_t task_index = simt::first_task(), stop = simt::last_task(dim->size);"
        " task_index < stop;",
    )
