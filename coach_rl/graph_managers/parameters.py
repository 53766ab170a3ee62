"""Parameters of an experiment: its levels, environment, schedule and acceptance test."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field
from typing import Annotated, ClassVar, Literal, Protocol

from annotated_types import Interval

from coach_rl.core.agents import AgentParameters
from coach_rl.core.clock import Clock
from coach_rl.core.errors import (
    ConfigurationError,
    UnknownNameError,
    problems_of,
    require,
    require_no_problems,
)
from coach_rl.core.infos import Over, Sums
from coach_rl.core.interfaces import Environment, EnvironmentParameters
from coach_rl.core.levels import LevelDescription, LevelPartParameters
from coach_rl.core.log_records import AUTO, FILES, SinkMaker, SinkParameters
from coach_rl.core.parameter_classes import ADVICE, parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive, Threads
from coach_rl.core.runtime import DivergenceParameters, Runtime
from coach_rl.core.steps import (
    EnvironmentEpisodes,
    EnvironmentSteps,
    Hours,
    RunLength,
    TrainingSteps,
)
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.graph_managers.arrangement import Arrangement, LevelChain
from coach_rl.graph_managers.callbacks import Callback, CallbackParameters, require_callbacks
from coach_rl.graph_managers.level_timing import timings_of
from coach_rl.graph_managers.stack import Stack
from coach_rl.graph_managers.stack_signals import SignalParameters
from coach_rl.levels.sub_episodes import METRICS as LEVEL_METRICS

MOST_ENVS = 1_000_000
"""Environments of the largest experiment; more are taken for a mistake."""


EPISODE_METRICS = (
    "reward_mean",
    "reward_std",
    "reward_iqm",
    "reward_iqm_low",
    "reward_iqm_high",
    "length_mean",
    "success_rate",
    "success_any_rate",
)
"""Metrics of every evaluation, by which it can be the best."""


Moments = EnvironmentSteps | TrainingSteps
"""The units in which the moments of a run can be counted."""


@parameter_class
class ScheduleParameters:
    """Lengths of the phases and intervals between evaluations and records.

    A plain number is one of environment steps; others are written EnvironmentEpisodes(500),
    TrainingSteps(10_000) or Hours(2).
    """

    training: Positive[RunLength] = EnvironmentSteps(1_000_000)
    """Length after which the run is over, heat-up included."""
    heatup: RunLength = EnvironmentSteps(0)
    """Length of the phase with random actions before training starts."""
    evaluation_interval: Positive[RunLength] | None = EnvironmentSteps(10_000)
    """Length between evaluations, counted from the end of heat-up; None never evaluates while
    training."""
    evaluation_episodes: Positive[EnvironmentEpisodes] = EnvironmentEpisodes(10)
    """Episodes of each evaluation."""
    evaluation_step_limit: Positive[int] | None = 100_000
    """Environment steps after which an evaluation cuts an episode off; None waits for its end."""
    progress_interval: Positive[Moments] = EnvironmentSteps(1_000)
    """Length between progress records, in the unit of the source: environment steps as a rule."""
    stop_after: Positive[Hours] | None = None
    """Hours of the run's own time after which it stops, however much of its training is left;
    None: it trains to the end."""
    until_solved: bool = False
    """If True, the run stops with the first evaluation that reaches the target of `validation`."""

    def __post_init__(self) -> None:
        require(
            not isinstance(self.heatup, TrainingSteps),
            "schedule.heatup cannot be counted in gradient updates, because heat-up makes none; "
            "give environment steps, episodes or hours",
        )
        require(
            not self.until_solved or self.evaluation_interval is not None,
            "schedule.until_solved needs evaluations, and schedule.evaluation_interval is None; "
            "give one, e.g. 10_000",
        )

    def check_heatup(self) -> None:
        """Raise `ParameterError` for a heat-up that takes all of the training.

        Not in the constructor: a preset's panel may set one of them, and a path the other.
        """
        require(
            type(self.heatup) is not type(self.training) or self.heatup.count < self.training.count,
            f"schedule.heatup ({self.heatup.count}) must be shorter than schedule.training "
            f"({self.training.count}), which includes it; train for longer (--steps), or lower the "
            f'heat-up (-cp "schedule.heatup={type(self.heatup).__name__}(...)")',
        )


@parameter_class
class ValidationParameters:
    """The target a preset carries: a mean reward, a success rate, or both, to reach in time."""

    reward: float | None = None
    """Mean reward of an evaluation that counts as solved; None where only success counts."""
    success_rate: Annotated[float, Interval(gt=0, le=1)] | None = None
    """Share of an evaluation's episodes that must succeed; None where only the reward counts."""
    within: EnvironmentSteps | None = None
    """Environment steps by which it must be reached; None: at any time."""

    def __post_init__(self) -> None:
        require(
            self.reward is not None or self.success_rate is not None,
            "validation needs a target: give reward, success_rate or both",
        )

    def __str__(self) -> str:
        parts = {"mean reward": self.reward, "success rate": self.success_rate}
        return " and ".join(
            f"{of} {value:,.10g}" for of, value in parts.items() if value is not None
        )

    def report(self, solved_at: int | None) -> str:
        """The target, and whether and when an evaluation reached it.

        Args:
            solved_at: The moment of the first that did; None if none has.
        """
        within = "" if self.within is None else f" within {self.within.count:,} steps"
        if solved_at is None:
            return f"{self}{within}: not reached"
        is_late = self.within is not None and solved_at > self.within.count
        return f"{self}{within}: reached at step {solved_at:,}{', too late' * is_late}"

    def wanted(self) -> dict[str, float]:
        """Least values, by the evaluation's metric."""
        metrics = {"reward_mean": self.reward, "success_rate": self.success_rate}
        return {metric: least for metric, least in metrics.items() if least is not None}

    def is_reached(self, scalars: Mapping[str, float]) -> bool:
        """Return whether an evaluation with these scalars counts as solved."""
        for metric, least in self.wanted().items():
            if not scalars.get(f"evaluation/{metric}", float("-inf")) >= least:
                return False
        return True


