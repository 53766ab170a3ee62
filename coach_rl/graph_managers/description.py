"""A stack of levels for people: a tree, the top level first, the environment last."""

from collections.abc import Iterator, Sequence, Set

from coach_rl.core.agents import AnyAgent
from coach_rl.core.goals import GoalSpace
from coach_rl.core.interfaces import EnvironmentParameters
from coach_rl.core.level_name import shown_level
from coach_rl.core.options import OptionSpace
from coach_rl.core.parts import description_of
from coach_rl.core.timed_goals import TimedGoalSpace
from coach_rl.graph_managers.parameters import LevelParameters
from coach_rl.levels.level_manager import LevelManager
from coach_rl.levels.spaces import agent_spaces


def describe_stack(
    levels: Sequence[LevelManager],
    described: Sequence[LevelParameters],
    agents: Sequence[AnyAgent],
    environment: EnvironmentParameters,
    *,
    unloaded: Set[str] = frozenset(),
) -> str:
    """The levels, what they ask of each other, their agents, and what they act on.

    Args:
        levels: Top first.
        described: Their parameters.
        agents: Who decides on them.
        environment: What the lowest acts on.
        unloaded: Names of the levels that are still to be loaded from another run.
    """
    lines: list[str] = []
    for depth, (level, params, agent) in enumerate(zip(levels, described, agents, strict=True)):
        spaces = agent_spaces(level.environment.spaces, params.goal_space)
        below = described[depth + 1] if depth + 1 < len(described) else None
        about = [
            f"level {level.name}: {params.agent.name}",
            *(f"  {line}" for line in _of_level(params, depth == 0, level.name in unloaded)),
            f"  observes {spaces.observation}",
            f"  acts in {spaces.action}",
            *(f"  {line}" for line in description_of(agent).splitlines()),
            *([] if below is None else [f"  asks level {below.name} for {_orders(below)}"]),
        ]
        lines += _at(depth, about)
    bottom = [f"environment {shown_level(environment.level)} x {levels[0].num_envs}"]
    return "\n".join([*lines, *_at(len(levels), bottom)])


def _at(depth: int, lines: Sequence[str]) -> list[str]:
    """A node of the tree: its first line hangs on the node above."""
    if depth == 0:
        return list(lines)
    first, *rest = lines
    indent = "   " * (depth - 1)
    return [f"{indent}└─ {first}", *(f"{indent}   {line}" for line in rest)]


def _of_level(params: LevelParameters, is_top: bool, is_unloaded: bool) -> Iterator[str]:
    """Describe the settings by which a level differs from a single one."""
    if is_top and params.goal_space is not None:
        yield f"has the environment's {_goal_text(params.goal_space)}"
    if params.horizon is not None:
        yield f"horizon {params.horizon} decisions"
    if params.real_end_is_terminal:
        yield "a real termination is final"
    if params.stops_on_failure != "never":
        when = " in training" if params.stops_on_failure == "training" else ""
        yield f"stops{when} where the level below misses its goal"
    if not params.goal_is_terminal:
        yield "its goals are to be held"
    if params.testing_rate:
        yield f"tests {params.testing_rate:.4g} of its decisions"
    if params.frozen:
        yield "frozen: neither explores nor learns"
    yield from _of_schedule(params)
    if params.load is not None:
        yield f"{'to be ' if is_unloaded else ''}loaded from {params.load}"


def _of_schedule(params: LevelParameters) -> Iterator[str]:
    """Describe when a level learns, where it does not always."""
    begin, end = params.frozen_from, params.frozen_until
    if begin is not None or end is not None:
        yield f"frozen from {begin or 'the beginning'} until {end or 'the end'}"
    if params.warmup is not None:
        yield f"warm-up on random goals until {params.warmup}"
    if params.turn is not None:
        yield f"learns in turns of {params.turn}"


def _orders(below: LevelParameters) -> str:
    assert below.goal_space is not None
    return _goal_text(below.goal_space)


def _goal_text(space: GoalSpace | OptionSpace) -> str:
    if isinstance(space, OptionSpace):
        own = [name for name in ("rewards", "ends") if getattr(space, name)]
        return f"one of {space.count} options" + f" with {' and '.join(own)} of their own" * bool(
            own
        )
    elements = space.elements or range(space.size)
    bounds = zip(elements, space.low, space.high, space.threshold, strict=True)
    parts = [
        f"{space.key}[{element}] in [{low:.4g}, {high:.4g}] within {threshold:.4g}"
        + (" (an angle)" if position in space.angles else "")
        for position, (element, low, high, threshold) in enumerate(bounds)
    ]
    if space.relative:
        reach = space.space.high
        parts.append("asked for as a way of at most " + ", ".join(f"{each:.4g}" for each in reach))
    if space.reached_within == "ball":
        parts.append("all together as a ball")
    if isinstance(space, TimedGoalSpace):
        parts.append(f"each at a time of 1 to {space.longest} steps")
    if space.reward == "dense":
        parts.append("rewarded by distance")
    return "goals: " + "; ".join(parts)
