"""DQN with hindsight on flipping bits: `BitFlip_DQN` and nothing else but relabelled goals."""

from coach_rl.graph_managers import BasicRLGraphManager
from coach_rl.presets.BitFlip_DQN import parameters


def graph_manager(
    bits: int = 16,
    num_envs: int = 8,
    steps: int = 50_000,
    learning_rate: float = 1e-3,
    discount: float = 0.98,
    epsilon: float = 0.1,
    ratio: float = 4.0,
) -> BasicRLGraphManager:
    """DQN with hindsight replay flips bits towards a goal.

    Settings after Andrychowicz et al. 2017: four transitions in five get a goal that their own
    episode reached later.

    Args:
        bits: How many there are, and steps of an episode.
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        learning_rate: Adam's step size.
        discount: Gamma.
        epsilon: Share of random actions in the end.
        ratio: Relabelled transitions for each one left as it was.
    """
    return BasicRLGraphManager(
        parameters(
            bits=bits,
            num_envs=num_envs,
            steps=steps,
            learning_rate=learning_rate,
            discount=discount,
            epsilon=epsilon,
            hindsight_ratio=ratio,
        )
    )
