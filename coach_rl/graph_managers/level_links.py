"""Rules for the names in `LevelDescription.below`: no cycle, and each level is reached."""

from collections.abc import Iterator, Sequence

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.core.levels import LevelDescription, links_of


def problems_of_links(levels: Sequence[LevelDescription]) -> Iterator[str | ConfigurationError]:
    """The names in `below` that cannot be followed, and the levels that are never reached.

    Args:
        levels: Top first, with different names.
    """
    numbers, is_broken = {level.name: number for number, level in enumerate(levels)}, False
    for number, level in enumerate(levels):
        names = level.below or ()
        for name in dict.fromkeys(names):
            problem = _problem_of_link(level, name, number, numbers, names.count(name))
            if problem is not None:
                is_broken = True
                yield problem
    if is_broken:
        return
    links = links_of(levels)
    for number, level in enumerate(levels):
        above = [each for each in range(number) if number in links[each]]
        if number and not above:
            yield (
                f"level '{level.name}' is never reached: no level names it in below; name it "
                "there, or leave the level out"
            )
            continue
        yield from _problems_of_control(level, [levels[each] for each in above], links[number])
        selected = all(len(links[each]) > 1 for each in above)
        if number and level.goal_space is None and not selected:
            first = next(levels[each].name for each in above if len(links[each]) == 1)
            yield f"level '{level.name}' needs a goal_space: level '{first}' above acts in it"


def _problem_of_link(
    level: LevelDescription, name: str, number: int, numbers: dict[str, int], times: int
) -> str | ConfigurationError | None:
    if name not in numbers:
        return UnknownNameError(
            "level", name, numbers, "they stand in levels", where=f"in below of '{level.name}'"
        )
    if numbers[name] == number:
        return f"level '{level.name}' names itself in below, and could never act; leave that out"
    if numbers[name] < number:
        return (
            f"level '{level.name}' names '{name}' in below, which stands above it: levels are "
            "listed top first, and a cycle has no top; change their order, or leave that out"
        )
    if times > 1:
        return (
            f"level '{level.name}' names '{name}' {times} times in below, and the later ones "
            "could never be selected; name it once"
        )
    return None


def _problems_of_control(
    level: LevelDescription, above: Sequence[LevelDescription], below: Sequence[int]
) -> Iterator[str]:
    name = f"level '{level.name}'"
    if level.preempt and not below:
        yield f"{name} has preempt=True and no level below to take control back from; leave it out"
    may_keep = level.goal_space is None and level.horizon is None
    if above and may_keep and not all(each.preempt for each in above):
        yield (
            f"{name} receives no goals and has no horizon, so that it would keep control to the "
            "end of the episode; give it a horizon"
        )
    for field in ("warmup", "turn"):
        if getattr(level, field) is not None:
            yield (
                f"{name} has {field}, which is for levels in a chain, where each acts through the "
                "next; leave it out in a graph of levels"
            )
