"""Settings of sampler inspections: which points, which checks, how often."""

import re
from dataclasses import replace
from typing import Literal

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, Positive

END = "sample"
"""The point behind the last unit of a sampler."""
Check = Literal["nan", "shape", "stats"]
CHECKS: tuple[Check, ...] = ("nan", "shape", "stats")
USUAL_INTERVALS = {"nan": 1, "shape": 1, "stats": 100}
"""Batches between two looks where the text of an inspection gives none."""
_PART = re.compile(r"\s*(?P<check>\w+)\s*(?:@\s*(?P<every>\d+)\s*)?")


@parameter_class
class InspectParameters:
    """The points to check, the checks, and their frequency."""

    point: str = END
    """The sampler unit to look behind; `sample` is what the learner gets."""
    checks: NonEmpty[tuple[Check, ...]] = CHECKS
    """nan: raise where a number is not finite. shape: raise where a column's shape or dtype
    changes. stats: report mean, std, min and max of each column."""
    every: Positive[int] = 100
    """Check every k-th batch, beginning with the first; the others cost nothing."""


def parse_inspections(text: str) -> tuple[InspectParameters, ...]:
    """Inspections as a user types them: `sample:nan,stats@100; gather:shape`.

    Each point names its checks. A check looks at every batch, `stats` at every 100th; `@` and a
    number behind a check say otherwise.

    Raises:
        ConfigurationError: The text has another form; UnknownNameError for a check's name. Whether
            a point exists shows when the memory is built.
    """
    found: list[InspectParameters] = []
    for entry in filter(str.strip, text.split(";")):
        point, colon, names = entry.partition(":")
        if not colon or not point.strip():
            raise _bad_form(entry)
        for name in names.split(","):
            match = _PART.fullmatch(name)
            if match is None:
                raise _bad_form(entry)
            check, every = match["check"], match["every"]
            known: dict[str, Check] = {known: known for known in CHECKS}
            if check not in known:
                raise UnknownNameError("inspection check", check, CHECKS)
            interval = int(every) if every is not None else USUAL_INTERVALS[check]
            _merge(
                found,
                InspectParameters(point=point.strip(), checks=(known[check],), every=interval),
            )
    if not found:
        raise _bad_form(text)
    return tuple(found)


def _merge(found: list[InspectParameters], new: InspectParameters) -> None:
    """Put checks of one point and interval into one inspection."""
    for index, known in enumerate(found):
        if (known.point, known.every) == (new.point, new.every):
            extra = tuple(check for check in new.checks if check not in known.checks)
            found[index] = replace(known, checks=(*known.checks, *extra))
            return
    found.append(new)


def _bad_form(text: str) -> ConfigurationError:
    return ConfigurationError(
        f"'{text.strip()}' is not an inspection; write POINT:CHECK,CHECK@EVERY, e.g. "
        f"sample:nan,stats@100 (checks: {', '.join(CHECKS)}; several points separated by ;)"
    )
