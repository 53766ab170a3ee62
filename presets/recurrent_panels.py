"""PPO that learns from sequences, for presets of recurrent networks."""

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, ppo_optimizer


def recurrent_ppo(
    panel: FlatPanel,
    torso: rl.TorsoParameters,
    *,
    entropy_coefficient: float,
    sequence: int = 64,
) -> rl.PPOAgentParameters:
    """PPO that learns from sequences of up to so many steps, in four minibatches per epoch."""
    return rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(128 * panel.num_envs),
            epochs=5,
            minibatch=32 * panel.num_envs,
            sequence=sequence,
            discount=panel.discount,
            entropy_coefficient=entropy_coefficient,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        ),
        network=rl.ActorCriticParameters(torso=torso),
        optimizer=ppo_optimizer(panel.learning_rate),
    )
