"""Tasks of the DeepMind Control Suite for presets: names, settings, and experiments.

Meant to be imported by presets, the shipped ones and yours.
"""

from dataclasses import dataclass
from typing import ClassVar

import coach_rl as rl
from coach_rl.presets.panels import RunPanel, flat, solved

Marks = dict[str, tuple[float, int]]
"""Evaluation reward to reach, and environment steps by which, by task."""


@dataclass(frozen=True, kw_only=True)
class ControlPanel(RunPanel):
    """Settings of all presets on these tasks from state."""

    LEVELS: ClassVar = rl.BENCHMARK_TASKS  # the others of the suite serve as well
    level: str = "cheetah-run"
    """A task, domain-task, of the suite; dm_control: may stand before it."""
    steps: int = 1_000_000
    """Environment steps to train for, heat-up included."""
    action_repeat: int = 1
    """Steps of the task that an action lasts."""
    evaluation_interval: int = 10_000
    """Environment steps between evaluations."""

    @property
    def environment(self) -> rl.DMControlParameters:
        """The task, from state."""
        return rl.DMControlParameters(level=self.level, action_repeat=self.action_repeat)

    def validation(self, marks: Marks) -> rl.ValidationParameters | None:
        """The acceptance test of the task; None for a task without a mark."""
        name = self.environment.level
        return solved(*marks[name]) if name in marks else None


@dataclass(frozen=True, kw_only=True)
class OffPolicyControlPanel(ControlPanel):
    """Settings of agents that learn from a replay memory, with the defaults of SAC's paper."""

    num_envs: int = 1
    learning_rate: float = 3e-4
    """Learning rate of actor and critics."""
    discount: float = 0.99
    """Discount factor."""
    batch: int = 256
    """Batch size."""
    updates_per_step: float = 1.0
    """Gradient steps per environment step."""
    heatup: int = 5_000
    """Random steps at the start."""
    layers: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers of actor and critics."""
    memory: int = 1_000_000
    """Transitions kept."""

    @property
    def learning(self) -> rl.LearningParameters:
        """Batch size and frequency of updates."""
        return rl.LearningParameters(batch=self.batch, updates_per_step=self.updates_per_step)

    @property
    def torso(self) -> rl.TorsoParameters:
        """The hidden layers."""
        return rl.TorsoParameters(middleware=self.layers, activation="relu", orthogonal=False)

    @property
    def optimizer(self) -> rl.AdamParameters:
        """The optimiser of actor and critics."""
        return rl.AdamParameters(learning_rate=self.learning_rate)

    def experiment(self, agent: rl.AgentParameters, marks: Marks) -> rl.GraphManager:
        """The agent on the task."""
        return flat(
            self,
            agent,
            self.environment,
            self.schedule(self.evaluation_interval, heatup=self.heatup),
            validation=self.validation(marks),
        )
