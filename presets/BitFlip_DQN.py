"""DQN on flipping bits, with hindsight (`BitFlip_DQN_HER`) and without, which fails at 16 bits.

Settings after Andrychowicz et al. 2017, whose plain DQN failed from 13 bits.
"""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, solved, value_bounds


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    bits: int = 16
    """Number of bits, and steps of an episode."""
    steps: int = 50_000
    learning_rate: float = 1e-3
    """Learning rate of the network."""
    discount: float = 0.98
    epsilon: float = 0.1
    """Fraction of random actions in the end."""


@dataclass(frozen=True, kw_only=True)
class HindsightPanel(Panel):
    """Settings to change with -cp."""

    ratio: float = 4.0
    """Relabelled transitions for each one left as it was."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """DQN flips bits towards a goal, without hindsight: the control, which fails.

    The validation is that of `BitFlip_DQN_HER` and is not reached with 16 bits.
    """
    return _experiment(panel, hindsight=None)


def HER(panel: HindsightPanel) -> rl.GraphManager:
    """DQN with hindsight replay flips bits towards a goal.

    Four transitions in five get a goal that their own episode reached later.
    """
    goal = rl.GoalSpace(
        low=(0.0,) * panel.bits,
        high=(1.0,) * panel.bits,
        threshold=(0.0,) * panel.bits,
        key="achieved_goal",
    )
    hindsight = rl.HindsightParameters(
        goal=goal, strategy="future", ratio=panel.ratio, goal_ends_episode=True
    )
    return _experiment(panel, hindsight=hindsight)


def _experiment(panel: Panel, hindsight: rl.HindsightParameters | None) -> rl.GraphManager:
    torso = rl.TorsoParameters(middleware=(256,), activation="relu", orthogonal=False)
    # A failed episode costs 1 per bit, a perfect one half of that less 1, on average. A mark at 9
    # of 10 successes does not fail a perfect agent whose starts are harder than most.
    perfect = 1 - panel.bits / 2
    failed = -float(panel.bits)
    epsilon = rl.LinearSchedule(start=1.0, end=panel.epsilon, over=rl.EnvironmentSteps(10_000))
    agent = rl.DQNAgentParameters(
        algorithm=rl.DQNAlgorithmParameters(
            discount=panel.discount,
            target_sync=rl.TargetSync(rate=0.05),
            clip_targets=value_bounds(panel.discount),
        ),
        learning=rl.LearningParameters(batch=128, updates_per_step=0.25, learning_starts=1_000),
        memory=rl.ReplayMemoryParameters(capacity=1_000_000, relabelling=hindsight),
        exploration=rl.EpsilonGreedy(epsilon=epsilon),
        network=rl.QNetworkParameters(torso=torso),
        optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
    )
    return flat(
        panel,
        agent,
        rl.BitFlipParameters(bits=panel.bits),
        panel.schedule(evaluation_interval=5_000, evaluation_episodes=100),
        validation=solved(0.9 * perfect + 0.1 * failed, within=panel.steps),
    )
