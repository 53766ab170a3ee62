"""DQN lands on the moon: shaped rewards, an engine to switch on and off, some minutes."""

from dataclasses import dataclass

from coach_rl import (
    AdamParameters,
    BasicGraphParameters,
    BasicRLGraphManager,
    DQNAgentParameters,
    DQNAlgorithmParameters,
    EnvironmentEpisodes,
    EnvironmentSteps,
    EpsilonGreedy,
    GraphManager,
    GymnasiumParameters,
    LearningParameters,
    LinearSchedule,
    QNetworkParameters,
    ReplayMemoryParameters,
    ScheduleParameters,
    TargetSync,
    TorsoParameters,
    ValidationParameters,
)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Settings to change with -cp."""

    num_envs: int = 1
    """Environments in parallel."""
    steps: int = 200_000
    """Environment steps to train for."""
    learning_rate: float = 6.3e-4
    """Learning rate at the start; it falls to zero."""
    discount: float = 0.99
    """Discount factor."""
    double: bool = True
    """If True, the online network chooses the next action and the target network rates it."""
    dueling: bool = False
    """If True, the state's value and the advantages have separate streams."""
    n_step: int = 1
    """Rewards summed before bootstrapping."""
    target_period: int = 250
    """Gradient steps from one copy of the target network to the next."""
    epsilon: float = 0.1
    """Fraction of random actions in the end."""
    epsilon_steps: int = 12_000
    """Environment steps over which the fraction falls from 1."""


def graph_manager(panel: Panel) -> GraphManager:
    """DQN lands a craft between two flags.

    Settings after RL Baselines3 Zoo's tuned LunarLander, one gradient step per environment step.
    Needs the extra `box2d`.
    """
    torso = TorsoParameters(middleware=(256, 256), activation="relu", orthogonal=False)
    epsilon_steps = EnvironmentSteps(panel.epsilon_steps)
    agent = DQNAgentParameters(
        algorithm=DQNAlgorithmParameters(
            discount=panel.discount,
            double=panel.double,
            target_sync=TargetSync(every=panel.target_period),
        ),
        learning=LearningParameters(batch=128, updates_per_step=1.0, learning_starts=128),
        memory=ReplayMemoryParameters(capacity=50_000, n_step=panel.n_step),
        exploration=EpsilonGreedy(
            epsilon=LinearSchedule(start=1.0, end=panel.epsilon, over=epsilon_steps)
        ),
        network=QNetworkParameters(torso=torso, dueling=panel.dueling),
        learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
        optimizer=AdamParameters(learning_rate=panel.learning_rate, max_gradient_norm=10.0),
    )
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=agent,
            environment=GymnasiumParameters(level="LunarLander-v3"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(panel.steps),
                evaluation_interval=EnvironmentSteps(10_000),
                evaluation_episodes=EnvironmentEpisodes(20),
            ),
            num_envs=panel.num_envs,
            validation=ValidationParameters(reward=200.0, within=EnvironmentSteps(200_000)),
        )
    )
