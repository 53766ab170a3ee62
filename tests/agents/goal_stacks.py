"""Small stacks whose lower level receives goals on a point mass."""

from dataclasses import replace

import coach_rl as rl
from tests.builders import RELU, graph

ABSOLUTE = rl.GoalSpace(
    key="achieved_goal",
    low=(-1.0, -1.0),
    high=(1.0, 1.0),
    threshold=(0.05, 0.05),
    reward="dense",
)
RELATIVE = replace(ABSOLUTE, relative=True, reach=(0.5, 0.25), observed="relative")
TORSO = RELU
SETTINGS = {
    "learning": rl.LearningParameters(
        batch=8, updates_per_step=0.1, learning_starts=20, report_every=4
    ),
    "actor": rl.ActorParameters(torso=TORSO),
    "critic": rl.CriticParameters(torso=TORSO),
    "update_mode": "eager",
}


def stack(top, low=None, *, goals=RELATIVE, training=240, num_envs=3, heatup=30, **low_level):
    """Rows out of phase: episodes end at their goal or at step 23."""
    level = {"goal_space": goals, "horizon": 7, **low_level}
    return graph(
        rl.LevelParameters(name="top", agent=top),
        rl.LevelParameters(name="low", agent=low or rl.TD3AgentParameters(**SETTINGS), **level),
        environment=rl.GoalPointMassParameters(threshold=0.2, terminate=True, max_episode_steps=23),
        num_envs=num_envs,
        heatup=heatup,
        training=training,
        progress_interval=11,  # in the middle of decisions
    )
