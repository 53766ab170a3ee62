"""Rainbow on Atari games, from pictures, with the settings of its paper."""

from dataclasses import dataclass, replace

import coach_rl as rl
from coach_rl.presets.atari_games import AtariPanel


@dataclass(frozen=True, kw_only=True)
class Panel(AtariPanel):
    """Settings to change with -cp."""

    steps: int = 50_000_000
    learning_rate: float = 6.25e-5
    n_step: int = 3
    """Rewards summed before bootstrapping."""
    noise: float = 0.5
    """Standard deviation of the noise at the start, times the square root of a layer's inputs."""
    memory: int = 1_000_000
    """Transitions kept, of one picture each: 7 GB."""
    batch: int = 32
    """Batch size."""
    updates_per_step: float = 0.25
    """Gradient steps per environment step."""
    learning_starts: int = 20_000
    """Environment steps before the first gradient step: 80,000 frames."""
    target_period: int = 2_000
    """Gradient steps from one copy of the target network to the next: 32,000 frames."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Rainbow on an Atari game.

    Settings of Hessel et al. 2018 (arXiv:1710.02298), table 1, for 200 million frames; evaluations
    act with the mean weights. Not yet run to its end here. Needs the extra `atari`.
    """
    if panel.is_recurrent:
        raise rl.ParameterError(
            f"Rainbow sums the rewards of several steps, which sequences for recurrence="
            f"{panel.recurrence!r} have no use for; leave it out, or use Atari_DQN"
        )
    torso = panel.network(orthogonal=False)
    if not isinstance(torso, rl.TorsoParameters):
        raise rl.ParameterError(
            f"Rainbow explores by noise in all dense layers, and torso={panel.torso!r} has one of "
            "its own without noise; use torso='nature', or Atari_DQN"
        )
    streams = torso.middleware
    agent = rl.DQNAgentParameters(
        algorithm=rl.DQNAlgorithmParameters(
            discount=panel.discount,
            double=True,
            target_sync=rl.TargetSync(every=panel.target_period),
        ),
        learning=rl.LearningParameters(
            batch=panel.batch,
            updates_per_step=panel.updates_per_step,
            learning_starts=panel.learning_starts,
        ),
        memory=rl.ReplayMemoryParameters(
            capacity=panel.memory,
            n_step=panel.n_step,
            prioritised=rl.PrioritisedParameters(
                alpha=0.5, anneal_beta_over=rl.EnvironmentSteps(panel.steps)
            ),
            frame_stack=panel.stacked,
        ),
        exploration=rl.NoisyNet(initial_noise=panel.noise),
        network=rl.QNetworkParameters(
            torso=replace(torso, middleware=()),
            streams=streams,
            dueling=True,
            head=rl.CategoricalHead(),
        ),
        optimizer=rl.AdamParameters(learning_rate=panel.learning_rate, epsilon=1.5e-4),
        input_filter=panel.input_filter,
    )
    return panel.experiment(agent)
