"""The description of an experiment in words: its levels as a tree, with agents and settings."""

from collections.abc import Iterator, Sequence

from coach_rl.core.levels import LevelDescription
from coach_rl.core.options import OptionSpace
from coach_rl.core.parts import description_of
from coach_rl.core.shown_text import shown_level
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import LevelParameters


def described(graph_manager: GraphManager) -> str:
    """A readable description of an experiment's levels, their goals and agents, and environment.

    Args:
        graph_manager: The experiment, whose graph is built.
    """
    parameters = graph_manager.parameters
    graph = graph_manager.graph
    stack = graph.training
    arrangement = parameters.arrangement
    lines: list[str] = []
    links = arrangement.links(parameters.levels)
    depths = [0] * len(parameters.levels)
    for index, (level, params) in enumerate(zip(stack.levels, parameters.levels, strict=True)):
        spaces = graph.contexts[level.name].spaces
        for each in links[index]:
            depths[each] = max(depths[each], depths[index] + 1)
        below = [stack.levels[each] for each in links[index]]
        settings = [
            *_of_level(params, index == 0),
            *arrangement.settings(params),
            *_of_learning(params, level.name in graph.unloaded),
        ]
        about = [
            f"level {level.name}: {params.agent.name}",
            *(f"  {line}" for line in settings),
            f"  observes {spaces.observation}",
            f"  acts in {spaces.action}",
            *(f"  {line}" for line in description_of(graph.agents[level.name]).splitlines()),
            *(["  selects for each decision:"] if len(below) > 1 else []),
            *(f"  acts through level {each.name}: {_orders(each.params)}" for each in below),
        ]
        lines += _at(depths[index], about)
    task = shown_level(parameters.environment.level)
    bottom = [f"environment {task} x {stack.num_envs}"]
    return "\n".join([*lines, *_at(max(depths) + 1, bottom)])


def _at(depth: int, lines: Sequence[str]) -> list[str]:
    """A node of the tree: its first line is linked to the node above."""
    if depth == 0:
        return list(lines)
    first, *rest = lines
    indent = "   " * (depth - 1)
    return [f"{indent}└─ {first}", *(f"{indent}   {line}" for line in rest)]


def _of_level(params: LevelParameters, is_top: bool) -> Iterator[str]:
    """Describe the settings by which a level differs from a single one."""
    if is_top and params.goal_space is not None:
        yield f"has the environment's {_orders(params)}"
    if params.horizon is not None:
        shorter = "" if params.horizon_of is None else ", or fewer by horizon_of"
        yield f"horizon {params.horizon} decisions{shorter}"
    if params.real_end_is_terminal:
        yield "a real termination is final"
    if not params.goal_is_terminal:
        yield "its goals are to be held"


def _of_learning(params: LevelParameters, is_unloaded: bool) -> Iterator[str]:
    """Describe what a level explores and learns, and what it begins with."""
    for part in params.parts:
        yield from part.settings()
    if params.frozen:
        yield "frozen: neither explores nor learns"
    yield from _of_schedule(params)
    if params.load is not None:
        yield f"{'to be ' if is_unloaded else ''}loaded from {params.load}"


def _of_schedule(params: LevelParameters) -> Iterator[str]:
    """Describe when a level learns, where it does not always."""
    for change in params.changes:
        yield from change.settings()


def _orders(level: LevelDescription) -> str:
    """Describe what a level receives."""
    space = level.goal_space
    if space is None:
        return "the reward of the environment"
    if isinstance(space, OptionSpace):
        own = " and ".join(name for name in ("rewards", "ends") if getattr(space, name))
        return f"one of {space.count} options" + f" with {own} of their own" * bool(own)
    return "goals: " + "; ".join(space.descriptions())
