"""DQN on CartPole: the smallest run from a replay memory, solved in a minute or two."""

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
    steps: int = 50_000
    """Environment steps to train for."""
    learning_rate: float = 2.3e-3
    """Learning rate at the start; it falls to zero, else the network forgets now and then."""
    discount: float = 0.99
    """Discount factor."""
    double: bool = True
    """If True, the online network chooses the next action and the target network rates it."""
    dueling: bool = False
    """If True, the state's value and the advantages have separate streams."""
    n_step: int = 1
    """Rewards summed before bootstrapping."""
    target_period: int = 128
    """Gradient steps from one copy of the target network to the next."""
    epsilon: float = 0.04
    """Fraction of random actions in the end."""
    epsilon_steps: int = 8_000
    """Environment steps over which the fraction falls from 1."""


def graph_manager(panel: Panel) -> GraphManager:
    """DQN balances a pole on a cart.

    Settings after RL Baselines3 Zoo's tuned CartPole-v1, which learns in bursts of 128 gradient
    steps after every 256 steps and updates the target network between the bursts.
    """
    torso = TorsoParameters(middleware=(256, 256), activation="relu", orthogonal=False)
    epsilon_steps = EnvironmentSteps(panel.epsilon_steps)
    agent = DQNAgentParameters(
        algorithm=DQNAlgorithmParameters(
            discount=panel.discount,
            double=panel.double,
            target_sync=TargetSync(every=panel.target_period),
        ),
        learning=LearningParameters(batch=64, updates_per_step=0.5, learning_starts=1_000),
        memory=ReplayMemoryParameters(capacity=100_000, n_step=panel.n_step),
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
            environment=GymnasiumParameters(level="CartPole-v1"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(panel.steps),
                evaluation_interval=EnvironmentSteps(2_500),
                evaluation_episodes=EnvironmentEpisodes(10),
            ),
            num_envs=panel.num_envs,
            validation=ValidationParameters(reward=475.0, within=EnvironmentSteps(100_000)),
        )
    )
