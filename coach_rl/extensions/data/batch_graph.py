"""Learning from a data set instead of the world: a source of ticks that are gradient steps.

    BatchGraphManager(
        BatchGraphParameters(
            data="./pendulum",                                  # a data set's id or path
            agent=TD3BCAgentParameters(),
            environment=GymnasiumParameters(level="Pendulum-v1"),
            schedule=batch_schedule(TrainingSteps(100_000), every=TrainingSteps(10_000)),
        )
    )

Nothing is acted while it learns from data, so that no environment step is counted: lengths and
intervals are gradient updates. With `updates` it turns to the world after so many of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from coach_rl.agents.off_policy_agent import OffPolicyAgent, OffPolicyAgentParameters
from coach_rl.core.agents import AgentParameters
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, Positive
from coach_rl.core.records import NO_ANSWER, EnvResponse
from coach_rl.core.runtime import Runtime
from coach_rl.core.seeding import integer_seed
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps, RunLength, TrainingSteps
from coach_rl.extensions.data.files import read_data
from coach_rl.extensions.data.level_data import DataGoalsMaker, data_of_level
from coach_rl.extensions.data.recorded import read_into
from coach_rl.graph_managers.arrangement import Arrangement, LevelChain
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import (
    BasicGraphParameters,
    GraphParameters,
    LevelParameters,
    Moments,
    ScheduleParameters,
    SourceContext,
    SourceParameters,
)
from coach_rl.graph_managers.stack import Stack
from coach_rl.memories.parts import MemoryPart, MemoryPartParameters, PartContext


def batch_schedule(
    updates: TrainingSteps | int,
    *,
    every: TrainingSteps | int | None = None,
    episodes: int = 10,
) -> ScheduleParameters:
    """The schedule of a run that learns from data alone.

    Args:
        updates: Gradient updates of the run.
        every: Updates between evaluations; None: it never evaluates.
        episodes: Episodes of each evaluation.
    """
    interval = None if every is None else _updates(every)
    return ScheduleParameters(
        training=_updates(updates),
        evaluation_interval=interval,
        evaluation_episodes=EnvironmentEpisodes(episodes),
        progress_interval=TrainingSteps(1_000),
    )


def _updates(length: TrainingSteps | int) -> TrainingSteps:
    return length if isinstance(length, TrainingSteps) else TrainingSteps(length)


@parameter_class
class DataSourceParameters(SourceParameters):
    """A data set as the source of a run's ticks; see docs/learn_from_data.md."""

    UNIT = TrainingSteps
    CHANGEABLE = ("updates",)

    data: NonEmpty[str]
    """The data set: a Minari id, the path of its folder or of a file, or data:NAME (required)."""
    updates: Positive[int] | None = None
    """Gradient updates from the data, summed over the levels, before the agents act in the world
    and learn from both; None: they never do."""

    def problems(self, experiment: GraphParameters) -> Iterator[str]:
        schedule = experiment.schedule
        if len(experiment.levels) > 1:
            yield from self._problems_of_levels(experiment)
        for level in experiment.levels:
            if not isinstance(level.agent, OffPolicyAgentParameters):
                yield (
                    f"agent '{level.agent.name}' ({type(level.agent).__name__}) has no replay "
                    "memory and cannot learn from a data set; use an off-policy agent, e.g. "
                    "TD3BCAgentParameters() or BCAgentParameters()"
                )
        if schedule.heatup.count:
            yield (
                f"schedule.heatup is {schedule.heatup}, and nothing is acted while agents learn "
                "from data; give 0"
            )
        lengths: dict[str, RunLength | None] = {"evaluation_interval": schedule.evaluation_interval}
        if self.updates is None:
            lengths["training"] = schedule.training
        for name, length in lengths.items():
            if isinstance(length, EnvironmentSteps | EnvironmentEpisodes):
                yield (
                    f"schedule.{name} is {length}, and no step is counted while agents learn from "
                    f"data; give gradient updates, e.g. TrainingSteps({length.count})"
                )

    def _problems_of_levels(self, experiment: GraphParameters) -> Iterator[str]:
        for level in experiment.levels:
            memory = getattr(level.agent, "memory", None)
            if not any(isinstance(each, DataGoalsMaker) for each in getattr(memory, "parts", ())):
                yield (
                    f"source.data is for one level, or for several whose memories take goals from "
                    f"trajectories, and that of level '{level.name}' has no part that does, such "
                    "as DataGoalsParameters(); or train the lowest from data first, and load it "
                    "below the others (`load`)"
                )

    def build(self, context: SourceContext, clock: Clock) -> Stack:
        """The stack; the data are read at its first tick, unless a memory was restored."""
        built = context.stack_on(context.environments(), clock)
        named = {each: getattr(built, each) for each in ("levels", "clock", "signals", "source")}
        return DataStack(**named, parameters=self, runtime=context.runtime)


