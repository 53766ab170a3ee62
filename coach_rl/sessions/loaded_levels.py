"""Agents that start from trained agents of other runs, and the report of the loaded parts.

    BasicGraphParameters(load="experiments/cartpole/CartPole-v1_seed0_2026-05-01_10-00-00", ...)
    LevelParameters(name="low", load="experiments/walk/.../checkpoints/best:legs", ...)

Networks and the statistics of filters come along, memory, counters and optimisers do not, and
nothing of them is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from coach_rl.configuration.parameters_json import decode
from coach_rl.configuration.strict_json import Json
from coach_rl.core.agents import AnyAgent, require_whole_policies
from coach_rl.core.errors import ConfigurationError, SpaceError, UnknownNameError, warn
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.levels import LevelDescription, LevelSpace
from coach_rl.core.options import OptionSpace
from coach_rl.core.parameter_classes import RecordedParameters
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.graph_managers.arrangement import Arrangement, LevelChain
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import LevelParameters
from coach_rl.runs.checkpoint import Checkpoint, read_checkpoint
from coach_rl.runs.folder import TakenCheckpoint, find_folder, read_manifest
from coach_rl.sessions.opening import known_spaces, replaced

_GOALS = {"low", "high", "relative", "reach", "elements", "observed"}
"""Fields of a goal space that set what the numbers of a goal stand for."""
_OF_EVERY = frozenset(each.name for each in fields(GoalSpace))
"""Fields of every goal space."""


def load_levels(graph_manager: GraphManager, manifest: Json | None = None) -> dict[str, Json]:
    """Initialise levels from trained levels of other runs, where their parameters name one.

    Args:
        graph_manager: Its graph is created.
        manifest: Of a run that starts again, whose levels come from the checkpoints they came
            from then; None for a new run.

    Returns:
        For the manifest, by the name of each level that was loaded: checkpoint, its checksum, and
        level, the names of the parts that were taken, and why others were left as they were.

    Raises:
        ConfigurationError: There is no such run or level, or it does not fit; names the level.

    Warns:
        CoachWarning: Its goals or actions have other bounds here, or other elements.
    """
    known: Mapping[str, Json] = {} if manifest is None else manifest.get("loaded", {})
    read: dict[Path, Checkpoint] = {}
    loaded: dict[str, Json] = {}
    for level in graph_manager.parameters.levels:
        if level.load is None:
            continue
        try:
            entry = known.get(level.name)
            taken, name = _taken_before(level, entry) if entry else _source(level)
            path = taken.path()
            if path not in read:
                read[path] = read_checkpoint(path, memories=False)
            agents = read[path].state["agents"]
            if name not in agents:
                hint = "name it as RUN:LEVEL"
                raise UnknownNameError("level", name, agents, hint, where="there")
            agent = graph_manager.graph.agents[level.name]
            require_whole_policies({level.name: agent})
            here = Meaning.of(graph_manager)
            here.require_same(level.name, Meaning.recorded(path), name)
            fit = _load(agent, agents[name], partly=level.load_partly)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"level '{level.name}' cannot be loaded from {level.load}: {error}"
            ) from error
        graph_manager.graph.unloaded.discard(level.name)
        loaded[level.name] = {
            "checkpoint": taken.checkpoint,
            "sha256": taken.sha256,
            "level": name,
            "taken": fit.taken,
            "left": fit.left,
        }
    return loaded


def recorded(graph_manager: GraphManager) -> GraphManager:
    """The same experiment, with other runs that it names as they are now, for its manifest."""
    before = graph_manager.parameters
    parameters = replaced(before, RecordedParameters, lambda part: part.recorded())
    return graph_manager if parameters is before else type(graph_manager)(parameters)


def loading_report(loaded: Mapping[str, Json]) -> list[str]:
    """Lines for people about what `load_levels` has loaded.

    Args:
        loaded: What it returned.
    """
    lines = []
    for name, entry in loaded.items():
        taken = len(entry["taken"])
        left = entry["left"]
        of = f"{taken} of {taken + len(left)} parts" if left else f"all {taken} parts"
        lines.append(f"level '{name}': {of} of '{entry['level']}' in {entry['checkpoint']}")
        lines += [f"    left {part}: {reason}" for part, reason in left.items()]
    return lines


@dataclass(frozen=True)
class Meaning:
    """The meaning of a run's goals and actions, which no shape shows."""

    levels: Sequence[LevelDescription]
    """The levels, top first."""
    arrangement: Arrangement
    """The way in which they act through each other."""
    spaces: EnvironmentSpaces
    """The environment's."""
    own: Mapping[str, Mapping[str, object]] | None = None
    """Fields of their goals beyond those of every goal space, by level; None: read from them."""

    @classmethod
    def of(cls, graph_manager: GraphManager) -> "Meaning":
        """That of a graph manager's goals and actions now."""
        parameters = graph_manager.parameters
        return cls(parameters.levels, parameters.arrangement, graph_manager.graph.spaces)

    @classmethod
    def recorded(cls, checkpoint: Path) -> "Meaning":
        """That of the run that a checkpoint is of, by its manifest; none of its code is run."""
        folder = find_folder(checkpoint)
        manifest = read_manifest(folder)
        parameters = manifest["parameters"]
        levels = []
        own: dict[str, Mapping[str, object]] = {}
        for level in parameters.get("levels") or parameters.get("stack") or [{}]:
            goals = level.get("goal_space") or {}
            space: LevelSpace | None = None
            if "low" in goals:
                given: Any = decode({name: goals[name] for name in _GOALS & goals.keys()})
                space = GoalSpace(**given, threshold=(0.0,) * len(given["low"]))
                names = goals.keys() - _OF_EVERY
                own[level.get("name", "main")] = {name: goals[name] for name in names}
            elif goals:
                space = OptionSpace(count=goals["count"])
            name = level.get("name", LevelDescription().name)
            levels.append(LevelDescription(name=name, goal_space=space))
        arrangement: Arrangement = LevelChain()
        if "arrangement" in parameters:
            arrangement = decode(parameters["arrangement"])
        return cls(levels, arrangement, known_spaces(folder, manifest), own)

    def require_same(self, name: str, there: "Meaning", name_there: str) -> None:
        """Raise `ConfigurationError` where an agent would take one kind of goal for another.

        Args:
            name: Its level's name here.
            there: Where it was trained.
            name_there: Its level's name there.

        Warns:
            CoachWarning: Bounds or elements differ, as they may between worlds.
        """
        here = self._of(name)
        then = there._of(name_there)
        names = [each for each in here if each in then and then[each] != here[each]]
        differing = [f"{each}: {then[each]} there, {here[each]} here" for each in names]
        if any(each.startswith("GoalSpace.") for each in names):
            raise ConfigurationError(
                f"the agent of level '{name_there}' was trained with goals that mean something "
                f"else, {'; '.join(differing)}; give it the same, or train another one"
            )
        if differing:
            warn(
                f"level '{name}': its agent was trained with other goals or actions, and takes "
                f"these for the same: {'; '.join(differing)}"
            )

    def _of(self, name: str) -> dict[str, object]:
        """The facts about a level's goals, those of the levels below and its actions, by name."""
        number = [each.name for each in self.levels].index(name)
        below = self.arrangement.links(self.levels)[number]
        facts: dict[str, object] = {} if below else {"action space": self.spaces.action}
        if GOAL_KEY in self.spaces.observation.spaces:
            facts["GoalSpace.observed of its goals"] = "absolute"
        for place, each in enumerate((number, *below)):
            goals = self.levels[each].goal_space
            what = f"the goals of level {place} below" if place else "its goals"
            setting = "relative" if place else "observed"
            if goals is not None:
                facts[f"GoalSpace.{setting} of {what}"] = getattr(goals, setting, "options")
            if isinstance(goals, GoalSpace):
                if not place:  # its agent sees them by `observed`, whatever is sent
                    is_offset = goals.observed == "relative"
                    reach = goals.reach if is_offset else None
                    goals = replace(goals, relative=is_offset, reach=reach)
                facts[f"elements of {what}"] = tuple(goals.elements or range(goals.size))
                box = goals.space
                bounds = (box.low.tolist()[: goals.size], box.high.tolist()[: goals.size])
                facts[f"bounds of {what}"] = bounds
                own = self._own_fields(self.levels[each])
                facts |= {f"{name} of {what}": value for name, value in own.items()}
        return facts

    def _own_fields(self, level: LevelDescription) -> Mapping[str, object]:
        """The numbers of a level's goals that not every goal space has, by field."""
        if self.own is not None:
            return self.own.get(level.name, {})
        given = vars(level.goal_space).items()
        return {k: v for k, v in given if k not in _OF_EVERY and isinstance(v, int | float)}


