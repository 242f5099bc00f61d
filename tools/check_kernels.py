"""Check Warp code for rules that linters do not know.

In kernels and device functions:
- no variable has the name of another object in the file: Warp's hash of such code changes after the
  first build, and the next run compiles it again;
- a variable that changes in a loop does not start as a constant that is used elsewhere: Warp makes
  both one variable, even if the constant is converted (to any type but the int32 of plain numbers);
- plain numbers are not combined inside ``wp.float64``: Warp does so in float32.

In every file that holds a kernel:
- module options are set by a direct call with a literal dict (a wrapper would configure its own
  module), with backward code and fused arithmetic off; kernels with ``module="unique"`` have them
  in ``module_options``; the one differentiable file has backward code on;
- kernels end in ``_kernel``;
- arguments run ``# in``, then ``# out``, and exactly those after ``# out`` end in ``_out``;
- a kernel writes only to arguments that end in ``_out``, or to structs that carry their queues.

Usage: python tools/check_kernels.py [FILE or FOLDER ...]   (default: src/abut)
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

REQUIRED = {"enable_backward": False, "fuse_fp": False}
DIFFERENTIATED = {"abut/sdf/tape.py": {"enable_backward": True, "fuse_fp": False}}
# Device functions that write to their first argument.
WRITERS = {
    "atomic_add_aggregated",
    "atomic_add_int64",
    "atomic_add_uniform",
    "atomic_cas",
    "atomic_decrement",
    "atomic_exchange",
    "atomic_increment_acq_rel",
    "atomic_max_int32",
    "atomic_min_int64",
    "atomic_set_owner",
    "push_pair",
}
# Structs that carry the queues they fill beside their operands.
CARRIERS = {"Encounters", "CcdOperands"}

Finding = tuple[int, str]


def main(paths: list[str]) -> int:
    """Print findings; return 1 if there are any."""
    findings = [
        f"{path}:{line}: {message}"
        for path in _python_files(paths or ["src/abut"])
        for line, message in check(path.read_text(), _required(path))
    ]
    print("\n".join(findings), end="\n" if findings else "")
    return int(bool(findings))


def check(source: str, required: dict[str, bool] | None = None) -> list[Finding]:
    """Return findings in the source of one file, by line; ``required`` are module options."""
    required = required or REQUIRED
    tree = ast.parse(source)
    lines = source.splitlines()
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    kernels = [(node, deco) for node in functions for deco in _decorators(node, "wp.kernel")]
    findings: list[Finding] = []
    for function in functions:
        if _decorators(function, "wp.kernel", "wp.func"):
            findings += _check_shadows(function, _names_of(tree))
            findings += _check_constants(function)
            findings += _check_float64_literals(function)
    for kernel, decorator in kernels:
        findings += _check_options(tree, kernel, decorator, required)
        findings += _check_names(kernel, lines)
        findings += _check_writes(kernel)
    return sorted(set(findings))


def _required(path: Path) -> dict[str, bool]:
    return DIFFERENTIATED.get("/".join(path.parts[-3:]), REQUIRED)


def _python_files(paths: Iterable[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _decorators(function: ast.FunctionDef, *names: str) -> list[ast.expr]:
    """Return decorators with one of these names, called (``@wp.kernel(...)``) or not."""
    plain = [(d.func if isinstance(d, ast.Call) else d, d) for d in function.decorator_list]
    return [decorator for name, decorator in plain if _dotted(name) in names]


def _names_of(tree: ast.Module) -> set[str]:
    """Return the names that a file defines or imports."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _check_shadows(function: ast.FunctionDef, names: set[str]) -> Iterator[Finding]:
    for node in ast.walk(function):
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None
        name = node.arg if isinstance(node, ast.arg) else name
        if name in names:
            yield node.lineno, f"{function.name}: the variable {name} hides another {name}"


def _check_constants(function: ast.FunctionDef) -> Iterator[Finding]:
    used = [node.id for node in ast.walk(function) if isinstance(node, ast.Name)]
    for block in _blocks(function):
        for place, statement in enumerate(block):
            name, constant = _initial_constant(statement)
            changes = any(name in _stored(later) for later in block[place + 1 :])
            if changes and used.count(constant) > 1:
                message = f"{function.name}: the constant {constant} changes with {name}"
                yield statement.lineno, message


