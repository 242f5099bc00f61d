"""Rules as TOML files or tables; every error names the file, the rule and the key."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from abut.coordination.checks.check import Check, CheckKind
from abut.coordination.parts.part_sets import EVERYTHING, TEXTS, PartSet, ValueRange, Wanted
from abut.coordination.rules import LINKS, Exclusions, Rules, SetCheck
from abut.errors import OptionError
from abut.io.file_errors import existing, reading

TOP = ("tolerance", "clearance", "touch", "sets", "checks", "exclude")
OF_CHECK = ("name", "a", "b", "kind", "clearance", "tolerance", "touch")
OF_EXCLUDE = ("links", "same_assembly", "pairs")
KINDS = (CheckKind.HARD, CheckKind.CLEARANCE, CheckKind.DUPLICATE)


def read_rules(
    rules: Any, *, clearance: float = 0.0, tolerance: float = 0.0, touch: bool = False
) -> Rules:
    """Read rules from a TOML file, or from the table of one.

    Args:
        rules: Path of a file, a dict with the contents of one, ``Rules``, or None for one check
            of all parts.
        clearance, tolerance, touch: For checks of rules that state none.

    Raises:
        FileError: The file is missing or is no TOML.
        OptionError: A rule is wrong; names the file, the rule and the key.
    """
    own = {"clearance": clearance, "tolerance": tolerance, "touch": touch}
    table = _Table(own, "clash", tuple(own))
    table.lengths("clearance", "tolerance")
    table.truth("touch")
    if rules is None:
        return Rules.default(clearance, tolerance, touch)
    if isinstance(rules, Rules):
        return rules
    if isinstance(rules, Mapping):
        return _rules(_Table(rules, "rules", TOP), own)
    if not isinstance(rules, str | PathLike):
        raise OptionError(f"rules must be a TOML file or a table, not {type(rules).__name__}.")
    path = existing(rules)
    with reading(path, "rules"):
        content = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        return _rules(_Table(content, str(path), TOP), own)


class _Table:
    """A table of a rules file, whose values are checked as they are read."""

    def __init__(
        self, values: Any, where: str, known: Iterable[str], default: Mapping[str, Any] = {}
    ) -> None:
        self.where = where
        if not isinstance(values, Mapping):
            raise OptionError(f"{where} must be a table, not {values!r}.")
        self.own, self.values = set(values), {**default, **values}
        known = [*known]
        for key in values:
            if key not in known:
                near = get_close_matches(str(key), known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}."
                raise OptionError(f"{where}: there is no key {key!r}; {hint}")

    def fail(self, key: str, wanted: str) -> NoReturn:
        raise OptionError(f"{self.where}: {key} must be {wanted}, not {self.values[key]!r}.")

    def lengths(self, *keys: str) -> dict[str, float]:
        """Lengths from 0 up, in metres; 0 where there is none."""
        out = {}
        for key in keys:
            value = self.values.get(key, 0.0)
            plain = isinstance(value, int | float) and not isinstance(value, bool)
            if not (plain and math.isfinite(value) and value >= 0):
                self.fail(key, "a length in metres from 0 up")
            out[key] = float(value)
        return out

    def truth(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            self.fail(key, "true or false")
        return value

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A text or a list of texts."""
        value = self.values.get(key, default)
        value = (value,) if isinstance(value, str) else value
        if not (isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)):
            self.fail(key, "a text or a list of texts")
        if not value and key in self.values:
            self.fail(key, "a text or a list of texts that is not empty")
        return tuple(value)

    def rows(self, key: str) -> list[Any]:
        value = self.values.get(key, [])
        if not isinstance(value, list | tuple):
            self.fail(key, f"an array, written [[{key}]]")
        return list(value)


