"""Two agents of unlike kinds, one PPO each: one knows the goal and can only speak, one can only go.

The example for several agents on one level; docs/multi_agent.md builds it step by step.
"""

from dataclasses import dataclass, replace

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, ppo_optimizer, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    num_envs: int = 16
    steps: int = 500_000
    learning_rate: float = 1e-3
    """Learning rate of both agents at the start; it falls to zero."""
    discount: float = 0.95
    entropy: float = 0.01
    """Weight of the entropy bonus."""
    voice: float = 5.0
    """Gain of the speaker's last layer at the start. A large one makes it use different words for
    different goals before it has learned anything, so there is something for the listener to find
    out. With PPO's usual 0.01 the listener learns to ignore it first, and it stays mute."""
    central: bool = False
    """If True, each critic sees what both agents see, as in SpeakerListener_MAPPO."""


AGENTS = ("speaker_0", "listener_0")


def graph_manager(panel: Panel) -> rl.GraphManager:
    """A speaker names one of three landmarks, a listener learns what the words mean and goes there.

    Lowe et al. 2017's cooperative communication (arXiv:1706.02275), in MPE2's version. Needs the
    extra `pettingzoo`.
    """
    members = tuple(_member(panel, name) for name in AGENTS)
    return flat(
        panel,
        rl.AgentGroupParameters(members=members),
        rl.PettingZooParameters(level="mpe2.simple_speaker_listener_v4"),
        panel.schedule(50_000, evaluation_episodes=100, progress_interval=10_000),
        validation=solved(-28.0, within=500_000),
    )


def _member(panel: Panel, name: str) -> rl.GroupMember:
    others = tuple(other for other in AGENTS if other != name) if panel.central else ()
    agent = rl.PPOAgentParameters(
        name=name,
        network=rl.ActorCriticParameters(policy_gain=panel.voice if name == "speaker_0" else 0.01),
        input_filter=rl.InputFilter(
            observation={key: (rl.ObservationNormalizationFilter(),) for key in (name, *others)}
        ),
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(1_600),
            epochs=10,
            minibatch=400,
            discount=panel.discount,
            entropy_coefficient=panel.entropy,
            scale_returns=True,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        ),
        optimizer=ppo_optimizer(panel.learning_rate),
    )
    return replace(rl.GroupMember.of(agent), critic_observations=others)
