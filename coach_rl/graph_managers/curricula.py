"""Rules for the curricula of levels."""

from collections.abc import Iterator, Sequence

from coach_rl.core.goals import GoalSpace, TimedGoalSpace
from coach_rl.core.levels import CURRICULUM, LevelDescription, is_chain


def problems_of_curricula(levels: Sequence[LevelDescription]) -> Iterator[str]:
    """The rules that the curricula of a graph break.

    Args:
        levels: Top first.
    """
    for index, level in enumerate(levels):
        if level.curriculum is not None:
            yield from _problems_of_curriculum(level, levels, is_top=index == 0)


def _problems_of_curriculum(
    level: LevelDescription, levels: Sequence[LevelDescription], *, is_top: bool
) -> Iterator[str]:
    curriculum, space = level.curriculum, level.goal_space
    assert curriculum is not None
    scheduled = curriculum.scheduled
    what = f"level '{level.name}' has a curriculum of {', '.join(scheduled) or 'nothing'}"
    if not scheduled:
        yield f"{what}; schedule its {', '.join(CURRICULUM)}, or leave it out"
    if curriculum.horizon is not None and level.horizon is None:
        yield f"{what}, and no horizon; give it the longest as horizon"
    certifying = [each.name for each in levels if each.certify is not None]
    if certifying:
        yield (
            f"{what}, and level '{certifying[0]}' tries decisions in forks, which do not follow "
            "it; leave out certify, or the curriculum"
        )
    if not scheduled.keys() - {"horizon"}:
        return
    if not isinstance(space, GoalSpace) or isinstance(space, TimedGoalSpace) or _is_built(space):
        kind = "no goals" if space is None else f"{type(space).__name__} as goal_space"
        yield f"{what}, and {kind}; give it a GoalSpace without times, that learns nothing"
        return
    actions = sorted(scheduled.keys() & {"reach", "bounds"})
    if actions and (is_top or not is_chain(levels)):
        where = "the environment chooses its goals" if is_top else "it is in no chain of levels"
        yield f"{what}, and {where}; leave out {' and '.join(actions)}"
    if curriculum.reach is not None and not space.relative:
        yield f"{what}, and goals that are not relative; use bounds, or GoalSpace(relative=True)"
    if curriculum.center is not None and len(curriculum.center) != space.size:
        yield f"{what} around {curriculum.center}; give as many elements as the goals have"


def _is_built(space: GoalSpace) -> bool:
    return type(space).build is not GoalSpace.build