def _describe_agent(value: object) -> str:
    if isinstance(value, type):
        return f"; write {value.__name__}(...), with brackets"
    return "; describe one, e.g. PPOAgentParameters()"


def _describe_environment(value: object) -> str:
    if isinstance(value, str):
        return f"; write parameters({value!r}), with `from coach_rl.environments import parameters`"
    if isinstance(value, type):
        return f"; write {value.__name__}(...), with brackets"
    task = getattr(getattr(value, "spec", None), "id", "module:Class")
    return f"; describe it instead of making it, e.g. GymnasiumParameters(level={task!r})"


@parameter_class
class LevelParameters(LevelDescription):
    """One level of a stack, with the agent that decides on it."""

    agent: AgentParameters = field(metadata={ADVICE: _describe_agent})
    """The agent that acts on this level (required)."""
    load: str | None = None
    """A run, or one of its checkpoints, whose agent of the level of this name it starts from;
    `RUN:LEVEL` for a level of another name. None: from nothing."""
    load_partly: bool = False
    """If True, `load` takes what fits, and a report lists what was not loaded and why; otherwise
    all of it has to fit."""


@parameter_class
class CheckpointParameters:
    """Policy of checkpoints: when a run saves itself, and which ones stay.

    The newest checkpoint always stays, as `last`. It is written at the end, at a signal, and
    whenever one of the others is.
    """

    enabled: bool = True
    """If False, there are no checkpoints at all: the run can't be resumed, nor evaluated once it is
    over."""
    best_of: str | None = AUTO
    """Metric of evaluations whose best checkpoint stays, as `best`: e.g. success_rate, length_mean,
    or a level's, such as low/goal_share. None: no best. Equal ones are ranked by mean reward, then
    the earlier stays."""
    best_is: Literal["largest", "smallest"] = "largest"
    """The value of the metric that is the best."""
    every_steps: Positive[Moments] | None = None
    """Length between periodic checkpoints, which stay, in the unit of the source; None for none.
    Taken at the first log record from there on."""
    every_seconds: Positive[float] | None = None
    """Seconds of the run's own time between periodic checkpoints, which stay; None for none."""
    keep_last: NonNegative[int] | None = None
    """Number of periodic checkpoints that stay, the newest; None keeps all."""
    keep_every: Positive[int] | None = None
    """Interval at which periodic checkpoints stay for ever, whatever keep_last is: 5 for every
    fifth; None for none."""
    lost_at_most_seconds: Positive[float] | None = 600.0
    """Seconds without a checkpoint after which `last` is written again: what a killed process can
    lose. None: only with the other checkpoints."""
    memories: bool = True
    """If False, replay memories are left out: a resumed run fills them again before it learns,
    and is not exact."""

    def __post_init__(self) -> None:
        require(
            self.keep_last is None or self.is_periodic,
            f"checkpoints.keep_last={self.keep_last} is about periodic checkpoints, and there are "
            "none; give every_steps (--checkpoint_steps) or every_seconds (-s) as well",
        )
        require(
            self.keep_every is None or self.keep_last is not None,
            f"checkpoints.keep_every={self.keep_every} changes nothing, because all periodic "
            "checkpoints stay; give keep_last (--keep) as well",
        )

    def require_known_metric(self, levels: Sequence[LevelDescription]) -> None:
        """Raise an `UnknownNameError` where evaluations will not have the metric of `best_of`.

        Args:
            levels: The levels.
        """
        if self.best_of not in (None, AUTO):
            names = [level.name for level in levels]
            of_parts = [
                f"{level.name}/{end}_share"
                for level in levels
                for part in level.parts
                for end in part.ended_by
            ]
            others = [AUTO, *of_parts]
            require_known_metric("in checkpoints.best_of", self.best_of, names, others=others)

    @property
    def is_periodic(self) -> bool:
        """True if there are periodic checkpoints."""
        return self.every_steps is not None or self.every_seconds is not None

    @property
    def most(self) -> int | None:
        """Number of checkpoints that stay at most, best and last among them; None: no limit."""
        if not self.is_periodic:
            return 2
        return None if self.keep_last is None or self.keep_every else 2 + self.keep_last

    def stays(self, number: int, newest: int) -> bool:
        """Return whether a periodic checkpoint stays that is neither best nor last.

        Args:
            number: Its number among the periodic ones, from 1.
            newest: The number of the newest.
        """
        if self.keep_last is None or number > newest - self.keep_last:
            return True
        return self.keep_every is not None and number % self.keep_every == 0


