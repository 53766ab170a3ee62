"""DQN on Atari games, from pictures: plain, or with the parts of Rainbow that are switched on."""

from dataclasses import dataclass
from typing import Literal

import coach_rl as rl
from coach_rl.presets.atari_games import AtariPanel


@dataclass(frozen=True, kw_only=True)
class Panel(AtariPanel):
    """Settings to change with -cp."""

    learning_rate: float = 1e-4
    """Learning rate."""
    double: bool = False
    """If True, the online network chooses the next action and the target network rates it."""
    dueling: bool = False
    """If True, the state's value and the advantages have separate streams."""
    head: Literal["mean", "c51", "quantiles"] = "mean"
    """Output for an action's return: its mean, probabilities of fixed returns, or quantiles."""
    n_step: int = 1
    """Rewards summed before bootstrapping."""
    prioritised: bool = False
    """If True, transitions are sampled in proportion to their errors."""
    memory: int = 100_000
    """Transitions kept, of one picture each: 0.7 GB; 1_000_000 in most papers."""
    storage: Literal["cpu", "disk"] = "cpu"
    """The place of the pictures; disk: in files of the run, which its checkpoints share."""
    batch: int = 32
    """Batch size."""
    updates_per_step: float = 0.25
    """Gradient steps per environment step."""
    learning_starts: int = 80_000
    """Environment steps before the first gradient step."""
    target_period: int = 250
    """Gradient steps from one copy of the target network to the next: 1,000 environment steps."""
    epsilon: float = 0.01
    """Fraction of random actions in the end."""
    epsilon_steps: int = 1_000_000
    """Environment steps over which the fraction falls from 1."""
    evaluation_epsilon: float = 0.01
    """Fraction of random actions in evaluations."""
    sequence: int = 16
    """Transitions of a sequence that recurrent networks learn from."""

    @property
    def output(self) -> "rl.MeanHead | rl.CategoricalHead | rl.QuantileHead":
        """The output for an action's return."""
        match self.head:
            case "c51":
                return rl.CategoricalHead()
            case "quantiles":
                return rl.QuantileHead()
            case "mean":
                return rl.MeanHead()


def graph_manager(panel: Panel) -> rl.GraphManager:
    """DQN on an Atari game.

    Settings of CleanRL for all games, but for the memory of RL Baselines3 Zoo, a tenth of the usual
    one. Needs the extra `atari`.
    """
    falling = rl.LinearSchedule(
        start=1.0, end=panel.epsilon, over=rl.EnvironmentSteps(panel.epsilon_steps)
    )
    draws = rl.SequenceParameters(length=panel.sequence) if panel.is_recurrent else None
    agent = rl.DQNAgentParameters(
        algorithm=rl.DQNAlgorithmParameters(
            discount=panel.discount,
            double=panel.double,
            target_sync=rl.TargetSync(every=panel.target_period),
        ),
        learning=rl.LearningParameters(
            batch=panel.batch,
            updates_per_step=panel.updates_per_step,
            learning_starts=panel.learning_starts,
        ),
        memory=rl.ReplayMemoryParameters(
            capacity=panel.memory,
            storage=rl.DiskStorage() if panel.storage == "disk" else "cpu",
            n_step=panel.n_step,
            prioritised=rl.PrioritisedParameters() if panel.prioritised else None,
            frame_stack=panel.stacked,
            draws=draws or rl.SingleTransitions(),
        ),
        exploration=rl.EpsilonGreedy(epsilon=falling),
        network=rl.QNetworkParameters(
            torso=panel.network(orthogonal=False), dueling=panel.dueling, head=panel.output
        ),
        optimizer=rl.AdamParameters(learning_rate=panel.learning_rate, epsilon=1e-8),
        input_filter=panel.input_filter,
    )
    return panel.experiment(agent, random_actions=panel.evaluation_epsilon)
