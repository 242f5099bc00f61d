"""Answers about one shape: a query is repeated if a mesh deforms meanwhile."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from abut.core.cache import forget_values_of_thread
from abut.core.unknown_options import explain_error
from abut.errors import MeshError
from abut.mesh import shape_changes

Verb = TypeVar("Verb", bound=Callable[..., Any])

ATTEMPTS = 100


def steady(verb: Verb) -> Verb:
    """Return a verb whose answers refer to one shape of every mesh, and which explains its options.

    Other threads may deform the meshes during a call. Then trees and vertices are of two shapes, so
    the verb is called again.

    Raises:
        MeshError: The meshes have deformed during every attempt.
    """

    @wraps(verb)
    def ask(*operands: Any, **options: Any) -> Any:
        before = shape_changes[0]
        try:
            answer = verb(*operands, **options)
        except TypeError as error:
            explain_error(verb, options, error)
            raise
        if shape_changes[0] == before or not _changed((*operands, *options.values()), before):
            return answer
        return _ask_again(verb, operands, options)

    return ask  # type: ignore[return-value]


def _ask_again(verb: Callable[..., Any], operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    for _ in range(ATTEMPTS):
        forget_values_of_thread()  # plans may hold vertices of both shapes
        before = shape_changes[0]
        answer = verb(*operands, **options)
        if not _changed((*operands, *options.values()), before):
            return answer
    raise MeshError(
        f"{verb.__name__} was asked {ATTEMPTS} times, and a mesh deformed in another thread each "
        "time; hold a lock around deform and around the query."
    )


def _changed(operand: Any, before: int) -> bool:
    """Return whether a mesh, or one of several, has deformed since."""
    if isinstance(operand, list | tuple):
        return any(_changed(one, before) for one in operand)
    return getattr(operand, "changed_at", 0) > before
