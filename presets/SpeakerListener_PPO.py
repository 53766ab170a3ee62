"""Two agents of unlike kinds, one PPO each: one knows the goal and can only speak, one can only go.

The example for several agents on one level; docs/multi_agent.md builds it step by step.
"""

from coach_rl.agents.agent_group import AgentGroupParameters, GroupMember
from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.architectures.actor_critic import ActorCriticParameters
from coach_rl.architectures.update_engine import AdamParameters
from coach_rl.core.schedules import LinearSchedule
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.pettingzoo import PettingZooParameters
from coach_rl.filters import InputFilter, ObservationNormalizationFilter
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    ScheduleParameters,
    ValidationParameters,
)


def graph_manager(
    num_envs: int = 16,
    steps: int = 500_000,
    learning_rate: float = 1e-3,
    discount: float = 0.95,
    entropy: float = 0.01,
    voice: float = 5.0,
) -> BasicRLGraphManager:
    """A speaker names one of three landmarks, a listener learns what the words mean and goes there.

    Lowe et al. 2017's cooperative communication (arXiv:1706.02275), in MPE2's version. Needs the
    extra `pettingzoo`.

    Args:
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        learning_rate: Adam's step size at the start, of both agents; it falls to zero.
        discount: Gamma.
        entropy: Weight of the entropy bonus.
        voice: Gain of the speaker's last layer at the start. Large: it says other words for other
            goals before it has learned anything, so there is something for the listener to find
            out. With PPO's usual 0.01 the listener learns to ignore it first, and it stays mute.
    """
    members = tuple(
        GroupMember.of(
            PPOAgentParameters(
                name=name,
                network=ActorCriticParameters(policy_gain=gain),
                input_filter=InputFilter(observation={name: (ObservationNormalizationFilter(),)}),
                algorithm=PPOAlgorithmParameters(
                    rollout=EnvironmentSteps(1_600),
                    epochs=10,
                    minibatch=400,
                    discount=discount,
                    entropy_coefficient=entropy,
                    scale_returns=True,
                    learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
                ),
                optimizer=AdamParameters(
                    learning_rate=learning_rate, epsilon=1e-5, max_gradient_norm=0.5
                ),
            )
        )
        for name, gain in (("speaker_0", voice), ("listener_0", 0.01))
    )
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=AgentGroupParameters(members=members),
            environment=PettingZooParameters(level="mpe2.simple_speaker_listener_v4"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(50_000),
                evaluation_episodes=EnvironmentEpisodes(100),
                progress_interval=EnvironmentSteps(10_000),
            ),
            num_envs=num_envs,
            validation=ValidationParameters(reward=-28.0, within=EnvironmentSteps(500_000)),
        )
    )
