"""DQN on CartPole: the smallest run from a replay memory, solved in a minute or two."""

from coach_rl.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.architectures.optimizers import AdamParameters, TargetSync
from coach_rl.architectures.q_network import QNetworkParameters
from coach_rl.architectures.torso import TorsoParameters
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
    steps: int = 50_000,
    learning_rate: float = 2.3e-3,
    discount: float = 0.99,
    double: bool = True,
    dueling: bool = False,
    n_step: int = 1,
    target_period: int = 128,
    epsilon: float = 0.04,
    epsilon_steps: int = 8_000,
) -> BasicRLGraphManager:
    """DQN balances a pole on a cart.

    Settings after RL Baselines3 Zoo's tuned CartPole-v1, which learns in bursts of 128 gradient
    steps after every 256 steps, the target network following between the bursts. The step size
    falls, else the network forgets now and then what it could.

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
                learning=LearningParameters(batch=64, updates_per_step=0.5, learning_starts=1_000),
                memory=ReplayMemoryParameters(capacity=100_000, n_step=n_step),
                exploration=EpsilonGreedy(
                    epsilon=LinearSchedule(
                        start=1.0, end=epsilon, over=EnvironmentSteps(epsilon_steps)
                    )
                ),
                network=QNetworkParameters(torso=torso, dueling=dueling),
                learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
                optimizer=AdamParameters(learning_rate=learning_rate, max_gradient_norm=10.0),
            ),
            environment=GymnasiumParameters(level="CartPole-v1"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(2_500),
                evaluation_episodes=EnvironmentEpisodes(10),
            ),
            num_envs=num_envs,
            validation=ValidationParameters(reward=475.0, within=EnvironmentSteps(100_000)),
        )
    )