def _rules(top: _Table, own: dict[str, Any]) -> Rules:
    """Make rules of the whole table; ``own`` holds the values of the call."""
    shared = own | {key: top.values[key] for key in own if key in top.values}
    top.lengths("clearance", "tolerance")
    top.truth("touch")
    given = _Table(top.values.get("sets", {}), f"{top.where}: sets", top.values.get("sets", {}))
    sets = {
        name: _set(name, _Table(table, f"{top.where}: set {name!r}", (*TEXTS, "properties")))
        for name, table in given.values.items()
    }
    if EVERYTHING in sets:
        raise OptionError(f"{top.where}: the set {EVERYTHING!r} is that of all parts; rename it.")
    checks: list[SetCheck] = []
    for number, row in enumerate(top.rows("checks"), 1):
        name = row.get("name") if isinstance(row, Mapping) else None
        where = f"{top.where}: check {name!r}" if name else f"{top.where}: checks, entry {number}"
        checks.append(_check(_Table(row, where, OF_CHECK, shared), sets))
    if "checks" not in top.values:
        checks.append(Rules.default(**shared).checks[0])
    names = [rule.check.name for rule in checks]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"{top.where}: two checks have the name {name!r}; rename one.")
    exclude = _Table(top.values.get("exclude", {}), f"{top.where}: exclude", OF_EXCLUDE)
    return Rules(sets, tuple(checks), _exclusions(exclude, sets), top.where)


def _set(name: str, table: _Table) -> PartSet:
    patterns = {key: table.texts(key) for key in TEXTS if key in table.values}
    wanted = table.values.get("properties", {})
    properties = _Table(wanted, f"{table.where}: properties", wanted)
    if not patterns and not properties.values:
        raise OptionError(f"{table.where} has no criterion; known are {', '.join(TEXTS)}.")
    values = {key: _wanted(properties, key) for key in properties.values}
    return PartSet(name, patterns, values)


def _wanted(table: _Table, key: str) -> tuple[Wanted, ...]:
    """Wanted values of a property."""
    value = table.values[key]
    if isinstance(value, Mapping):
        limits = _Table(value, f"{table.where}: {key!r}", ("min", "max")).values
        if limits and all(isinstance(v, int | float) for v in limits.values()):
            return (ValueRange(limits.get("min", -math.inf), limits.get("max", math.inf)),)
    values: tuple[Any, ...] = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values or not all(isinstance(one, str | bool | int | float) for one in values):
        table.fail(key, "a text, number or truth value, a list of them, or {min = …, max = …}")
    return values


def _check(table: _Table, sets: Mapping[str, Any]) -> SetCheck:
    a = table.texts("a", (EVERYTHING,))
    b = table.texts("b", a)
    for side, names in (("a", a), ("b", b)):
        _require_sets(table, side, names, sets)
    lengths = table.lengths("clearance", "tolerance")
    kind = table.values.get("kind", CheckKind.CLEARANCE if "clearance" in table.own else KINDS[0])
    if kind not in KINDS:
        table.fail("kind", f"one of {', '.join(KINDS)}")
    if kind == CheckKind.CLEARANCE and lengths["clearance"] == 0:
        raise OptionError(f"{table.where}: kind is clearance, so clearance must be above 0.")
    if kind != CheckKind.CLEARANCE:
        if "clearance" in table.own:
            raise OptionError(f"{table.where}: clearance needs the kind clearance, not {kind!r}.")
        lengths["clearance"] = 0.0
    name = table.values.get("name", ", ".join("+".join(s) for s in ((a,) if a == b else (a, b))))
    if not (isinstance(name, str) and name.strip()):
        table.fail("name", "a text")
    return SetCheck(Check(name, CheckKind(kind), **lengths, touch=table.truth("touch")), a, b)


def _exclusions(table: _Table, sets: Mapping[str, Any]) -> Exclusions:
    links = table.values.get("links", True)
    if not isinstance(links, bool):
        links = table.texts("links")
        if not set(links) <= set(LINKS):
            table.fail("links", f"true, false or some of {', '.join(LINKS)}")
    pairs = []
    for pair in table.rows("pairs"):
        if not (isinstance(pair, list | tuple) and [type(name) for name in pair] == [str, str]):
            table.fail("pairs", "a list of pairs of names of sets")
        _require_sets(table, "pairs", pair, sets)
        pairs.append((pair[0], pair[1]))
    kinds = (LINKS if links else ()) if isinstance(links, bool) else tuple(links)
    return Exclusions(kinds, table.truth("same_assembly"), tuple(pairs))


def _require_sets(table: _Table, key: str, names: Iterable[str], sets: Mapping[str, Any]) -> None:
    for name in names:
        if name != EVERYTHING and name not in sets:
            near = get_close_matches(name, [*sets], 1)
            hint = f"did you mean {near[0]!r}?" if near else "define it or use '*' for all parts."
            raise OptionError(f"{table.where}: {key} names the set {name!r}; {hint}")