def require_known_metric(
    where: str, name: str, levels: Sequence[str], others: Sequence[str] = ()
) -> None:
    """Raise an `UnknownNameError` where evaluations will not have a metric.

    Args:
        where: Where it is named, for the error.
        name: The metric's name: `reward_mean`, `low/goal_share`, an agent's `reward_mean/NAME`.
        levels: Names of the levels.
        others: What else would have been accepted.
    """
    known = [*others, *EPISODE_METRICS]
    known += [f"{level}/{metric}" for level in levels for metric in LEVEL_METRICS]
    if name not in known and not name.startswith("reward_mean/"):
        hint = "docs/metrics.md lists them"
        raise UnknownNameError("metric of evaluations", name, known, hint, where=where)


class SourceContext(Protocol):
    """The parts of a run from which the source of its ticks is built."""

    parameters: "GraphParameters"
    """The experiment."""
    runtime: Runtime
    """The run's settings and services."""
    opened: ExitStack
    """Closes what a source opens, with the graph."""

    def environments(self) -> Environment:
        """The experiment's environments, built now and closed with the graph."""
        ...

    def stack_on(self, simulators: Environment, clock: Clock) -> Stack:
        """The experiment's levels on simulators, or on what stands in their place."""
        ...


@parameter_class
class SourceParameters:
    """Source of a run's ticks: here its own process acts and steps the environments.

    A subclass describes another one; see docs/control_flow.md.
    """

    UNIT: ClassVar[type[Moments]] = EnvironmentSteps
    """Unit in which moments of its runs are counted, and their checkpoints named."""
    CHANGEABLE: ClassVar[tuple[str, ...]] = ()
    """Paths of parameters that a run which is resumed need not keep, such as `source.on`."""

    def problems(
        self,
        experiment: "GraphParameters",  # noqa: ARG002 - for other sources
    ) -> Iterable[str | ConfigurationError]:
        """The rules between the source and an experiment that are broken, each with what to do."""
        return ()

    def how_to_train_further(self, clock: Clock) -> str:
        """Advice for a run that has its whole length behind it."""
        return f"give a total of environment steps above {clock.environment_steps} with --steps"

    def build(self, context: SourceContext, clock: Clock) -> Stack:
        """The stack that trains, whose ticks the source makes.

        Args:
            context: What is known of the run.
            clock: Phase and counters of training.
        """
        return context.stack_on(context.environments(), clock)


