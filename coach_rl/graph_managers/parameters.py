"""Parameters of an experiment: its levels, environment, schedule and acceptance test."""

from dataclasses import field, replace
from typing import Annotated

from annotated_types import Interval

from coach_rl.core.agents import AgentParameters
from coach_rl.core.divergence import DivergenceParameters
from coach_rl.core.errors import require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.interfaces import EnvironmentParameters
from coach_rl.core.levels import LevelDescription
from coach_rl.core.parameter_classes import ADVICE, parameter_class
from coach_rl.core.ranges import NonEmpty, Positive, UnitInterval
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps


@parameter_class
class ScheduleParameters:
    """Lengths of the phases and intervals between evaluations and records."""

    training: Positive[EnvironmentSteps] = EnvironmentSteps(1_000_000)
    """Environment steps after which the run is over, heat-up included."""
    heatup: EnvironmentSteps = EnvironmentSteps(0)
    """Environment steps with random actions before training starts."""
    evaluation_interval: Positive[EnvironmentSteps] | None = EnvironmentSteps(10_000)
    """Environment steps between evaluations; None never evaluates while training."""
    evaluation_episodes: Positive[EnvironmentEpisodes] = EnvironmentEpisodes(10)
    """Episodes of each evaluation."""
    evaluation_step_limit: Positive[int] | None = 100_000
    """Environment steps after which an evaluation cuts an episode off; None waits for its end."""
    progress_interval: Positive[EnvironmentSteps] = EnvironmentSteps(1_000)
    """Environment steps between progress records."""

    def __post_init__(self) -> None:
        require(
            self.heatup < self.training,
            f"schedule.heatup ({self.heatup.count}) must be shorter than schedule.training "
            f"({self.training.count}), which includes it",
        )


@parameter_class
class ValidationParameters:
    """The acceptance test a preset carries: a reward to reach within a number of steps."""

    reward: float
    """Mean reward of an evaluation that counts as solved."""
    within: EnvironmentSteps
    """Environment steps by which it must be reached."""


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


@parameter_class
class GraphParameters:
    """An experiment: levels with an agent each, on top of an environment."""

    levels: NonEmpty[tuple[LevelParameters, ...]]
    """Top first."""
    environment: EnvironmentParameters = field(metadata={ADVICE: _describe_environment})
    """The simulator under the lowest level."""
    schedule: ScheduleParameters = field(default_factory=ScheduleParameters)
    """Lengths of the phases and intervals between evaluations and records."""
    num_envs: Positive[int] = 1
    """Environments in parallel."""
    evaluation_environment: EnvironmentParameters | None = field(
        default=None, metadata={ADVICE: _describe_environment}
    )
    """Environment of the evaluations, with the same spaces; None: that of training."""
    reward_discount: Annotated[float, Interval(gt=0, le=1)] = 1.0
    """Discount of rewards per simulator step, where a level adds them up for the one above; one
    factor for all levels, because factors of single levels do not compose."""
    validation: ValidationParameters | None = None
    """The acceptance test; None where there is none."""
    divergence: DivergenceParameters = field(default_factory=DivergenceParameters)
    """The response to losses, gradients and parameters that are not finite, of all levels."""

    def __post_init__(self) -> None:
        names = [level.name for level in self.levels]
        require(len(set(names)) == len(names), f"levels need different names, got {names}")
        for level in self.levels[1:]:
            require(
                level.goal_space is not None,
                f"level '{level.name}' needs a goal_space: the level above acts in it",
            )


@parameter_class
class BasicGraphParameters(GraphParameters):
    """The usual experiment: one agent, one level, one environment."""

    agent: AgentParameters = field(metadata={ADVICE: _describe_agent})
    """The agent that learns."""
    levels: tuple[LevelParameters, ...] = field(init=False, repr=False, compare=False)
    """The agent's."""
    reward_discount: float = field(init=False, default=1.0, repr=False)
    """Discount without effect here: one level adds nothing up."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", (LevelParameters(agent=self.agent),))
        super().__post_init__()


@parameter_class
class HACGraphParameters(GraphParameters):
    """Hierarchical actor-critic (Levy et al. 2019, arXiv:1712.00948).

    Every level has goals, and those above the lowest test their sub-goals.
    """

    stack: tuple[LevelParameters, ...]
    """Top first, each with a horizon. The top level's goal_space says how the environment's goals
    are judged; the others' are what the level above acts in."""
    testing_rate: UnitInterval = 0.3
    """Share of sub-goals that are tested in training, by levels without a testing_rate of their
    own: lambda of the paper."""
    levels: tuple[LevelParameters, ...] = field(init=False, repr=False, compare=False)
    """The stack, with the testing rates filled in."""
    reward_discount: float = field(init=False, default=1.0, repr=False)
    """Discount without effect here: no level learns from rewards that were added up."""

    def __post_init__(self) -> None:
        for level in self.stack:
            require(
                isinstance(level.goal_space, GoalSpace),
                f"level '{level.name}' of a HAC stack needs goals: a GoalSpace as goal_space",
            )
            require(
                level.horizon is not None,
                f"level '{level.name}' of a HAC stack needs a horizon: it bounds its values",
            )
        tested = (
            replace(level, testing_rate=self.testing_rate) if level.testing_rate is None else level
            for level in self.stack[:-1]
        )
        object.__setattr__(self, "levels", (*tested, *self.stack[-1:]))
        super().__post_init__()