@dataclass
class _Fit:
    """The parts of a saved agent that fit another."""

    taken: list[str] = field(default_factory=list)
    """Paths of what fits."""
    left: dict[str, str] = field(default_factory=dict)
    """Paths of what does not, each with the reason."""

    def merged(self, saved: object, own: object, path: str = "") -> Any:
        """Return `own` with everything from `saved` that fits, and note what does not.

        The numbers of a statistic come together or not at all: a mean means nothing without its
        count.
        """
        if not isinstance(own, dict):
            return self._chosen(saved, own, path)
        if not any(isinstance(part, dict) for part in own.values()):
            strange = sorted(set(saved) - set(own)) if isinstance(saved, dict) else []
            self.left |= {f"{path}/{name}": "not here" for name in strange}
            if not all(isinstance(part, Tensor) for part in own.values()):
                return self._chosen(saved, own, path)
        merged = {}
        for name, part in own.items():
            there = saved.get(name) if isinstance(saved, dict) else None
            merged[name] = self.merged(there, part, f"{path}/{name}" if path else name)
        return merged

    def _chosen(self, saved: object, own: object, path: str) -> object:
        there, here = _shape(saved), _shape(own)
        if there == here:
            self.taken.append(path)
            return saved
        self.left[path] = "not there" if saved is None else f"{there} there, {here} here"
        return own


