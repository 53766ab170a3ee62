"""Building the agents of a stack's levels."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from coach_rl.core.agents import AgentContext, AnyAgent, LevelPlace
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.inspection import stand_before
from coach_rl.core.levels import LevelDescription, links_of
from coach_rl.core.parts import walk
from coach_rl.core.records import Action, ActionRequest
from coach_rl.core.runtime import Runtime
from coach_rl.core.signals import Signals
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.steps import Hours, RunLength
from coach_rl.graph_managers.parameters import GraphParameters


class LevelAgents:
    """The levels' agents, each built at its first use: the same agent trains and is evaluated.

    Args:
        parameters: The experiment.
        runtime: The run's.
    """

    def __init__(
        self,
        parameters: GraphParameters,
        runtime: Runtime,
    ) -> None:
        self.built: dict[str, AnyAgent] = {}
        """The agents built so far, by their level's name."""
        self.contexts: dict[str, AgentContext] = {}
        """The contexts that they were built with."""
        self._parameters, self._runtime = parameters, runtime

    def __call__(self, index: int, spaces: EnvironmentSpaces) -> AnyAgent:
        """The agent of a level, given what it sees and where it acts."""
        levels, runtime = self._parameters.levels, self._runtime
        level, below = levels[index], [levels[each] for each in links_of(levels)[index]]
        if level.name not in self.built:
            with _naming(level, levels):
                place = LevelPlace(
                    level=level,
                    below=below[0] if len(below) == 1 else None,
                    agent_below=self.built[below[0].name] if len(below) == 1 else None,
                )
                planned = self._parameters.schedule.training
                context = self.contexts[level.name] = AgentContext(
                    spaces=spaces,
                    num_envs=self._parameters.num_envs,
                    planned_steps=0 if runtime.acts_only else _decisions(levels, index, planned),
                    place=place,
                    runtime=runtime.for_part("agent", level.name, signals=level.name),
                )
                agent = self.built[level.name] = level.agent.build(context)
                if self._parameters.signals.observations:
                    note_observations(agent, context.signals)
        return self.built[level.name]


def _decisions(levels: Sequence[LevelDescription], index: int, length: RunLength) -> int:
    """Decisions that level `index` can be expected to make at least, over all rows.

    An episode, and a gradient update, counts as one environment step, a second as a hundred.
    """
    steps = int(length.count * 3600 * 100) if isinstance(length, Hours) else length.count
    links = links_of(levels)

    def longest(number: int) -> int:
        """Steps that a decision of a level takes at most."""
        steps_below = ((levels[each].horizon or 1) * longest(each) for each in links[number])
        return max(steps_below, default=1)

    return steps // longest(index)


@contextmanager
def _naming(level: LevelDescription, levels: Sequence[LevelDescription]) -> Iterator[None]:
    """ConfigurationErrors from inside name the level, where there is more than one."""
    try:
        yield
    except ConfigurationError as error:
        start = f"level '{level.name}': "
        if len(levels) == 1 or str(error).startswith(start):
            raise
        kind = SpaceError if isinstance(error, SpaceError) else ConfigurationError
        raise kind(f"{start}{error}") from error


OBSERVATIONS = "observations"
"""The part of the names behind the agent's."""


def note_observations(agent: AnyAgent, signals: Signals) -> None:
    """Let an agent, and each member of a group, note all it observes whenever it acts.

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

    stand_before(agent, "act", noted)