@dataclass(frozen=True, kw_only=True)
class DataStack(Stack):
    """Levels whose agents learn from a data set, and act once they have."""

    parameters: DataSourceParameters
    """The source."""
    runtime: Runtime
    """The run's settings and services."""

    def tick(self) -> EnvResponse:
        """A step of the world after the updates from data; before, one that the agents learn by.

        Each agent earns the updates of a decision, see `LearningParameters.updates_per_step`.
        """
        agents = [level.agent for level in self.levels if isinstance(level.agent, OffPolicyAgent)]
        if not all(len(agent.memory) for agent in agents):
            self._read()
        updates = self.parameters.updates
        if updates is not None and self.clock.training_steps >= updates:
            return super().tick()
        if self.clock.phase is Phase.TRAIN:
            for agent in agents:
                agent.earned += 1
        return NO_ANSWER

    def _read(self) -> None:
        """Fill the agents' memories.

        A run that was restored without them keeps its filters: they know these data already.
        """
        self.runtime.on_activity(f"reading the data set {self.parameters.data}")
        spaces = self.levels[-1].environment.spaces
        read = read_data(
            self.parameters.data,
            observation_space=spaces.observation,
            action_space=spaces.action,
        )
        if not len(read):
            raise ConfigurationError(
                f"the data set '{self.parameters.data}' has no transitions; choose another one"
            )
        descriptions = [level.params for level in self.levels]
        for level, below in zip(self.levels, [*descriptions[1:], None], strict=True):
            agent = level.agent
            assert isinstance(agent, OffPolicyAgent)
            is_top = level is self.levels[0]
            recorded = data_of_level(read, level.params, below, is_top=is_top)
            known = agent.policy_state_dict() if self.clock.training_steps else None
            seed = integer_seed(self.runtime.seed, "data", level.name)
            read_into(agent, recorded, num_rows=self.num_envs, seed=seed)
            if known is not None:
                agent.load_policy(known)
        self.runtime.on_activity("")


@parameter_class
class BatchGraphParameters(BasicGraphParameters):
    """An experiment of one agent that learns from a data set, and then in the world if wanted.

    Progress records and checkpoints are counted in gradient updates: numbers given for them are
    numbers of updates, also those of `--checkpoint_steps`.
    """

    data: NonEmpty[str]
    """The data set: a Minari id, the path of its folder or of a file, or data:NAME (required)."""
    updates: Positive[int] | None = None
    """Gradient updates from the data before the agent acts in the world and learns from both;
    None: it never does."""
    schedule: ScheduleParameters = field(
        default_factory=lambda: batch_schedule(100_000, every=10_000)
    )
    """Lengths and intervals, in gradient updates; after `updates` in other units, too."""
    source: SourceParameters = field(init=False, repr=False, compare=False)
    """The data set."""

    def __post_init__(self) -> None:
        _set_source(self)
        super().__post_init__()
        _fill_levels(self)


@parameter_class
class BatchHierarchyParameters(GraphParameters):
    """An experiment of several levels that learn from a data set, and then in the world if wanted.

    The memory of each level takes goals from trajectories, e.g. with `DataGoalsParameters` at the
    lowest level and `SubGoalsFromDataParameters` above. Updates are counted as in
    `BatchGraphParameters`, summed over the levels.
    """

    stack: NonEmpty[tuple[LevelParameters, ...]]
    """The levels, top first."""
    data: NonEmpty[str]
    """The data set: a Minari id, the path of its folder or of a file, or data:NAME (required)."""
    updates: Positive[int] | None = None
    """Gradient updates from the data, summed over the levels, before the agents act in the world
    and learn from both; None: they never do."""
    schedule: ScheduleParameters = field(
        default_factory=lambda: batch_schedule(200_000, every=20_000)
    )
    """Lengths and intervals, in gradient updates; after `updates` in other units, too."""
    source: SourceParameters = field(init=False, repr=False, compare=False)
    """The data set."""
    levels: tuple[LevelParameters, ...] = field(init=False, repr=False, compare=False)
    """Those of `stack`, whose memories the source fills."""
    arrangement: Arrangement = field(init=False, default=LevelChain(), repr=False)
    """Each level acts through the next."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", self.stack)
        _set_source(self)
        super().__post_init__()
        _fill_levels(self)


def _set_source(experiment: BatchGraphParameters | BatchHierarchyParameters) -> None:
    """Let an experiment that is being constructed tick from its data, and count in updates."""
    source = DataSourceParameters(data=experiment.data, updates=experiment.updates)
    object.__setattr__(experiment, "source", source)
    progress = _in_updates(experiment.schedule.progress_interval)
    schedule = replace(experiment.schedule, progress_interval=progress)
    object.__setattr__(experiment, "schedule", schedule)
    if (every := experiment.checkpoints.every_steps) is not None:
        checkpoints = replace(experiment.checkpoints, every_steps=_in_updates(every))
        object.__setattr__(experiment, "checkpoints", checkpoints)


def _fill_levels(experiment: BatchGraphParameters | BatchHierarchyParameters) -> None:
    """Mark the memories of an experiment that is being constructed as filled by its source."""
    levels = [replace(each, agent=_filled(each.agent)) for each in experiment.levels]
    object.__setattr__(experiment, "levels", tuple(levels))


class FilledBySource(MemoryPartParameters):
    """Marks a memory that the source of the run fills."""

    fills = True

    def at(self, context: PartContext) -> MemoryPart:  # noqa: ARG002 - everywhere the same
        return MemoryPart()


def _filled(agent: AgentParameters) -> AgentParameters:
    """The agent, whose memory has transitions before it has made any."""
    assert isinstance(agent, OffPolicyAgentParameters)
    parts = (*agent.memory.parts, FilledBySource())
    return replace(agent, memory=replace(agent.memory, parts=parts))


def _in_updates(moments: Moments) -> TrainingSteps:
    """A number of moments, which are updates here whatever they are elsewhere."""
    return TrainingSteps(int(moments.count))


class BatchGraphManager(GraphManager):
    """A graph manager of one agent that learns from a data set.

    BatchGraphManager(BatchGraphParameters(data="./mine", agent=..., environment=...))
    """

    described_by = BatchGraphParameters
    parameters: BatchGraphParameters