def _check_float64_literals(function: ast.FunctionDef) -> Iterator[Finding]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _dotted(node.func) == "wp.float64" and node.args:
            value = node.args[0]
            plain = not any(isinstance(part, ast.Name) for part in ast.walk(value))
            if isinstance(value, ast.BinOp) and plain:
                yield node.lineno, f"{function.name}: {ast.unparse(value)} is computed in float32"


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        yield from (getattr(node, name, []) for name in ("body", "orelse"))


def _initial_constant(statement: ast.stmt) -> tuple[str, str]:
    """Return (variable, constant) of a statement that sets one to the other, perhaps converted."""
    if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
        return "", ""
    value = statement.value
    if isinstance(value, ast.Call) and len(value.args) == 1:
        value = value.func if _dotted(value.func) == "wp.int32" else value.args[0]
    constant = value.id if isinstance(value, ast.Name) and value.id.isupper() else ""
    return statement.targets[0].id, constant


def _stored(statement: ast.stmt) -> set[str]:
    """Return the variables that a loop sets."""
    nodes = ast.walk(statement) if isinstance(statement, ast.For | ast.While) else ()
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _check_options(
    tree: ast.Module, kernel: ast.FunctionDef, decorator: ast.expr, required: dict[str, bool]
) -> list[Finding]:
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    options = {keyword.arg: keyword.value for keyword in keywords}
    if ast.unparse(options.get("module", ast.Constant(None))) == "'unique'":
        if _sets(options.get("module_options"), required):
            return []
        return [(kernel.lineno, f"{kernel.name}: module_options must set {required}")]
    direct = (
        statement.value
        for statement in tree.body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    )
    calls = [call for call in direct if _dotted(call.func) == "wp.set_module_options"]
    if any(call.args and _sets(call.args[0], required) for call in calls):
        return []
    return [(1, f"no wp.set_module_options({required}) at the top level, yet there are kernels")]


def _sets(options: ast.expr | None, required: dict[str, bool]) -> bool:
    try:
        given = ast.literal_eval(options) if isinstance(options, ast.Dict) else {}
    except ValueError:
        return False
    return all(given.get(name) is value for name, value in required.items())


def _check_names(kernel: ast.FunctionDef, lines: list[str]) -> Iterator[Finding]:
    arguments = kernel.args.args
    first_body_line = kernel.body[0].lineno
    marks = {
        lines[n - 1].strip(): n
        for n in range(kernel.lineno, first_body_line)
        if lines[n - 1].strip() in ("# in", "# out")
    }
    start, turn = marks.get("# in"), marks.get("# out", first_body_line)
    if not kernel.name.endswith("_kernel"):
        yield kernel.lineno, f"{kernel.name}: the name of a kernel ends in _kernel"
    if start is None or (arguments and start > arguments[0].lineno):
        yield kernel.lineno, f"{kernel.name}: '# in' must come before the first argument"
    for argument in arguments:
        if argument.arg.endswith("_out") != (argument.lineno > turn):
            where = "before" if argument.lineno < turn else "after"
            yield argument.lineno, f"{kernel.name}: {argument.arg} stands {where} '# out'"


def _check_writes(kernel: ast.FunctionDef) -> Iterator[Finding]:
    inputs = {
        argument.arg
        for argument in kernel.args.args
        if not argument.arg.endswith("_out") and _dotted(argument.annotation) not in CARRIERS
    }
    for node in ast.walk(kernel):
        for target in _written(node):
            name = _root(target)
            if name in inputs:
                yield node.lineno, f"{kernel.name}: writes to {name}, which does not end in _out"


def _written(node: ast.AST) -> list[ast.expr]:
    """Yield expressions that a statement or call writes to, other than plain names."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Call) and node.args:
        name = _dotted(node.func)
        writes = name in WRITERS or name.startswith("wp.atomic_")
        return node.args[:1] if writes else []
    return [target for target in targets if isinstance(target, ast.Subscript | ast.Attribute)]


def _root(node: ast.expr) -> str:
    """Return the name that an expression like ``queue.keys[i]`` starts with."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _dotted(node: ast.expr | None) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
