"""Planning with OMPL's RRT-Connect: ``python -m benchmarks.bench_robot_plan --each 10``.

A Panda in problems of MotionBenchMaker (700 in all, 100 in each of seven sets), the same planner
and seed for every side, exact meshes and the same pairs of links:

- ``abut``: ``abut.adapters.ompl``, whose motions are certified for their whole way.
- ``abut at steps``: configurations at most ``--step`` of any joint apart, 32 of them in one call.
- ``pin+coal at steps``: the same configurations one by one, until one is in contact.

Both sides with steps ask for the same configurations in the same order, so that they take the same
paths where their verdicts agree. Every path is checked end to end afterwards: by certified motions,
and by Coal at a tenth of the step. Details of each problem are appended to ``--details`` as soon as
they are known; problems in that file are not planned again, so that a run may be interrupted.
``ms_min`` of the summary is the whole processor time for the problems that all sides have solved,
whose number is ``answer_size``; planners use one thread, and others may use the machine.
"""

import argparse
import csv
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from benchmarks.comparison import QUIET, RESULTS
from benchmarks.robot_cases import RobotCase, problems, robot_folder, temporary_folder
from benchmarks.rows import Row, machine_name, print_rows, set_ratios, write_csv

SEED = 1
AT_ONCE = 32  # configurations in one call
FINER = 10  # steps of the last check in one of the planner's
COLUMNS = "problem side solved seconds processor_seconds motions states certified coal".split()


def main(argv: list[str] | None = None) -> int:
    """Plan, check, print, write the CSV. 1 if a path of certified motions meets something."""
    parser = argparse.ArgumentParser(prog="bench_robot_plan", description=__doc__)
    parser.add_argument("--each", type=int, default=10, help="problems of each set, at most 100")
    parser.add_argument("--step", type=float, default=0.02, help="radians")
    parser.add_argument(
        "--limit", type=float, default=10.0, help="processor seconds a problem and side"
    )
    parser.add_argument("--minutes", type=float, default=np.inf, help="end after the problem then")
    parser.add_argument("--details", type=Path, help="default: results/<machine>/robot_plans.csv")
    parser.add_argument("--out", type=Path, help="default: results/<machine>/robot_plan.csv")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    folder, place = robot_folder(), RESULTS / machine_name("cpu")
    if folder is None:
        print("no robots in the data folder (ABUT_DATA)")
        return 0
    from ompl import util

    util.setLogLevel(util.LogLevel.LOG_NONE)
    details = args.details or place / "robot_plans.csv"
    end = time.monotonic() + 60 * args.minutes
    with temporary_folder() as made:
        done = {row["problem"] for row in _read(details)}
        for case in problems(folder, "cpu", args.each, Path(made), done):
            _append(details, _planned(case, args))
            if time.monotonic() > end:
                break
    rows = _read(details)
    summary = _summary(rows)
    print_rows("robot_plan", summary)
    write_csv(args.out or place / "robot_plan.csv", summary)
    wrong = [row["problem"] for row in rows if row["side"] == "abut" and "no" in _checks(row)]
    if wrong:
        print(f"ERROR: paths of certified motions meet something: {', '.join(wrong)}")
    return int(bool(wrong))


def _checks(row: dict[str, str]) -> tuple[str, str]:
    return row["certified"], row["coal"]


def _planned(case: RobotCase, args: Any) -> list[dict[str, Any]]:
    """Plan with every side; the rows of a problem."""
    from ompl import base

    from benchmarks.peers import robots

    robot = case.scene.robot
    robot.prepare()
    coal = robots.checks(case)["pin+coal"]
    many = lambda rows: bool(robot.valid(rows).numpy().all())  # noqa: E731
    each = lambda rows: all(map(coal, rows))  # noqa: E731
    sides = {
        "abut": None,
        "abut at steps": (robot.valid, many),
        "pin+coal at steps": (coal, each),
    }
    rows = []
    for side, asks in sides.items():
        setup, motions = _setup(case, asks, args.step)
        wall, processor = time.perf_counter(), time.process_time()
        end = processor + args.limit
        late = lambda end=end: time.process_time() > end  # noqa: E731
        setup.solve(base.PlannerTerminationCondition(late))
        times = time.perf_counter() - wall, time.process_time() - processor
        solved = bool(setup.haveExactSolutionPath())
        row = dict.fromkeys(COLUMNS, "")
        row |= {"problem": case.name, "side": side, "solved": "yes" if solved else "no"}
        row |= {"seconds": f"{times[0]:.5f}", "processor_seconds": f"{times[1]:.5f}"}
        row["motions"] = motions[0]
        if solved:
            path = _points(setup, len(robot.joints))
            fine = np.concatenate([_steps(*ends, args.step / FINER) for ends in pairwise(path)])
            row["states"] = len(path)
            row["certified"] = "yes" if robot.valid_motions(path).free else "no"
            row["coal"] = "yes" if all(map(coal, fine)) else "no"
        rows.append(row)
    return rows


