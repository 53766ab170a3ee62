"""Rainbow on CartPole: every part of it, in some minutes."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    steps: int = 60_000
    learning_rate: float = 2e-3
    discount: float = 0.98
    n_step: int = 3
    """Rewards summed before bootstrapping."""
    atoms: int = 51
    """Returns whose probabilities are learned, from 0 to `highest`."""
    highest: float = 50.0
    """The highest of them: 1 / (1 - discount)."""
    noise: float = 0.5
    """Standard deviation of the noise at the start, times the square root of a layer's inputs."""
    target_period: int = 100
    """Gradient steps from one copy of the target network to the next."""
    batch: int = 64
    """Batch size."""
    updates_per_step: float = 0.5
    """Gradient steps per environment step."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Rainbow balances a pole on a cart.

    All parts of Hessel et al. 2018 (arXiv:1710.02298), in settings of a small task: double
    Q-learning, dueling streams, C51, returns of n steps, priorities and noise in the network.
    """
    agent = rl.DQNAgentParameters(
        algorithm=rl.DQNAlgorithmParameters(
            discount=panel.discount,
            double=True,
            target_sync=rl.TargetSync(every=panel.target_period),
        ),
        learning=rl.LearningParameters(
            batch=panel.batch, updates_per_step=panel.updates_per_step, learning_starts=1_000
        ),
        memory=rl.ReplayMemoryParameters(
            capacity=50_000,
            n_step=panel.n_step,
            prioritised=rl.PrioritisedParameters(
                alpha=0.5, anneal_beta_over=rl.EnvironmentSteps(panel.steps)
            ),
        ),
        exploration=rl.NoisyNet(initial_noise=panel.noise),
        network=rl.QNetworkParameters(
            torso=rl.TorsoParameters(middleware=(128,), activation="relu", orthogonal=False),
            streams=(128,),
            dueling=True,
            head=rl.CategoricalHead(atoms=panel.atoms, low=0.0, high=panel.highest),
        ),
        learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        optimizer=rl.AdamParameters(
            learning_rate=panel.learning_rate, epsilon=1e-8, max_gradient_norm=10.0
        ),
    )
    return flat(
        panel,
        agent,
        rl.GymnasiumParameters(level="CartPole-v1"),
        panel.schedule(evaluation_interval=3_000),
        validation=solved(475.0, within=60_000),
    )
