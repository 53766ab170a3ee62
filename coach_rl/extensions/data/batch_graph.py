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

from coach_rl.agents.off_policy_agent import OffPolicyAgentParameters
from coach_rl.core.agents import AgentParameters
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive
from coach_rl.core.records import NO_ANSWER, EnvResponse
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps, RunLength, TrainingSteps
from coach_rl.extensions.data.filled_memory import FilledMemory, Share, filled
from coach_rl.extensions.data.held_out import HeldOutParameters, HeldOutShare
from coach_rl.extensions.data.level_data import DataGoalsMaker, UsesDataBelow
from coach_rl.extensions.data.reading import DataReading, learning_agents
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
    CHANGEABLE = ("data_share", "online", "updates", "source.online", "source.updates")

    data: NonEmpty[str]
    """The data set: a Minari id, the path of its folder or of a file, or data:NAME (required)."""
    updates: Positive[int] | None = None
    """Gradient updates from the data, summed over the levels, before the agents act in the world
    and learn from both; None: they never do."""
    online: bool = False
    """True if the agents act in the world from now on, however many updates they have made."""
    held_out: HeldOutShare = 0.0
    """Share of the data's episodes that are not learned from."""
    split_seed: NonNegative[int] = 0
    """Seed that chooses the episodes that are held out."""

    def problems(self, experiment: GraphParameters) -> Iterator[str]:
        schedule = experiment.schedule
        if len(experiment.levels) > 1:
            yield from self._problems_of_levels(experiment)
        for level in experiment.levels:
            if not isinstance(level.agent, OffPolicyAgentParameters | UsesDataBelow):
                yield (
                    f"agent '{level.agent.name}' ({type(level.agent).__name__}) has no replay "
                    "memory and cannot learn from a data set; use an off-policy agent, e.g. "
                    "TD3BCAgentParameters() or BCAgentParameters()"
                )
        world = experiment.environment
        if isinstance(world, HeldOutParameters):
            yield from self._problems_of_stand_in(world)
        if schedule.heatup.count:
            yield (
                f"schedule.heatup is {schedule.heatup}, and nothing is acted while agents learn "
                "from data; give 0"
            )
        lengths: dict[str, RunLength | None] = {"evaluation_interval": schedule.evaluation_interval}
        if self.updates is None and not self.online:
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
            if isinstance(level.agent, UsesDataBelow):
                continue
            if not any(isinstance(each, DataGoalsMaker) for each in getattr(memory, "parts", ())):
                yield (
                    f"source.data is for one level, or for several whose memories take goals from "
                    f"trajectories, and that of level '{level.name}' has no part that does, such "
                    "as DataGoalsParameters(); or train the lowest from data first, and load it "
                    "below the others (`load`)"
                )

    def _problems_of_stand_in(self, world: HeldOutParameters) -> Iterator[str]:
        if self.updates is not None or self.online:
            yield (
                "the environment replays held-out episodes, where nothing is acted; leave out "
                "`updates` and `online`, or give the world's environment"
            )
        for name in ("data", "held_out", "split_seed"):
            own = getattr(self, name)
            theirs = getattr(world, name)
            if own != theirs:
                yield (
                    f"the environment replays held-out episodes by {name}={theirs!r}, and {name} "
                    f"is {own!r}; give both the same"
                )

    def how_to_train_further(self, clock: Clock) -> str:
        if clock.environment_steps:
            return super().how_to_train_further(clock)
        return (
            "learn longer in a fork, `coach fork RUN --as NAME -cp "
            '"schedule.training=TrainingSteps(N)"`, or continue in the world with --online STEPS'
        )

    def build(self, context: SourceContext, clock: Clock) -> Stack:
        """The stack; the data are read at its first tick, unless a memory was restored."""
        built = context.stack_on(context.environments(), clock)
        named = {each: getattr(built, each) for each in ("levels", "clock", "signals", "source")}
        reading = DataReading(
            self.data, context.runtime, held_out=self.held_out, split_seed=self.split_seed
        )
        return DataStack(**named, parameters=self, reading=reading)


