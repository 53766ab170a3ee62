"""MuJoCo tasks for presets: their names, their own settings, and experiments off-policy.

Meant to be imported by presets, the shipped ones and yours.
"""

from dataclasses import dataclass
from typing import ClassVar

import coach_rl as rl
from coach_rl.presets.panels import RunPanel, flat, solved

Marks = dict[str, tuple[float, int]]
"""Evaluation reward to reach, and environment steps by which, by short name."""

# The reward of swimming comes late: with 0.99 every published run stays below 150.
DISCOUNTS = {"swimmer": 0.9999}
"""Discount factors of tasks that do not take 0.99, by short name."""

HEATUPS = {"inverted_pendulum": 1_000, "inverted_double_pendulum": 1_000, "reacher": 1_000}
"""Random steps at the start of tasks that need fewer than others, by short name."""


@dataclass(frozen=True, kw_only=True)
class TaskPanel(RunPanel):
    """Settings of all presets on MuJoCo tasks."""

    LEVELS: ClassVar = tuple(name for name in rl.TASKS if "-" not in name)  # ids serve as well
    level: str = "half_cheetah"
    """A MuJoCo task, e.g. half_cheetah or HalfCheetah-v5; half_cheetah_p hides velocities."""
    steps: int = 1_000_000
    """Environment steps to train for, heat-up included."""

    @property
    def task_name(self) -> str:
        """The short name of the task, or of the one whose velocities it hides.

        Raises:
            UnknownNameError: There is no such task.
        """
        task = rl.TASKS[rl.MujocoParameters(level=self.level).level]
        return next(name for name, each in rl.SHORT_NAMES.items() if issubclass(task, each))

    def validation(self, marks: Marks) -> rl.ValidationParameters | None:
        """The acceptance test of the task; None for a task without a mark."""
        if self.task_name not in marks:
            return None
        reward, within = marks[self.task_name]
        return solved(reward, within)


@dataclass(frozen=True, kw_only=True)
class OffPolicyPanel(TaskPanel):
    """Settings of agents that learn from a replay memory, with the defaults of Tianshou's runs."""

    num_envs: int = 1
    batch: int = 256
    """Batch size."""
    updates_per_step: float = 1.0
    """Gradient steps per environment step."""
    discount: float | None = None
    """Discount factor; None takes the task's own."""
    heatup: int | None = None
    """Random steps at the start; None takes the task's own."""
    layers: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers of actor and critic."""
    memory: int = 1_000_000
    """Transitions kept."""
    evaluation_interval: int = 5_000
    """Environment steps between evaluations."""

    @property
    def task_discount(self) -> float:
        """The discount factor, the task's own where none is given."""
        own = DISCOUNTS.get(self.task_name, 0.99)
        return own if self.discount is None else self.discount

    @property
    def learning(self) -> rl.LearningParameters:
        """Batch size and frequency of updates."""
        return rl.LearningParameters(batch=self.batch, updates_per_step=self.updates_per_step)

    @property
    def replay_memory(self) -> rl.ReplayMemoryParameters:
        """Parameters of the replay memory."""
        return rl.ReplayMemoryParameters(capacity=self.memory)

    @property
    def actor(self) -> rl.ActorParameters:
        """The actor's network."""
        return rl.ActorParameters(torso=self.torso)

    @property
    def critic(self) -> rl.CriticParameters:
        """The network of each critic."""
        return rl.CriticParameters(torso=self.torso)

    @property
    def torso(self) -> rl.TorsoParameters:
        """The hidden layers."""
        return rl.TorsoParameters(middleware=self.layers, activation="relu", orthogonal=False)


def off_policy_experiment(
    panel: OffPolicyPanel, agent: rl.AgentParameters, *, marks: Marks, heatup: int
) -> rl.GraphManager:
    """An off-policy agent on a MuJoCo task; the same for DDPG, TD3 and SAC.

    Args:
        panel: The preset's settings.
        agent: The agent.
        marks: Evaluation rewards to reach.
        heatup: Random steps at the start, where neither the panel nor the task has a number.
    """
    own_heatup = HEATUPS.get(panel.task_name, heatup)
    return flat(
        panel,
        agent,
        rl.MujocoParameters(level=panel.level),
        panel.schedule(
            panel.evaluation_interval,
            heatup=own_heatup if panel.heatup is None else panel.heatup,
        ),
        validation=panel.validation(marks),
        threads=2,
    )