def _load(agent: AnyAgent, saved: State, *, partly: bool) -> _Fit:
    """Load a saved agent into another: all of it or, if `partly`, the parts that fit."""
    fit = _Fit()
    own = agent.policy_state_dict()
    merged = fit.merged(saved, own)
    is_comparable = _descriptions(saved) == _descriptions(own)
    fit.taken = [path for path in fit.taken if path not in _descriptions(own)]
    try:
        agent.load_policy(merged if partly and is_comparable else saved)
    except SpaceError as error:
        if partly or not is_comparable or not fit.taken:
            raise
        count = len(fit.taken)
        raise SpaceError(
            f"{error}; load_partly=True would take the {count} of {count + len(fit.left)} parts "
            "that fit"
        ) from error
    if not fit.taken:
        raise SpaceError("nothing of it fits")
    return fit


def _descriptions(state: State) -> dict[str, str]:
    """The words, such as a symmetry, under which an agent's numbers mean something."""
    return {name: part for name, part in state.items() if isinstance(part, str)}


def _shape(part: object) -> str:
    """The type and shape that a part must share with the one whose place it takes."""
    if isinstance(part, dict):
        return ", ".join(f"{name} {_shape(each)}" for name, each in sorted(part.items()))
    if isinstance(part, Tensor | np.ndarray):
        return f"{str(part.dtype).removeprefix('torch.')} {tuple(part.shape)}"
    return type(part).__name__


def _taken_before(level: LevelParameters, entry: Json) -> tuple[TakenCheckpoint, str]:
    """The checkpoint, and the level in it, that a manifest names."""
    assert level.load is not None
    taken = TakenCheckpoint(run=level.load, checkpoint=entry["checkpoint"], sha256=entry["sha256"])
    return taken, entry["level"]


def _source(level: LevelParameters) -> tuple[TakenCheckpoint, str]:
    """The checkpoint, and the level in it, that `RUN` or `RUN:LEVEL` names.

    An existing path is always a RUN.
    """
    assert level.load is not None
    run = level.load
    name = level.name
    if not Path(run).expanduser().exists() and ":" in run.removeprefix("trained:"):
        run, _, name = run.rpartition(":")
    return TakenCheckpoint.of(run), name