@dataclass(frozen=True, kw_only=True)
class DataStack(Stack):
    """Levels whose agents learn from a data set, and act once they have."""

    parameters: DataSourceParameters
    """The source."""
    reading: DataReading
    """Reads the data, and remembers which they were."""

    def tick(self) -> EnvResponse:
        """A step of the world after the updates from data; before, one that the agents learn by.

        Each agent earns the updates of a decision, see `LearningParameters.updates_per_step`.
        """
        memories = [agent.memory for agent in learning_agents(self.levels)]
        if self.reading.identity is None and not all(map(len, memories)):
            self.reading.fill(self.levels)
            self._require_room()
        updates = self.parameters.updates
        is_over = updates is not None and self.clock.training_steps >= updates
        if is_over or self.parameters.online:
            self._require_room()
            return super().tick()
        if self.clock.phase is Phase.TRAIN:
            for agent in learning_agents(self.levels):
                agent.earned += 1
        return NO_ANSWER

    def _require_room(self) -> None:
        """Raise `ConfigurationError` where the world would replace the data, or teach nothing.

        An agent may wait there for more transitions than there can be.
        """
        planned = self.clock.planned
        if self.clock.environment_steps or not isinstance(planned, EnvironmentSteps):
            return
        for agent in learning_agents(self.levels):
            if isinstance(agent.memory, FilledMemory):
                agent.memory.require_room(-(-planned.count // self.num_envs))
            starts = agent.params.learning.learning_starts
            most = min(agent.memory.capacity, len(agent.memory) + planned.count)
            if starts > most:
                raise ConfigurationError(
                    f"agent '{agent.name}' would never learn in the world: it waits there for "
                    f"{starts:,} transitions in its memory, which has {most:,} at most, those of "
                    "the data included; give learning.learning_starts=1 (a run that has begun: in "
                    "a fork)"
                )

    def state_dict(self, *, with_simulators: bool = True) -> State:
        """See `Stack.state_dict`; with the name and checksum of the data."""
        state = super().state_dict(with_simulators=with_simulators)
        return {**state, "data": self.reading.state_dict()}

    def load_state_dict(self, state: State, *, with_simulators: bool = True) -> None:
        """See `Stack.load_state_dict`; agents whose memories leave the data out get them again."""
        super().load_state_dict(state, with_simulators=with_simulators)
        self.reading.load_state_dict(state.get("data", {}))  # an earlier version has none
        self.reading.refill(self.levels)


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
    online: bool = False
    """True if the agent acts in the world from now on, however many updates it has made."""
    data_share: Share | None = None
    """Share of the data in each batch once it acts; None: all transitions are equally likely."""
    held_out: HeldOutShare = 0.0
    """Share of the data's episodes that are not learned from."""
    split_seed: NonNegative[int] = 0
    """Seed that chooses the episodes that are held out."""
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
    lowest level and `SubGoalsFromDataParameters` above; a level above may use what the one below
    keeps instead, as `DataGraphAgentParameters` do. Updates are counted as in
    `BatchGraphParameters`, summed over the levels.
    """

    stack: NonEmpty[tuple[LevelParameters, ...]]
    """The levels, top first."""
    data: NonEmpty[str]
    """The data set: a Minari id, the path of its folder or of a file, or data:NAME (required)."""
    updates: Positive[int] | None = None
    """Gradient updates from the data, summed over the levels, before the agents act in the world
    and learn from both; None: they never do."""
    online: bool = False
    """True if the agents act in the world from now on, however many updates they have made."""
    data_share: Share | None = None
    """Share of the data in each batch once they act; None: all transitions are equally likely."""
    held_out: HeldOutShare = 0.0
    """Share of the data's episodes that are not learned from."""
    split_seed: NonNegative[int] = 0
    """Seed that chooses the episodes that are held out."""
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
    source = DataSourceParameters(
        data=experiment.data,
        updates=experiment.updates,
        online=experiment.online,
        held_out=experiment.held_out,
        split_seed=experiment.split_seed,
    )
    object.__setattr__(experiment, "source", source)
    progress = _in_updates(experiment.schedule.progress_interval)
    schedule = replace(experiment.schedule, progress_interval=progress)
    object.__setattr__(experiment, "schedule", schedule)
    if (every := experiment.checkpoints.every_steps) is not None:
        checkpoints = replace(experiment.checkpoints, every_steps=_in_updates(every))
        object.__setattr__(experiment, "checkpoints", checkpoints)


def _fill_levels(experiment: BatchGraphParameters | BatchHierarchyParameters) -> None:
    """Mark the memories of an experiment that is being constructed as filled by its source."""
    levels = [
        replace(each, agent=_filled(each.agent, experiment.data_share))
        for each in experiment.levels
    ]
    object.__setattr__(experiment, "levels", tuple(levels))


def _filled(agent: AgentParameters, data_share: float | None) -> AgentParameters:
    """The agent, whose memory, if it has one, has transitions before it has made any."""
    if isinstance(agent, UsesDataBelow):
        return agent
    assert isinstance(agent, OffPolicyAgentParameters)
    return replace(agent, memory=filled(agent.memory, data_share))


def _in_updates(moments: Moments) -> TrainingSteps:
    """A number of moments, which are updates here whatever they are elsewhere."""
    return TrainingSteps(int(moments.count))


class BatchGraphManager(GraphManager):
    """A graph manager of one agent that learns from a data set.

    BatchGraphManager(BatchGraphParameters(data="./mine", agent=..., environment=...))
    """

    described_by = BatchGraphParameters
    parameters: BatchGraphParameters
