"""Parameters of the MuJoCo tasks: which task, and how many threads step it."""

from abc import ABC, abstractmethod
from dataclasses import field
from functools import cached_property
from typing import Literal

from coach_rl.core.errors import UnknownNameError
from coach_rl.core.parameter_classes import ADVICE, parameter_class
from coach_rl.core.ranges import Positive, Threads
from coach_rl.core.shown_text import name_of_class
from coach_rl.core.typed_values import Arguments, FrozenMapping, frozen
from coach_rl.environments.faults import FaultParameters
from coach_rl.environments.mujoco.batch import MujocoBatch
from coach_rl.environments.mujoco.fixed_base import (
    InvertedDoublePendulum,
    InvertedPendulum,
    Pusher,
    Reacher,
)
from coach_rl.environments.mujoco.gymnasium_task import GymnasiumTask
from coach_rl.environments.mujoco.locomotion import (
    Ant,
    HalfCheetah,
    Hopper,
    Humanoid,
    HumanoidStandup,
    Swimmer,
    Walker2d,
)
from coach_rl.environments.mujoco.positions_only import POSITIONS_ONLY
from coach_rl.environments.mujoco.task import MujocoTask
from coach_rl.environments.processors import usable_processors

SHORT_NAMES: dict[str, type[GymnasiumTask]] = {
    "ant": Ant,
    "half_cheetah": HalfCheetah,
    "hopper": Hopper,
    "humanoid": Humanoid,
    "humanoid_standup": HumanoidStandup,
    "inverted_double_pendulum": InvertedDoublePendulum,
    "inverted_pendulum": InvertedPendulum,
    "pusher": Pusher,
    "reacher": Reacher,
    "swimmer": Swimmer,
    "walker2d": Walker2d,
}
"""The built-in tasks by the names Coach's users know."""
TASKS: dict[str, type[GymnasiumTask]] = {
    **{f"{task.__name__}-v5": task for task in SHORT_NAMES.values()},
    **SHORT_NAMES,
    **POSITIONS_ONLY,
}
"""The built-in tasks by Gymnasium id and by short name, and those whose velocities are hidden."""


@parameter_class
class SimulationParameters(ABC):
    """Settings of simulation and rendering, for any task."""

    max_episode_steps: Positive[int] | Literal[-1] | None = None
    """Steps after which an episode is truncated; None: the task's own number.

    -1: never, as in `gymnasium.make`.
    """
    threads: Threads | None = None
    """Threads that step, the calling one included; None: one per processor this process may use."""
    faults: FaultParameters = field(default_factory=FaultParameters)
    """The response to unstable simulations; time limits don't apply."""

    @property
    @abstractmethod
    def task(self) -> MujocoTask:
        """The task itself."""

    def build(self, *, num_envs: int) -> MujocoBatch:
        """A batch of that many rows.

        Raises:
            ConfigurationError: The MJCF file is missing or wrong, or the task reads what MuJoCo
                does not have.
        """
        task = self.task
        limit = task.max_episode_steps if self.max_episode_steps is None else self.max_episode_steps
        return MujocoBatch(
            task,
            num_envs=num_envs,
            max_episode_steps=None if limit == -1 else limit,
            threads=usable_processors() if self.threads is None else self.threads,
            faults=self.faults,
        )


@parameter_class
class MujocoParameters(SimulationParameters):
    """One of the eleven tasks of Gymnasium, or one of them with hidden velocities.

    parameters = MujocoParameters(level="half_cheetah", kwargs={"ctrl_cost_weight": 0.2})
    environment = parameters.build(num_envs=16)
    """

    level: str = field(metadata={ADVICE: name_of_class})
    """A Gymnasium id such as `HalfCheetah-v5`, a short name such as `half_cheetah`, or one of
    `half_cheetah_p`, `hopper_p` and `walker2d_p`, whose observation has no velocities."""
    kwargs: Arguments = FrozenMapping[str]()
    """Keyword arguments of the Gymnasium class, e.g. `forward_reward_weight`."""

    def __post_init__(self) -> None:
        if self.level not in TASKS:
            raise UnknownNameError(
                "MuJoCo task", self.level, TASKS, "see MujocoTaskParameters for your own"
            )
        object.__setattr__(self, "kwargs", frozen(self.kwargs))
        _ = self.task  # raises an error for arguments that do not fit

    @cached_property
    def task(self) -> MujocoTask:
        return TASKS[self.level](**self.kwargs)


@parameter_class
class MujocoTaskParameters(SimulationParameters):
    """A task of your own: an instance of a `MujocoTask` subclass.

    environment = MujocoTaskParameters(own_task=CartReach(target=0.5)).build(num_envs=16)
    """

    own_task: MujocoTask
    """Task to simulate, with its parameters."""

    @property
    def level(self) -> str:
        """The task's name: that of its class, unless it has another."""
        return self.own_task.level

    @property
    def task(self) -> MujocoTask:
        return self.own_task
