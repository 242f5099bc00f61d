"""Show a scene or meshes in a browser."""

import sys
import webbrowser
from collections.abc import Iterable, Sequence
from typing import Any

from abut.mesh import Mesh
from abut.scene import Scene
from abut.view.page.answers import Question
from abut.view.page.given_results import answers_of
from abut.view.page.live_scene import LiveScene
from abut.view.page.page import Page


def show(
    scene_or_meshes: Scene | Mesh | Iterable[Mesh],
    results: Any = None,
    *,
    method: str = "bvh",
    self_collisions: bool | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    vertical: str = "z",
    open_page: bool = True,
    block: bool | None = None,
    messages: Sequence[str] = (),
    frames: Sequence[Any] = (),
) -> Page:
    """Show meshes, their contacts and their distance on a page in the browser.

    Objects can be dragged, and every answer follows. The objects of a ``Scene`` move with those of
    the page.

    Args:
        scene_or_meshes: A scene, a mesh, or several meshes.
        results: Results of queries about them, shown until something moves; None asks for contacts
            and the shortest distance.
        method: Method of ``Scene.collide`` to begin with.
        self_collisions: Also faces of one object that meet; None: if there is only one object.
        host: Address to bind. The default can be reached from this machine alone.
        port: Port to bind, or the next one that is free.
        vertical: The axis that points upwards, ``"z"`` or ``"y"``.
        open_page: Open a browser. In a notebook the page is shown in place.
        block: Wait until the page is closed. None waits in scripts, not where Python is
            interactive.
        messages: Errors to show on the page.
        frames: Vertices (n, 3) of the first object in each frame of a sequence to play.

    Returns:
        The page; ``close`` ends it, ``update`` shows where objects of the scene are now.

    Raises:
        ToolError: viser is missing: ``pip install 'abut[view]'``.
    """
    place: Any = {"host": host, "port": port, "vertical": vertical}
    about: Any = {"method": method, "self_collisions": self_collisions, **place}
    page = make_page(scene_or_meshes, results, messages=messages, frames=frames, **about)
    blocks = not _is_interactive() if block is None else block
    print(f"abut: {page.url}{' (Ctrl-C ends)' if blocks else ''}", flush=True)
    if open_page and not _in_notebook(page.url):
        webbrowser.open(page.url)
    if blocks:
        try:
            page.wait()
        finally:
            page.close()
    return page


def make_page(
    scene_or_meshes: Scene | Mesh | Iterable[Mesh],
    results: Any = None,
    *,
    method: str = "bvh",
    self_collisions: bool | None = None,
    **about: Any,
) -> Page:
    """Serve a page without opening it; takes the arguments of ``show`` and ``Page``."""
    scene = as_scene(scene_or_meshes)
    own = len(scene) == 1 if self_collisions is None else self_collisions
    live = LiveScene(scene, Question(method, own, len(scene) > 1))
    if results is not None:
        live.give(answers_of(live, results))
    return Page(live, **about)


def as_scene(scene_or_meshes: Scene | Mesh | Iterable[Mesh]) -> Scene:
    """The scene itself, or a scene of meshes where they are."""
    if isinstance(scene_or_meshes, Scene):
        return scene_or_meshes
    given = [scene_or_meshes] if isinstance(scene_or_meshes, Mesh) else list(scene_or_meshes)
    scene = Scene(given[0].device if given else "cpu")
    for mesh in given:
        scene.add(mesh)
    return scene


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules


def _in_notebook(url: str) -> bool:
    """Show the page in a notebook; False where there is none."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython.display import IFrame, display  # type: ignore[import-not-found]

    display(IFrame(url, width="100%", height=600))
    return True
