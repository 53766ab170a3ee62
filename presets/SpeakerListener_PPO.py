"""Two agents of unlike kinds, one PPO each: one knows the goal and can only speak, one can only go.

The example for several agents on one level; docs/multi_agent.md builds it step by step.
"""

from dataclasses import dataclass

from coach_rl import (
    ActorCriticParameters,
    AdamParameters,
    AgentGroupParameters,
    BasicGraphParameters,
    BasicRLGraphManager,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GraphManager,
    GroupMember,
    InputFilter,
    LinearSchedule,
    ObservationNormalizationFilter,
    PettingZooParameters,
    PPOAgentParameters,
    PPOAlgorithmParameters,
    ScheduleParameters,
    ValidationParameters,
)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Settings to change with -cp."""

    num_envs: int = 16
    """Environments in parallel."""
    steps: int = 500_000
    """Environment steps to train for."""
    learning_rate: float = 1e-3
    """Learning rate of both agents at the start; it falls to zero."""
    discount: float = 0.95
    """Discount factor."""
    entropy: float = 0.01
    """Weight of the entropy bonus."""
    voice: float = 5.0
    """Gain of the speaker's last layer at the start. A large one makes it say different words for
    different goals before it has learned anything, so there is something for the listener to find
    out. With PPO's usual 0.01 the listener learns to ignore it first, and it stays mute."""


def graph_manager(panel: Panel) -> GraphManager:
    """A speaker names one of three landmarks, a listener learns what the words mean and goes there.

    Lowe et al. 2017's cooperative communication (arXiv:1706.02275), in MPE2's version. Needs the
    extra `pettingzoo`.
    """
    speaker = GroupMember.of(_agent(panel, "speaker_0", gain=panel.voice))
    listener = GroupMember.of(_agent(panel, "listener_0", gain=0.01))
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=AgentGroupParameters(members=(speaker, listener)),
            environment=PettingZooParameters(level="mpe2.simple_speaker_listener_v4"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(panel.steps),
                evaluation_interval=EnvironmentSteps(50_000),
                evaluation_episodes=EnvironmentEpisodes(100),
                progress_interval=EnvironmentSteps(10_000),
            ),
            num_envs=panel.num_envs,
            validation=ValidationParameters(reward=-28.0, within=EnvironmentSteps(500_000)),
        )
    )


def _agent(panel: Panel, name: str, *, gain: float) -> PPOAgentParameters:
    return PPOAgentParameters(
        name=name,
        network=ActorCriticParameters(policy_gain=gain),
        input_filter=InputFilter(observation={name: (ObservationNormalizationFilter(),)}),
        algorithm=PPOAlgorithmParameters(
            rollout=EnvironmentSteps(1_600),
            epochs=10,
            minibatch=400,
            discount=panel.discount,
            entropy_coefficient=panel.entropy,
            scale_returns=True,
            learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
        ),
        optimizer=AdamParameters(
            learning_rate=panel.learning_rate, epsilon=1e-5, max_gradient_norm=0.5
        ),
    )
