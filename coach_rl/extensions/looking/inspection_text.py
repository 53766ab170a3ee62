"""Inspections as a user types them: `batch:nan,stats@100; network:range=-5..5:warn`."""

import re
from dataclasses import replace
from typing import Any, NoReturn

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.extensions.looking.inspections import InspectParameters
from coach_rl.extensions.looking.inspector import Check, Reaction

MEANINGS: dict[Check, str] = {
    "nan": "numbers that are not finite",
    "shape": "columns whose shape or dtype changes",
    "range": "numbers outside their space, or outside range=LOW..HIGH",
    "stats": "mean, standard deviation, minimum and maximum of each column",
    "staleness": "age of what is learned from; staleness=MOST finds what is older",
}
"""The checks, and what each of them finds or reports."""
USUAL_POINTS = ("environment", "filter", "memory", "sampler", "batch", "network", "update")
"""The points of a level whose agent learns from a replay memory, from the simulator on."""
NONE = "off"
"""The text that stands for no inspections."""
_INTERVALS: dict[Check, int] = {"stats": 100, "staleness": 100}
"""Default intervals of checks, in calls; 1 for the others."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_CHECK = re.compile(
    rf"\s*(?P<check>\w+)\s*(?:=\s*(?:(?P<low>{_NUMBER})\s*\.\.\s*)?(?P<high>{_NUMBER})\s*)?"
    r"(?:@\s*(?P<every>\d+)\s*)?"
)


def parse_inspections(text: str) -> tuple[InspectParameters, ...]:
    """Inspections as a user types them: `batch:nan,stats@100; network:range=-5..5:warn`.

    Each part is `[LEVEL.]POINT:CHECK[=BOUNDS][@EVERY],...[:REACTION]`. `off` stands for none.

    Raises:
        ConfigurationError: The text has another form; UnknownNameError for the name of a check or a
            reaction. Whether a point exists shows when the graph is built.
    """
    if text.strip() == NONE:
        return ()
    found: list[InspectParameters] = []
    for entry in filter(str.strip, text.split(";")):
        place, *rest = (part.strip() for part in entry.split(":"))
        if not place or not rest or len(rest) > 2 or not rest[0]:
            _refuse_form(entry)
        reaction: Any = rest[1] if len(rest) > 1 else "stop"
        if reaction not in ("warn", "dump", "stop"):
            raise UnknownNameError(
                "reaction", reaction, ("warn", "dump", "stop"), where=f"in '{entry.strip()}'"
            )
        level, dot, point = place.partition(".")
        if not dot or "/" in level:
            level = ""
            point = place
        for check in rest[0].split(","):
            _merge(found, _read(check, point, level or None, reaction, entry))
    if not found:
        _refuse_form(text)
    return tuple(found)


def _read(
    text: str, point: str, level: str | None, reaction: Reaction, entry: str
) -> InspectParameters:
    match = _CHECK.fullmatch(text)
    if match is None:
        _refuse_form(entry)
    name, low, high, every = match.group("check", "low", "high", "every")
    known: dict[str, Check] = {check: check for check in MEANINGS}
    if name not in known:
        raise UnknownNameError("check", name, MEANINGS, where=f"in '{entry.strip()}'")
    check = known[name]
    if high is not None and (check, low is None) not in (("range", False), ("staleness", True)):
        _refuse_form(entry)
    return InspectParameters(
        point=point,
        level=level,
        checks=(check,),
        within=(float(low), float(high)) if low is not None else None,
        oldest=int(float(high)) if high is not None and low is None else None,
        every=_INTERVALS.get(check, 1) if every is None else int(every),
        reaction=reaction,
    )


def _merge(found: list[InspectParameters], new: InspectParameters) -> None:
    """Put checks of one point and interval into one inspection."""
    for index, known in enumerate(found):
        same = replace(known, checks=new.checks, within=new.within, oldest=new.oldest) == new
        if same and not set(new.checks) & set(known.checks):
            within = known.within or new.within
            oldest = known.oldest or new.oldest
            checks = (*known.checks, *new.checks)
            found[index] = replace(known, checks=checks, within=within, oldest=oldest)
            return
    if new not in found:
        found.append(new)


def _refuse_form(text: str) -> NoReturn:
    raise ConfigurationError(
        f"'{text.strip()}' is not an inspection; write POINT:CHECK,CHECK@EVERY:REACTION, e.g. "
        f"batch:nan,stats@100 or low.network:range=-5..5:warn (points: {', '.join(USUAL_POINTS)}; "
        f"checks: {', '.join(MEANINGS)}; reactions: warn, dump, stop; several separated by ;)"
    )
