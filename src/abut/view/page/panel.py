"""Panel: the numbers of the latest answers, and the choices of the question."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

import numpy as np

from abut.options import Method
from abut.view.page.answers import Answers
from abut.view.page.live_scene import LiveScene

BOUNDS = {
    Method.BRUTE: "none",
    Method.BVH: "aabb",
    Method.FRONT: "aabb",
    Method.KDOP: "k-DOP, 18 bits",
}
VIEWS = "views of 512 pixels"  # of methods by visibility
CHECKBOXES = {
    "self-collisions": "faces of one object that meet each other",
    "distance": "the shortest distance, where no objects meet",
    "culling set": "faces that may collide by abut.cull, in gold",
    "overlap of solids": "how deep closed objects lie in each other, and how to separate them",
}
NONE = "none"
MOST_LISTED = 500  # objects in the list of objects to move; more are chosen by a click


class Panel:
    """Numbers and choices.

    Args:
        server: The viser server.
        live: The scene that is asked.
        choose: Receives the object to move, None for none.
    """

    def __init__(self, server: Any, live: LiveScene, choose: Callable[[int | None], None]) -> None:
        self.live, self.gui = live, server.gui
        self.worst = 0.0
        self.answered = 0
        gui, question = server.gui, live.question
        self.message = gui.add_html("", visible=False)
        self.facts = gui.add_html(facts_table([("status", "loading kernels")]))
        self.method = gui.add_dropdown(
            "method", [str(m) for m in Method], initial_value=str(question.method)
        )
        self.own, self.distance, self.culled, self.overlap = (
            gui.add_checkbox(name, initial, hint=about)
            for (name, about), initial in zip(
                CHECKBOXES.items(),
                (question.self_collisions, question.distance, question.culled, question.overlap),
                strict=True,
            )
        )
        listed = live.objects[:MOST_LISTED]
        self._objects = {f"{live.name(row)} ({row})": row for row in listed}
        about = "the object that the arrows and arcs move; a click on an object chooses it"
        names = [NONE, *self._objects]
        self.moved = gui.add_dropdown("move", names, initial_value=NONE, hint=about)
        self.reset = gui.add_button("reset poses")
        self.method.on_update(lambda _: live.ask(method=self.method.value))
        self.own.on_update(lambda _: live.ask(self_collisions=self.own.value))
        self.distance.on_update(lambda _: live.ask(distance=self.distance.value))
        self.culled.on_update(lambda _: live.ask(culled=self.culled.value))
        self.overlap.on_update(lambda _: live.ask(overlap=self.overlap.value))
        self.moved.on_update(lambda _: choose(self._objects.get(self.moved.value)))
        self.reset.on_click(lambda _: live.move({row: live.start[row] for row in live.objects}))

    def mark(self, row: int) -> None:
        """Show an object as the one that moves."""
        listed = next((text for text, index in self._objects.items() if index == row), None)
        if listed is not None:
            self.moved.value = listed

    def say(self, messages: Iterable[str]) -> None:
        """Show errors."""
        lines = "".join(f"<li>{escape(text)}</li>" for text in messages if text)
        self.message.visible = bool(lines)
        style = "color:#b3261e;font-size:.9em;padding:0 .7em;overflow-wrap:anywhere"
        self.message.content = f"<div style='{style}'><ul>{lines}</ul></div>"

    def show(self, answers: Answers, rate: float) -> None:
        """Show the numbers of answers; ``rate`` is answers per second."""
        spent = sum(ms for name, ms in answers.milliseconds.items() if not name.startswith("·"))
        if self.answered:  # the first answer loads kernels
            self.worst = max(self.worst, spent)
        self.answered += 1
        facts = [*scene_facts(self.live, answers), ("time", f"{spent:.2f} ms"), *_times(answers)]
        if self.answered > 1:
            facts.append(("longest time", f"{self.worst:.2f} ms"))
            facts.append(("answers per second", f"{rate:.0f}"))
        self.facts.content = facts_table(facts)


def scene_facts(live: LiveScene, answers: Answers) -> list[tuple[str, str]]:
    """Verb, method, device and counts."""
    method = live.question.method
    verbs = "collide, distance" if live.question.distance else "collide"
    faces = sum(live.meshes[row].face_count for row in live.objects)
    facts = [
        ("verb", verbs),
        ("method", str(method)),
        ("bound", BOUNDS.get(Method(method), VIEWS)),
        ("device", str(live.scene.device)),
        ("objects", f"{len(live.objects):,}"),
        ("faces", f"{faces:,}"),
        ("object pairs in contact", f"{len(answers.object_pairs[0]):,}"),
        ("face pairs in contact", f"{len(answers.faces):,}"),
    ]
    for o in answers.overlaps[:1]:
        facts += [("relation", o.relation), ("depth", f"{o.depths[0]:.6g}, {o.depths[1]:.6g}")]
        facts.append(("separation", f"{np.linalg.norm(o.separation):.6g}"))
    if len(answers.culled):
        facts.append(("faces that may collide", f"{len(answers.culled):,}"))
    if not np.isnan(answers.clearance):
        facts.append(("distance", f"{answers.clearance:.6g}"))
    return facts


def facts_table(facts: Iterable[tuple[str, str]]) -> str:
    """Names and values as a table in HTML."""
    rows = (
        f"<tr><td style='opacity:.65;vertical-align:top;white-space:nowrap'>{escape(name)}</td>"
        f"<td style='text-align:right'>{escape(value)}</td></tr>"
        for name, value in facts
    )
    style = "width:100%;font-size:.8em;line-height:1.35;padding:0 .7em"
    return f"<table style='{style}'>{''.join(rows)}</table>"


def _times(answers: Answers) -> list[tuple[str, str]]:
    """Questions on a line each, the stages of their searches together."""
    spent = answers.milliseconds
    inner = ", ".join(f"{name[2:]} {ms:.2f}" for name, ms in spent.items() if name[0] == "·")
    outer = [(f"time of {name}", f"{ms:.2f} ms") for name, ms in spent.items() if name[0] != "·"]
    return [*outer, ("stages [ms]", inner)]