def _setup(case: RobotCase, asks: Any, step: float) -> tuple[Any, list[int]]:
    """A SimpleSetup with start, goal and a seeded planner; and the number of its motions."""
    from ompl import geometric, util

    from abut.adapters import ompl as adapter

    util.RNG.setSeed(SEED)
    joints, motions = adapter.PlannedJoints(case.scene.robot), [0]
    setup = geometric.SimpleSetup(adapter.state_space(joints))
    information, space = setup.getSpaceInformation(), setup.getStateSpace()
    if asks is None:
        setup.setStateValidityChecker(adapter.validity_checker(information, joints))
        information.setMotionValidator(
            _counted(adapter.motion_validator(information, joints), motions)
        )
    else:
        setup.setStateValidityChecker(_checker(information, joints, asks[0]))
        information.setMotionValidator(
            _counted(_validator(information, joints, asks[1], step), motions)
        )
    ends = [space.allocState() for _ in case.ends]
    for state, values in zip(ends, case.ends, strict=True):
        for k, value in enumerate(values):
            state[k] = float(value)
    setup.setStartAndGoalStates(*ends)
    setup.setPlanner(geometric.RRTConnect(information))
    return setup, motions


def _counted(validator: Any, motions: list[int]) -> Any:
    """A validator that counts what it is asked."""
    ask = type(validator).checkMotion

    class Counted(type(validator)):  # type: ignore[misc]
        """Counts its motions."""

        def checkMotion(self, start: Any, end: Any, *_: Any) -> bool:
            """As the validator's."""
            motions[0] += 1
            return ask(self, start, end)

    validator.__class__ = Counted
    return validator


def _checker(information: Any, joints: Any, ask: Callable[[np.ndarray], bool]) -> Any:
    from ompl import base

    class Checker(base.StateValidityChecker):
        """Asks one configuration."""

        def isValid(self, state: Any) -> bool:
            """Whether a state is within the bounds, and free."""
            return bool(information.satisfiesBounds(state) and ask(joints.values(state)))

    return Checker(information)


def _validator(
    information: Any, joints: Any, ask: Callable[[np.ndarray], bool], step: float
) -> Any:
    from ompl import base

    class Steps(base.MotionValidator):
        """Asks configurations at steps: the end, then halves, as OMPL's own validator."""

        def checkMotion(self, start: Any, end: Any, *_: Any) -> bool:
            """Whether the configurations between two states are free."""
            rows = _steps(joints.values(start), joints.values(end), step)[1:]
            rows = rows[_halving(len(rows))]
            return all(ask(rows[k : k + AT_ONCE]) for k in range(0, len(rows), AT_ONCE))

    return Steps(information)


def _halving(count: int) -> list[int]:
    """The last of some numbers, then the middle of those below, and so on by halves."""
    order, spans = [count - 1], [(0, count - 1)]
    for low, high in spans:  # grows
        if low < high:
            middle = (low + high) // 2
            order.append(middle)
            spans += [(low, middle), (middle + 1, high)]
    return order


def _steps(q0: np.ndarray, q1: np.ndarray, step: float) -> np.ndarray:
    """(n, k) configurations on the way with both ends, at most a step of any joint apart."""
    count = max(int(np.ceil(np.abs(q1 - q0).max() / step)), 1)
    return q0 + np.linspace(0.0, 1.0, count + 1)[:, None] * (q1 - q0)


def _points(setup: Any, width: int) -> np.ndarray:
    path = setup.getSolutionPath()
    states = [path.getState(k) for k in range(path.getStateCount())]
    return np.array([[state[k] for k in range(width)] for state in states])


def _summary(rows: list[dict[str, str]]) -> list[Row]:
    """Whole planning times over the problems that every side has solved."""
    sides = list(dict.fromkeys(row["side"] for row in rows))
    solved = {
        side: {r["problem"] for r in rows if r["side"] == side and r["solved"] == "yes"}
        for side in sides
    }
    common = set.intersection(*solved.values()) if sides else set()
    out = []
    for side in sides:
        mine = [row for row in rows if row["side"] == side]
        times = [1e3 * float(row["processor_seconds"]) for row in mine if row["problem"] in common]
        row = Row("robot_plan", "mbm", side, "cpu", sum(times), float(np.median(times)))
        row.rounds, row.answer_size = 1, len(common)
        out.append(row)
        print(
            f"{side}: {len(solved[side])} of {len(mine)} problems solved; "
            f"{sum(float(r['processor_seconds']) for r in mine):.1f} s in all, "
            f"{sum(int(r['motions']) for r in mine):,} motions; paths with contacts: "
            f"{sum(r['certified'] == 'no' for r in mine)} by certified motions, "
            f"{sum(r['coal'] == 'no' for r in mine)} by Coal"
        )
    set_ratios(out, {"abut"})
    return out


def _read(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _append(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.is_file()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not begun:
            writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
