"""DDPG with hindsight moves a robot's arm to goals it never meets by chance, for rewards -1 and 0.

Settings of OpenAI Baselines' program for Plappert et al. 2018. Needs the extra
`robotics`. In published results Push, PickAndPlace and Slide take a million steps or more.
"""

from dataclasses import dataclass
from typing import ClassVar

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, noisy, solved, value_bounds

GRIPPER = (0, 1, 2)
OBJECT = (3, 4, 5)
"""Elements of the observation with their positions, in metres."""

MOVED = {"Reach": GRIPPER, "Push": OBJECT, "Slide": OBJECT, "PickAndPlace": OBJECT}
"""The object that has to get to the goal, by task."""


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = tuple(f"Fetch{task}{kind}-v4" for task in MOVED for kind in ("", "Dense"))
    level: str = "FetchReach-v4"
    """A Fetch task, e.g. FetchReach-v4, FetchPush-v4 or FetchReachDense-v4."""
    num_envs: int = 2
    steps: int = 10_000
    """Environment steps to train for, heat-up included."""
    hindsight: bool = True
    """If True, it learns from other goals as well; False is the control, all else equal."""
    ratio: float = 4.0
    """Relabelled transitions for each one left as it was."""
    learning_rate: float = 1e-3
    """Learning rate of actor and critic."""
    discount: float = 0.98
    """Discount factor; 1 - 1/50 for 50 steps."""
    epsilon: float = 0.3
    """Fraction of random actions while exploring."""
    noise: float = 0.2
    """Standard deviation of the noise on the other actions, in half-ranges of the action."""
    action_penalty: float = 1.0
    """Weight of the actions' mean square in the actor's loss."""
    batch: int = 256
    """Batch size."""
    updates_per_step: float = 0.8
    """Gradient steps per environment step; 40 for an episode of 50."""
    layers: tuple[int, ...] = (256, 256, 256)
    """Sizes of the hidden layers of actor and critic."""
    evaluation_interval: int = 1_000
    """Environment steps between evaluations."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """DDPG with hindsight replay on Gymnasium-Robotics' Fetch tasks."""
    task, is_dense = _task(panel.level)
    goal = rl.GoalSpace(
        low=(0.0,) * 3,
        high=(3.0,) * 3,
        threshold=(0.05,) * 3,
        elements=MOVED[task],
        reward="dense" if is_dense else "sparse",
        reached_within="ball",
    )
    hindsight = rl.HindsightParameters(goal=goal, strategy="future", ratio=panel.ratio)
    torso = rl.TorsoParameters(middleware=panel.layers, activation="relu", orthogonal=False)
    agent = rl.DDPGAgentParameters(
        algorithm=rl.DDPGAlgorithmParameters(
            discount=panel.discount,
            target_sync=rl.TargetSync(rate=0.05, every=40),
            clip_targets=value_bounds(panel.discount),
            action_penalty=panel.action_penalty,
        ),
        learning=rl.LearningParameters(batch=panel.batch, updates_per_step=panel.updates_per_step),
        memory=rl.ReplayMemoryParameters(relabelling=hindsight if panel.hindsight else None),
        exploration=noisy(panel.epsilon, panel.noise),
        actor=rl.ActorParameters(torso=torso),
        critic=rl.CriticParameters(torso=torso),
        actor_optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
        critic_optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
        normalise_observations=5.0,
    )
    # The observation contains the achieved goal: neither networks nor memory need it twice.
    keys = {"filter_keys": ("observation", "desired_goal")}
    has_package = ":" in panel.level
    # A short way to the goal costs 1.7 on average, an episode that never gets there 50. So -4 takes
    # a success rate of 95 % or more, whatever the ways are like.
    validation = solved(-4.0, within=5_000)
    return flat(
        panel,
        agent,
        rl.GymnasiumParameters(
            level=panel.level if has_package else f"gymnasium_robotics:{panel.level}",
            wrappers=(("gymnasium.wrappers:FilterObservation", keys),),
        ),
        panel.schedule(panel.evaluation_interval, evaluation_episodes=50, heatup=1_000),
        validation=validation if task == "Reach" and not is_dense else None,
        threads=2,
    )


def _task(level: str) -> tuple[str, bool]:
    """A level's task, e.g. Reach, and whether its reward is dense; UnknownNameError for others."""
    name, _, version = level.removeprefix("gymnasium_robotics:").partition("-v")
    is_dense = name.endswith("Dense")
    task = name.removeprefix("Fetch").removesuffix("Dense")
    if task not in MOVED or not name.startswith("Fetch") or not version.isdecimal():
        raise rl.UnknownNameError("Fetch task", level, Panel.LEVELS)
    return task, is_dense
