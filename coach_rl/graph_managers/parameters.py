"""What describes an experiment: its levels, its environment, its schedule, its acceptance test."""

from dataclasses import dataclass
from typing import Any, Protocol

from coach_rl.core.agents import AgentParameters
from coach_rl.core.errors import require
from coach_rl.core.goals import GoalSpace, OptionSpace
from coach_rl.core.interfaces import EnvironmentParameters
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps

MATMUL_PRECISIONS = ("highest", "high", "medium")
"""What `TaskParameters.matmul_precision` may be."""


@dataclass(frozen=True, kw_only=True)
class TaskParameters:
    """What is known only when a run starts."""

    seed: int = 0
    """Of everything random in the run, 0 or more."""
    device: str = "auto"
    """Where networks live: auto (a GPU where there is one), cpu, cuda or cuda:N."""
    matmul_precision: str = "highest"
    """How exactly float32 matrices are multiplied, in PyTorch's words; sums are always float32.

    `highest` takes all 24 bits of the factors. `high` may take TF32's 11 on GPUs. `medium` may take
    bfloat16's 8, on processors and GPUs that multiply those faster; elsewhere it is `highest`.
    What that costs in score: benchmarks/results/off_policy_mujoco.md.
    """
    threads: int = 1
    """Threads of one tensor operation on the CPU; small networks are fastest with 1. With another
    number, sums of many elements differ in their last digits."""

    def __post_init__(self) -> None:
        require(self.seed >= 0, f"seed must be 0 or more, got {self.seed}")
        require(self.threads >= 1, f"threads must be 1 or more, got {self.threads}")
        require(
            self.matmul_precision in MATMUL_PRECISIONS,
            f"matmul_precision must be one of {', '.join(MATMUL_PRECISIONS)}, "
            f"got '{self.matmul_precision}'",
        )


@dataclass(frozen=True, kw_only=True)
class ScheduleParameters:
    """When what happens."""

    training: EnvironmentSteps = EnvironmentSteps(1_000_000)
    """Environment steps after which the run is over, heat-up included."""
    heatup: EnvironmentSteps = EnvironmentSteps(0)
    """Environment steps with random actions before training starts."""
    evaluation_interval: EnvironmentSteps | None = EnvironmentSteps(10_000)
    """Environment steps between evaluations; None never evaluates while training."""
    evaluation_episodes: EnvironmentEpisodes = EnvironmentEpisodes(10)
    """Episodes of each evaluation."""
    progress_interval: EnvironmentSteps = EnvironmentSteps(1_000)
    """Environment steps between progress records."""

    def __post_init__(self) -> None:
        interval = self.evaluation_interval
        require(self.training.count > 0, "schedule.training must be more than 0 steps, got 0")
        require(
            self.heatup < self.training,
            f"schedule.heatup ({self.heatup.count}) must be shorter than schedule.training "
            f"({self.training.count}), which includes it",
        )
        require(
            interval is None or interval.count > 0,
            "schedule.evaluation_interval must be more than 0 steps or None, got 0",
        )
        require(
            self.evaluation_episodes.count > 0,
            "schedule.evaluation_episodes must be more than 0, got 0",
        )
        require(
            self.progress_interval.count > 0,
            "schedule.progress_interval must be more than 0 steps, got 0",
        )


@dataclass(frozen=True, kw_only=True)
class ValidationParameters:
    """The acceptance test a preset carries: a reward to reach within a number of steps."""

    reward: float
    """Mean reward of an evaluation that counts as solved."""
    within: EnvironmentSteps
    """Environment steps by which it must be reached."""


_NOBODY: Any = None
"""Says that a level lacks its agent, so that the error can name the level."""


@dataclass(frozen=True, kw_only=True)
class LevelParameters:
    """One level of the stack."""

    name: str = "main"
    """The level's name in logs."""
    agent: AgentParameters = _NOBODY
    """Who decides on this level; has no default."""
    goal_space: GoalSpace | OptionSpace | None = None
    """What the level above acts in. At the top, and only there, it may be None; a GoalSpace there
    means that the environment's desired goals are the level's, and reward it."""
    horizon: int | None = None
    """Decisions after which a sub-episode ends; None for no limit. At the top the agent's episode
    is cut there, and the simulator goes on."""
    real_end_is_terminal: bool = False
    """Whether a real termination cuts the bootstrap where the level has goals of its own. If so,
    dying early is the best policy under rewards of -1 and 0."""
    testing_rate: float | None = None
    """Share of the decisions in training during which nobody below explores: HAC's lambda. None: 0,
    but above the lowest level of a HAC stack the rate of the stack."""
    frozen: bool = False
    """Whether the agent only acts, and neither explores nor learns."""
    load: str | None = None
    """A run, or one of its checkpoints, whose agent of the level of this name it starts from;
    `RUN:LEVEL` for a level of another name. None: from nothing."""

    def __post_init__(self) -> None:
        require(
            hasattr(self.agent, "build"),
            f"level '{self.name}' needs an agent, described by e.g. PPOAgentParameters, "
            f"got {self.agent!r}",
        )


class GraphDescription(Protocol):
    """What a graph manager needs to know, whatever dataclass holds it."""

    @property
    def levels(self) -> tuple[LevelParameters, ...]:
        """Top first."""
        ...

    @property
    def environment(self) -> EnvironmentParameters:
        """The simulator."""
        ...

    @property
    def evaluation_environment(self) -> EnvironmentParameters | None:
        """What evaluations are played in; None: the environment of training."""
        ...

    @property
    def schedule(self) -> ScheduleParameters:
        """When what happens."""
        ...

    @property
    def num_envs(self) -> int:
        """Environments in parallel."""
        ...

    @property
    def reward_discount(self) -> float:
        """Of rewards per simulator step, where a level adds them up for the one above."""
        ...

    @property
    def validation(self) -> ValidationParameters | None:
        """The acceptance test; None where there is none."""
        ...


def check_levels(levels: tuple[LevelParameters, ...]) -> None:
    """Raise `ParameterError` unless the levels make a stack."""
    require(len(levels) > 0, "a graph needs at least one level")
    names = [level.name for level in levels]
    require(len(set(names)) == len(names), f"levels need different names, got {names}")
    for level in levels[1:]:
        require(
            level.goal_space is not None,
            f"level '{level.name}' needs a goal_space: the level above acts in it",
        )
