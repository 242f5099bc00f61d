"""Programs of the pipeline, compiled once for a driver."""

from typing import Any

from abut.visibility.gl import shaders
from abut.visibility.gl.driver import Driver

HEADER = "#version 430 core\n"


def box_program(driver: Driver) -> Any:
    """The compute program that fits boxes around faces."""

    def make() -> Any:
        source = HEADER + shaders.LIMITS + shaders.BUFFERS + shaders.BOXES
        return driver.context.compute_shader(source)

    return _kept(driver, "boxes", make)


def query_program(driver: Driver, fat: bool) -> Any:
    """Triangles or fat boxes for the depth test of the fixed pipeline."""
    fragment = HEADER + _depths(fat) + shaders.QUERY_FRAGMENT[fat]
    return _kept(driver, ("query", fat), lambda: _program(driver, fat, fragment))


def flag_program(driver: Driver, fat: bool, in_order: bool) -> Any:
    """Triangles or fat boxes whose shader compares depths; all in order, or turn by turn."""

    def make() -> Any:
        header, parts = HEADER, shaders.ATOMIC
        if in_order:
            suffix = driver.interlock.split("_")[1]  # ARB or NV
            header += f"#extension {driver.interlock} : require\n"
            header += "layout(pixel_interlock_ordered) in;\n"
            calls = {"BEGIN": "begin", "END": "end"}
            waits = {key: f"{verb}InvocationInterlock{suffix}();" for key, verb in calls.items()}
            parts = shaders.ORDERED | waits
        source = shaders.FLAG_FRAGMENT
        for name, code in parts.items():
            source = source.replace(name, code)
        return _program(driver, fat, header + _depths(fat) + source)

    return _kept(driver, ("flag", fat, in_order), make)


def _depths(fat: bool) -> str:
    limits = shaders.LIMITS + shaders.MOST
    return limits + (shaders.BOX_DEPTH if fat else shaders.TRIANGLE_DEPTH)


def _program(driver: Driver, fat: bool, fragment: str) -> Any:
    vertex = shaders.BOX_VERTEX if fat else shaders.TRIANGLE_VERTEX
    program = driver.context.program(
        vertex_shader=HEADER + shaders.LIMITS + shaders.BUFFERS + vertex, fragment_shader=fragment
    )
    return program, driver.context.vertex_array(program, [])


def _kept(driver: Driver, name: Any, make: Any) -> Any:
    if name not in driver.programs:
        driver.programs[name] = make()
    return driver.programs[name]
