"""DQN on flipping bits: the control of `BitFlip_DQN_HER`, which never meets the goal at 16 bits."""

from coach_rl.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.architectures.optimizers import AdamParameters, TargetSync
from coach_rl.architectures.q_network import QNetworkParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.core.goals import GoalSpace
from coach_rl.core.schedules import LinearSchedule
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.toy import BitFlipParameters
from coach_rl.exploration_policies import EpsilonGreedy
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    ScheduleParameters,
    ValidationParameters,
)
from coach_rl.memories import HindsightParameters, ReplayMemoryParameters


def parameters(
    *,
    bits: int,
    num_envs: int,
    steps: int,
    learning_rate: float,
    discount: float,
    epsilon: float,
    hindsight_ratio: float | None,
) -> BasicGraphParameters:
    """The experiment with and without hindsight, which is the only difference.

    Args:
        bits: How many there are, and steps of an episode.
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        learning_rate: Adam's step size.
        discount: Gamma.
        epsilon: Share of random actions in the end.
        hindsight_ratio: Transitions with other goals for each one as it was; None does without.
    """
    environment = BitFlipParameters(bits=bits)
    goal = GoalSpace(
        low=(0.0,) * bits, high=(1.0,) * bits, threshold=(0.0,) * bits, key="achieved_goal"
    )
    torso = TorsoParameters(middleware=(256,), activation="relu", orthogonal=False)
    # A failed episode costs 1 per bit, a perfect one half of that less 1, on average: with a mark
    # at 9 of 10 successes, starts that are harder than most don't fail an agent that is perfect.
    perfect, failed = 1 - bits / 2, -float(bits)
    return BasicGraphParameters(
        agent=DQNAgentParameters(
            algorithm=DQNAlgorithmParameters(
                discount=discount,
                target_sync=TargetSync(rate=0.05),
                # All rewards are -1 or 0: nothing is worth more, or less than -1 for ever.
                clip_targets=(-1 / (1 - discount), 0.0) if discount < 1 else None,
            ),
            learning=LearningParameters(batch=128, updates_per_step=0.25, learning_starts=1_000),
            memory=ReplayMemoryParameters(
                capacity=1_000_000,
                hindsight=None
                if hindsight_ratio is None
                else HindsightParameters(
                    goal=goal, strategy="future", ratio=hindsight_ratio, goal_ends_episode=True
                ),
            ),
            exploration=EpsilonGreedy(
                epsilon=LinearSchedule(start=1.0, end=epsilon, over=EnvironmentSteps(10_000))
            ),
            network=QNetworkParameters(torso=torso),
            optimizer=AdamParameters(learning_rate=learning_rate),
        ),
        environment=environment,
        schedule=ScheduleParameters(
            training=EnvironmentSteps(steps),
            evaluation_interval=EnvironmentSteps(5_000),
            evaluation_episodes=EnvironmentEpisodes(100),
        ),
        num_envs=num_envs,
        validation=ValidationParameters(
            reward=0.9 * perfect + 0.1 * failed, within=EnvironmentSteps(steps)
        ),
    )


def graph_manager(
    bits: int = 16,
    num_envs: int = 8,
    steps: int = 50_000,
    learning_rate: float = 1e-3,
    discount: float = 0.98,
    epsilon: float = 0.1,
) -> BasicRLGraphManager:
    """DQN flips bits towards a goal, without hindsight: the control, which fails.

    Settings after Andrychowicz et al. 2017, whose plain DQN gave up at 13 bits. The validation is
    that of `BitFlip_DQN_HER` and is not reached with 16.

    Args:
        bits: How many there are, and steps of an episode.
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        learning_rate: Adam's step size.
        discount: Gamma.
        epsilon: Share of random actions in the end.
    """
    return BasicRLGraphManager(
        parameters(
            bits=bits,
            num_envs=num_envs,
            steps=steps,
            learning_rate=learning_rate,
            discount=discount,
            epsilon=epsilon,
            hindsight_ratio=None,
        )
    )
