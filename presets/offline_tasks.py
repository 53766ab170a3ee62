"""Experiments that learn from a data set, for presets. Meant to be imported, also by yours."""

from dataclasses import dataclass
from typing import ClassVar

import coach_rl as rl
from coach_rl.presets.mujoco_tasks import TaskPanel


@dataclass(frozen=True, kw_only=True)
class DataPanel:
    """Settings of runs that learn from a data set, and then in the world if wanted."""

    data: str
    """The data set: a file, a Minari id or folder, or a sample, data:NAME."""
    updates: int = 100_000
    """Gradient updates from the data."""
    steps: int = 0
    """Environment steps in the world after that, with an update each; 0: none."""
    data_share: float | None = None
    """Share of the data in each batch there; None: all transitions are equally likely."""
    num_envs: int = 1
    """Environments in parallel, in the world."""
    batch: int = 256
    """Transitions per update."""
    evaluation_interval: int = 10_000
    """Gradient updates between evaluations."""
    memory: int = 1_100_000
    """Transitions kept, the data's and the world's."""
    layers: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers."""

    @property
    def torso(self) -> rl.TorsoParameters:
        """The hidden layers."""
        return rl.TorsoParameters(middleware=self.layers, activation="relu", orthogonal=False)

    @property
    def learning(self) -> rl.LearningParameters:
        """Batch size and frequency of updates; the data are there from the start."""
        return rl.LearningParameters(batch=self.batch, updates_per_step=1.0, learning_starts=1)

    @property
    def replay_memory(self) -> rl.ReplayMemoryParameters:
        """Parameters of the memory."""
        return rl.ReplayMemoryParameters(capacity=self.memory)


@dataclass(frozen=True, kw_only=True)
class MujocoPolicyPanel(DataPanel):
    """Settings of presets that learn policies of MuJoCo tasks from data, with values or without."""

    LEVELS: ClassVar = TaskPanel.LEVELS
    level: str = "hopper"
    """The MuJoCo task of the data, e.g. hopper or Hopper-v5."""
    data: str = "data:hopper-expert"
    learning_rate: float = 3e-4
    """Learning rate of all networks."""
    normalise: float | None = 10.0
    """Observations are normalised over the data, and clipped to this; None: they are not."""

    @property
    def adam(self) -> rl.AdamParameters:
        """The optimiser of all networks."""
        return rl.AdamParameters(learning_rate=self.learning_rate)


@dataclass(frozen=True, kw_only=True)
class MujocoDataPanel(MujocoPolicyPanel):
    """Settings of presets that learn values in MuJoCo tasks from data."""

    discount: float = 0.99
    """Discount factor."""


def from_data(
    panel: DataPanel,
    agent: rl.AgentParameters,
    environment: rl.EnvironmentParameters,
    evaluation_environment: rl.EnvironmentParameters | None = None,
) -> rl.GraphManager:
    """An agent that learns from the panel's data, and then in the world.

    Args:
        panel: The preset's settings.
        agent: The agent.
        environment: The world of evaluations, and of training after the updates.
        evaluation_environment: The world of evaluations where it is another one.
    """
    turn, schedule = run_length(panel)
    return rl.BatchGraphManager(
        rl.BatchGraphParameters(
            data=panel.data,
            updates=turn,
            data_share=panel.data_share,
            agent=agent,
            environment=environment,
            evaluation_environment=evaluation_environment,
            num_envs=panel.num_envs,
            schedule=schedule,
        )
    )


def run_length(panel: DataPanel, *, levels: int = 1) -> tuple[int | None, rl.ScheduleParameters]:
    """Updates after which a run turns to the world, None: never; and its schedule.

    Args:
        panel: The preset's settings, in updates of each level.
        levels: Number of levels, whose updates a run sums.
    """
    updates = panel.updates * levels
    schedule = rl.batch_schedule(updates, every=panel.evaluation_interval * levels)
    if not panel.steps:
        return None, schedule
    return updates, rl.ScheduleParameters(
        training=rl.EnvironmentSteps(panel.steps),
        evaluation_interval=schedule.evaluation_interval,
        evaluation_episodes=schedule.evaluation_episodes,
        progress_interval=schedule.progress_interval,
    )
