"""The speaker and the listener of SpeakerListener_PPO with central critics (MAPPO).

Critics are used in training alone, so each sees what both agents see (Yu et al. 2022,
arXiv:2103.01955).
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
    """Gain of the speaker's last layer at the start, see SpeakerListener_PPO."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """A speaker names one of three landmarks, a listener learns what the words mean and goes there.

    Their critics see what both of them see. Needs the extra `pettingzoo`.
    """
    speaker = _member(panel, "speaker_0", "listener_0", gain=panel.voice)
    listener = _member(panel, "listener_0", "speaker_0", gain=0.01)
    return flat(
        panel,
        rl.AgentGroupParameters(members=(speaker, listener)),
        rl.PettingZooParameters(level="mpe2.simple_speaker_listener_v4"),
        panel.schedule(50_000, evaluation_episodes=100, progress_interval=10_000),
        validation=solved(-28.0, within=500_000),
    )


def _member(panel: Panel, name: str, other: str, *, gain: float) -> rl.GroupMember:
    normalised = (rl.ObservationNormalizationFilter(),)
    agent = rl.PPOAgentParameters(
        name=name,
        network=rl.ActorCriticParameters(policy_gain=gain),
        input_filter=rl.InputFilter(observation={name: normalised, other: normalised}),
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
    return replace(rl.GroupMember.of(agent), critic_observations=(other,))
