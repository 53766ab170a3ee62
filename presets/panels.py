"""Settings and schedules shared by presets, and an experiment with one agent.

Meant to be imported by presets, the shipped ones and yours.
"""

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import coach_rl as rl
from coach_rl.architectures.hidden_states import StatefulLayerParameters

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Settings = TypeVar("Settings", bound="DataclassInstance")


class Sized(Protocol):
    """A panel that has a number of environments."""

    @property
    def num_envs(self) -> int:
        """Environments in parallel."""
        ...


@dataclass(frozen=True, kw_only=True)
class RunPanel:
    """Settings of every run."""

    num_envs: int = 8
    """Environments in parallel."""
    steps: int
    """Environment steps to train for."""

    def schedule(
        self,
        evaluation_interval: int,
        evaluation_episodes: int = 10,
        *,
        heatup: int = 0,
        progress_interval: int = 1_000,
    ) -> rl.ScheduleParameters:
        """The schedule of a run of `steps`; all but the episodes in environment steps."""
        return rl.ScheduleParameters(
            heatup=rl.EnvironmentSteps(heatup),
            training=rl.EnvironmentSteps(self.steps),
            evaluation_interval=rl.EnvironmentSteps(evaluation_interval),
            evaluation_episodes=rl.EnvironmentEpisodes(evaluation_episodes),
            progress_interval=rl.EnvironmentSteps(progress_interval),
        )


@dataclass(frozen=True, kw_only=True)
class FlatPanel(RunPanel):
    """Settings of presets with one agent."""

    learning_rate: float
    """Learning rate at the start; it falls to zero."""
    discount: float = 0.99
    """Discount factor."""


@dataclass(frozen=True, kw_only=True)
class DQNPanel(FlatPanel):
    """Settings of DQN, with the schedule of exploration of RL Baselines3 Zoo."""

    num_envs: int = 1
    learning_rate: float
    """Learning rate at the start; it falls to zero, else the network forgets now and then."""
    double: bool = True
    """If True, the online network chooses the next action and the target network rates it."""
    dueling: bool = False
    """If True, the state's value and the advantages have separate streams."""
    n_step: int = 1
    """Rewards summed before bootstrapping."""
    target_period: int
    """Gradient steps from one copy of the target network to the next."""
    epsilon: float
    """Fraction of random actions in the end."""
    epsilon_steps: int
    """Environment steps over which the fraction falls from 1."""

    def agent(
        self, *, memory: int, batch: int, updates_per_step: float, learning_starts: int
    ) -> rl.DQNAgentParameters:
        """DQN with two hidden layers of 256 units; `memory` is the capacity in transitions."""
        torso = rl.TorsoParameters(middleware=(256, 256), activation="relu", orthogonal=False)
        falling = rl.LinearSchedule(
            start=1.0, end=self.epsilon, over=rl.EnvironmentSteps(self.epsilon_steps)
        )
        return rl.DQNAgentParameters(
            algorithm=rl.DQNAlgorithmParameters(
                discount=self.discount,
                double=self.double,
                target_sync=rl.TargetSync(every=self.target_period),
            ),
            learning=rl.LearningParameters(
                batch=batch, updates_per_step=updates_per_step, learning_starts=learning_starts
            ),
            memory=rl.ReplayMemoryParameters(capacity=memory, n_step=self.n_step),
            exploration=rl.EpsilonGreedy(epsilon=falling),
            network=rl.QNetworkParameters(torso=torso, dueling=self.dueling),
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
            optimizer=rl.AdamParameters(learning_rate=self.learning_rate, max_gradient_norm=10.0),
        )


def with_given(own: Settings, panel: object) -> Settings:
    """Settings of a task or world, replaced by the fields of a panel that aren't None."""
    given = {each.name: getattr(panel, each.name, None) for each in fields(own)}
    changes: Any = {name: value for name, value in given.items() if value is not None}
    return replace(own, **changes)


def noisy(epsilon: float, noise: float) -> rl.EpsilonGreedyNoise:
    """A fraction of random actions, and noise of this standard deviation on the others."""
    return rl.EpsilonGreedyNoise(
        epsilon=rl.ConstantSchedule(value=epsilon),
        noise=rl.GaussianNoise(scale=rl.ConstantSchedule(value=noise)),
    )


def value_bounds(discount: float) -> tuple[float, float] | None:
    """The bounds of sums of rewards of -1 and 0; None without a discount."""
    return (-1 / (1 - discount), 0.0) if discount < 1 else None


LayerKind = Literal["none", "gru", "lstm", "min_gru", "attention"]
"""Kinds of recurrent layers, for panels."""


def recurrent_layer(
    kind: LayerKind, size: int, *, skip: bool = False, span: int | None = None
) -> StatefulLayerParameters | None:
    """The recurrent layer of a torso; None where there is none."""
    if kind == "none":
        return None
    return rl.layer_of_kind(kind, size=size, skip=skip, span=span)


def ppo_optimizer(learning_rate: float) -> rl.AdamParameters:
    """Adam with the epsilon and the gradient clipping that are usual for PPO."""
    return rl.AdamParameters(learning_rate=learning_rate, epsilon=1e-5, max_gradient_norm=0.5)


def solved(reward: float, within: int) -> rl.ValidationParameters:
    """The mean reward of an evaluation to reach within so many environment steps."""
    return rl.ValidationParameters(reward=reward, within=rl.EnvironmentSteps(within))


def arrives(success_rate: float, within: int) -> rl.ValidationParameters:
    """The success rate of an evaluation to reach within so many environment steps."""
    return rl.ValidationParameters(success_rate=success_rate, within=rl.EnvironmentSteps(within))


def flat(
    panel: Sized,
    agent: rl.AgentParameters,
    environment: rl.EnvironmentParameters,
    schedule: rl.ScheduleParameters,
    *,
    validation: rl.ValidationParameters | None,
    threads: int = 1,
) -> rl.GraphManager:
    """One agent in one environment; see `GraphParameters`."""
    return rl.BasicRLGraphManager(
        rl.BasicGraphParameters(
            agent=agent,
            environment=environment,
            schedule=schedule,
            num_envs=panel.num_envs,
            threads=threads,
            validation=validation,
        )
    )


def hrl(
    panel: Sized,
    levels: tuple[rl.LevelParameters, ...],
    environment: rl.EnvironmentParameters,
    schedule: rl.ScheduleParameters,
    *,
    evaluation_environment: rl.EnvironmentParameters | None = None,
    reward_discount: float = 1.0,
    validation: rl.ValidationParameters | None,
) -> rl.GraphManager:
    """Levels on top of an environment, top first; see `GraphParameters`."""
    return rl.HRLGraphManager(
        rl.GraphParameters(
            levels=levels,
            environment=environment,
            evaluation_environment=evaluation_environment,
            schedule=schedule,
            num_envs=panel.num_envs,
            reward_discount=reward_discount,
            validation=validation,
        )
    )