@parameter_class
class GraphParameters:
    """An experiment: levels with an agent each, on top of an environment."""

    levels: NonEmpty[tuple[LevelParameters, ...]]
    """Top first."""
    environment: EnvironmentParameters = field(metadata={ADVICE: _describe_environment})
    """The simulator under the lowest level."""
    arrangement: Arrangement = LevelChain()
    """The way in which levels act through each other: by default each through the next."""
    schedule: ScheduleParameters = field(default_factory=ScheduleParameters)
    """Lengths of the phases and intervals between evaluations and records."""
    num_envs: Positive[int] = 1
    """Environments in parallel."""
    threads: Threads = 1
    """Threads of one tensor operation on the CPU, unless `--threads` or `Runtime.threads`
    gives another number. Part of the run, as it changes the last digits of large sums; small
    networks are fastest with 1, batches of 256 through 256-256 networks with 2."""
    evaluation_environment: EnvironmentParameters | None = field(
        default=None, metadata={ADVICE: _describe_environment}
    )
    """Environment of the evaluations, with the same spaces; None: that of training."""
    reward_discount: Annotated[float, Interval(gt=0, le=1)] = 1.0
    """Discount of rewards per simulator step, where a level adds them up for the one above; one
    factor for all levels, because factors of single levels do not compose."""
    decision_infos: Mapping[str, Over] = FrozenMapping[str]()
    """Rules for infos of decisions of several simulator steps, by name: `sum`, `maximum`
    or `last`. Without an entry it is the last step's value; an agent's own rewards are sums, and
    its ends last. Sums are not discounted."""
    validation: ValidationParameters | None = None
    """The target at which the experiment counts as solved; None where there is none."""
    checkpoints: CheckpointParameters = field(default_factory=CheckpointParameters)
    """Policy of checkpoints: when a run saves itself, and which ones stay."""
    divergence: DivergenceParameters = field(default_factory=DivergenceParameters)
    """The response to losses, gradients and parameters that are not finite, of all levels."""
    source: SourceParameters = field(default_factory=SourceParameters)
    """Source of its ticks; by default the run's own process acts and steps the environments."""
    callbacks: tuple[Callback | CallbackParameters, ...] = ()
    """Functions that see every record and may add records, save, or stop the run, in their order;
    see docs/record_stream.md."""
    sinks: tuple[SinkMaker | SinkParameters, ...] = ()
    """Further sinks of its records besides the files in its folder, such as a tracker."""
    signals: SignalParameters = field(default_factory=SignalParameters)
    """The infos of the environment that are logged."""

    def __post_init__(self) -> None:
        require_no_problems(self.problems())

    @property
    def sums(self) -> Sums:
        """Sums of the level below that make the decisions of a level."""
        return Sums(discount=self.reward_discount, infos=self.decision_infos)

    def problems(self) -> Iterator[str | ConfigurationError]:
        """The rules between its parts that are broken, each with what to do."""
        yield from problems_of(require_callbacks, self.callbacks)
        yield from self._problems_of_names()
        yield from self._problems_of_levels()
        if not 1 <= self.num_envs <= MOST_ENVS:
            yield f"num_envs must be from 1 to {MOST_ENVS:,}, got {self.num_envs:,}"
        yield from self._problems_of_schedule()
        yield from self.source.problems(self)
        for level in self.levels:
            for change in level.changes:
                yield from change.problems(level, self.levels)

    def _problems_of_names(self) -> Iterator[str | ConfigurationError]:
        names = [level.name for level in self.levels]
        taken = {"", *FILES.values()}
        if len(set(names)) != len(names):
            yield f"levels need different names, got {names}"
        if not taken.isdisjoint(names):
            yield (
                f"a level's name is that of its log file, {names} has an empty one or one of the "
                f"run's own ({', '.join(sorted(taken - {''}))}); name it otherwise"
            )
        yield from problems_of(self.checkpoints.require_known_metric, self.levels)

    def _problems_of_levels(self) -> Iterator[str | ConfigurationError]:
        levels = self.levels
        yield from self.arrangement.problems(levels)
        for level, below in zip(levels, self.arrangement.links(levels), strict=True):
            for part in level.parts:
                yield from part.problems(level, [levels[index] for index in below])

    def _problems_of_schedule(self) -> Iterator[str | ConfigurationError]:
        schedule = self.schedule
        every = self.checkpoints.every_steps
        if schedule.until_solved and self.validation is None:
            yield (
                "schedule.until_solved needs a target, and this experiment has none; give one, "
                "e.g. --until_solved reward=475 or --until_solved success_rate=0.9"
            )
        lengths = {"training": schedule.training, "heatup": schedule.heatup}
        for timing in timings_of(self.levels):
            yield from problems_of(timing.check, self.levels, **lengths)
        learns = not all(level.ends_frozen for level in self.levels)
        for name in ("training", "evaluation_interval"):
            if not learns and isinstance(getattr(schedule, name), TrainingSteps):
                yield (
                    f"schedule.{name} counts gradient updates, and there are none once every level "
                    "is frozen; give environment steps, episodes or hours"
                )
        interval = schedule.progress_interval
        unit = self.source.UNIT
        if {type(interval), type(every or interval)} != {unit}:
            yield (
                f"schedule.progress_interval and checkpoints.every_steps must be {unit.__name__}, "
                f"in which its source counts, got {interval!r} and {every!r}"
            )


@parameter_class
class BasicGraphParameters(GraphParameters):
    """The usual experiment: one agent, one level, one environment."""

    agent: AgentParameters = field(metadata={ADVICE: _describe_agent})
    """The agent that learns."""
    load: str | None = None
    """A run, or checkpoint, whose agent it starts from; `RUN:LEVEL` of a hierarchy; None: none."""
    load_partly: bool = False
    """If True, `load` takes what fits, and a report lists the rest; otherwise all has to fit."""
    parts: tuple[LevelPartParameters, ...] = ()
    """Parts of the agent's level, see `LevelParameters.parts`."""
    levels: tuple[LevelParameters, ...] = field(init=False, repr=False, compare=False)
    """The agent's."""
    arrangement: Arrangement = field(init=False, default=LevelChain(), repr=False)
    """Arrangement of the one level."""
    reward_discount: float = field(init=False, default=1.0, repr=False)
    """Discount without effect here: one level adds nothing up."""

    def __post_init__(self) -> None:
        level = LevelParameters(
            agent=self.agent, load=self.load, load_partly=self.load_partly, parts=self.parts
        )
        object.__setattr__(self, "levels", (level,))
        super().__post_init__()
