"""Building the agents of a stack's levels, and the goals that these receive."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import attrgetter

from gymnasium import spaces

from coach_rl.core.agents import AgentContext, AnyAgent, LevelPlace, require_own_mask
from coach_rl.core.clock import Clock
from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.goals import GoalContext, GoalSpace
from coach_rl.core.levels import LevelDescription
from coach_rl.core.parameter_classes import narrowed
from coach_rl.core.parts import walk, wrap_method
from coach_rl.core.records import Action, ActionRequest
from coach_rl.core.runtime import Runtime
from coach_rl.core.signals import Signals
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.steps import Hours, RunLength
from coach_rl.graph_managers.arrangement import Links
from coach_rl.graph_managers.parameters import GraphParameters


class LevelAgents:
    """The levels' goals and agents, built at their first use: the same train and are evaluated.

    Args:
        parameters: The experiment.
        runtime: The run's.
        clock: Of the stack that trains; changes of levels follow it.
    """

    def __init__(self, parameters: GraphParameters, runtime: Runtime, clock: Clock) -> None:
        self.built: dict[str, AnyAgent] = {}
        """The agents built so far, by their level's name."""
        self.contexts: dict[str, AgentContext] = {}
        """The contexts that they were built with."""
        self._parameters = parameters
        self._runtime = runtime
        self._clock = clock
        self._levels: tuple[LevelDescription, ...] = ()

    def levels(
        self, observation: spaces.Dict, purpose: str = "training"
    ) -> tuple[LevelDescription, ...]:
        """The levels without their agents, and with the goals that they receive, top first.

        Args:
            observation: The simulator's observation space.
            purpose: Of their stack: training or evaluation.
        """
        if not self._levels:
            self._levels = tuple(
                self._with_goals(narrowed(level, LevelDescription), observation)
                for level in self._parameters.levels
            )
        if purpose == "training":
            return self._levels
        judged = []
        for level in self._levels:
            for change in level.changes:
                level = change.in_evaluations(level)
            judged.append(level)
        return tuple(judged)

    def _with_goals(self, level: LevelDescription, observation: spaces.Dict) -> LevelDescription:
        """The level, with goals that are built, and its changes; itself where it has neither."""
        with _naming(level.name, is_only=len(self._parameters.levels) == 1):
            runtime = self._runtime.for_part("goals", level.name, signals=level.name)
            context = GoalContext(level=level.name, observation=observation, runtime=runtime)
            goals = level.goal_space
            if isinstance(goals, GoalSpace) and (own := goals.build(context)) is not goals:
                level = replace(level, goal_space=own)
            for change in level.changes:
                level = change.build(level, context, self._clock)
        return level

    def __call__(self, index: int, spaces: EnvironmentSpaces) -> AnyAgent:
        """The agent of a level, given what it sees and where it acts."""
        levels = self._levels
        runtime = self._runtime
        links = self._parameters.arrangement.links(levels)
        level = levels[index]
        below = [levels[link] for link in links[index]]
        if level.name not in self.built:
            with _naming(level.name, is_only=len(levels) == 1):
                place = LevelPlace(
                    level=level,
                    below=below[0] if len(below) == 1 else None,
                    agent_below=self.built[below[0].name] if len(below) == 1 else None,
                )
                planned = 0
                if not runtime.acts_only:
                    horizons = [*map(attrgetter("horizon"), levels)]
                    planned = _decisions(horizons, links, index, self._parameters.schedule.training)
                context = self.contexts[level.name] = AgentContext(
                    spaces=spaces,
                    num_envs=self._parameters.num_envs,
                    planned_steps=planned,
                    place=place,
                    decision_infos=self._parameters.decision_infos,
                    runtime=runtime.for_part("agent", level.name, signals=level.name),
                )
                described = self._parameters.levels[index].agent
                agent = self.built[level.name] = described.build(context)
                _check_learning(agent, level.goal_space, below)
                if below and choice_sizes(spaces.action):
                    for low, ways in zip(levels, links, strict=True):
                        if not ways and low.name in self.built:
                            require_own_mask(agent, self.built[low.name])
                if self._parameters.signals.observations:
                    note_observations(agent, context.signals)
        return self.built[level.name]


def _check_learning(agent: AnyAgent, goals: object, below: Sequence[LevelDescription]) -> None:
    """Raise `ConfigurationError` where goals learn, and their level or the one above cannot.

    Args:
        agent: The agent of a level.
        goals: What it receives.
        below: The levels right below it.
    """
    for each in below:
        sent = each.goal_space
        if isinstance(sent, GoalSpace) and (obstacle := sent.obstacle_above(agent)) is not None:
            raise ConfigurationError(obstacle)
    if isinstance(goals, GoalSpace) and (obstacle := goals.obstacle(agent)) is not None:
        raise ConfigurationError(obstacle)


def _decisions(horizons: Sequence[int | None], links: Links, index: int, length: RunLength) -> int:
    """Decisions that level `index` can be expected to make at least, over all rows.

    An episode, and a gradient update, counts as one environment step, a second as a hundred.
    """
    steps = int(length.count * 3600 * 100) if isinstance(length, Hours) else length.count
    longest = [1] * len(horizons)  # environment steps of a decision of each level
    for number in reversed(range(index, len(horizons))):
        for below in links[number]:
            longest[number] = max(longest[number], (horizons[below] or 1) * longest[below])
    return steps // longest[index]


@contextmanager
def _naming(level: str, *, is_only: bool) -> Iterator[None]:
    """ConfigurationErrors from inside name the level, where it isn't the only one."""
    try:
        yield
    except ConfigurationError as error:
        start = f"level '{level}': "
        if is_only or str(error).startswith(start):
            raise
        kind = SpaceError if isinstance(error, SpaceError) else ConfigurationError
        raise kind(f"{start}{error}") from error


OBSERVATIONS = "observations"
"""The part of the names behind the agent's."""


def note_observations(agent: AnyAgent, signals: Signals) -> None:
    """Let an agent, and each that it consists of, note all it observes whenever it acts.

    Args:
        agent: The agent; its `act` is replaced on this object.
        signals: The signals of its level.
    """
    for part in walk(agent):
        if part.is_agent:
            own = signals
            for member in part.members:
                own = own.of(member)
            _note(part.value, own)


def _note(agent: AnyAgent, signals: Signals) -> None:
    act = agent.act

    def noted(row_state: object, request: ActionRequest, clock: object) -> Action:
        for key, values in request.observation.items():
            signals.note(f"{OBSERVATIONS}/{key}", values)
        action: Action = act(row_state, request, clock)  # type: ignore[arg-type]  # only handed on
        return action

    wrap_method(agent, "act", noted)
