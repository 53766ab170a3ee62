"""DQN lands on the moon: shaped rewards, an engine to switch on and off, some minutes."""

from coach_rl.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.architectures.q_network import QNetworkParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.architectures.update_engine import AdamParameters, TargetSync
from coach_rl.core.schedules import LinearSchedule
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.exploration_policies import EpsilonGreedy
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    ScheduleParameters,
    ValidationParameters,
)
from coach_rl.memories import ReplayMemoryParameters


def graph_manager(
    num_envs: int = 1,
    steps: int = 200_000,
    learning_rate: float = 6.3e-4,
    discount: float = 0.99,
    double: bool = True,
    dueling: bool = False,
    n_step: int = 1,
    target_period: int = 250,
    epsilon: float = 0.1,
    epsilon_steps: int = 12_000,
) -> BasicRLGraphManager:
    """DQN lands a craft between two flags.

    Settings after RL Baselines3 Zoo's tuned LunarLander, one gradient step per environment step.
    Needs the extra `box2d`.

    Args:
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        learning_rate: Adam's step size at the start; it falls to zero.
        discount: Gamma.
        double: Let the online network choose the next action, the target network judge it.
        dueling: Separate streams for the state's value and the advantages.
        n_step: Rewards summed before bootstrapping.
        target_period: Gradient steps from one copy of the target network to the next.
        epsilon: Share of random actions in the end.
        epsilon_steps: Environment steps over which it falls from 1.
    """
    torso = TorsoParameters(middleware=(256, 256), activation="relu", orthogonal=False)
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=DQNAgentParameters(
                algorithm=DQNAlgorithmParameters(
                    discount=discount, double=double, target_sync=TargetSync(every=target_period)
                ),
                learning=LearningParameters(batch=128, updates_per_step=1.0, learning_starts=128),
                memory=ReplayMemoryParameters(capacity=50_000, n_step=n_step),
                exploration=EpsilonGreedy(
                    epsilon=LinearSchedule(
                        start=1.0, end=epsilon, over=EnvironmentSteps(epsilon_steps)
                    )
                ),
                network=QNetworkParameters(torso=torso, dueling=dueling),
                learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
                optimizer=AdamParameters(learning_rate=learning_rate, max_gradient_norm=10.0),
            ),
            environment=GymnasiumParameters(level="LunarLander-v3"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(10_000),
                evaluation_episodes=EnvironmentEpisodes(20),
            ),
            num_envs=num_envs,
            validation=ValidationParameters(reward=200.0, within=EnvironmentSteps(200_000)),
        )
    )
