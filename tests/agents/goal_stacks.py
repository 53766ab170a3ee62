"""Small stacks whose lower level receives goals on a point mass."""

from dataclasses import replace

from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.td3_agent import TD3AgentParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.core.goals import GoalSpace
from coach_rl.environments.toy import GoalPointMassParameters
from coach_rl.graph_managers import LevelParameters
from tests.builders import RELU, graph

ABSOLUTE = GoalSpace(
    key="achieved_goal",
    low=(-1.0, -1.0),
    high=(1.0, 1.0),
    threshold=(0.05, 0.05),
    reward="dense",
)
RELATIVE = replace(ABSOLUTE, relative=True, reach=(0.5, 0.25), observed="relative")
TORSO = RELU
SETTINGS = {
    "learning": LearningParameters(
        batch=8, updates_per_step=0.1, learning_starts=20, report_every=4
    ),
    "actor": ActorParameters(torso=TORSO),
    "critic": CriticParameters(torso=TORSO),
    "update_mode": "eager",
}


def stack(top, low=None, *, goals=RELATIVE, training=240, num_envs=3, **low_level):
    """Rows out of phase: episodes end at their goal or at step 23."""
    level = {"goal_space": goals, "horizon": 7, **low_level}
    return graph(
        LevelParameters(name="top", agent=top),
        LevelParameters(name="low", agent=low or TD3AgentParameters(**SETTINGS), **level),
        environment=GoalPointMassParameters(threshold=0.2, terminate=True, max_episode_steps=23),
        num_envs=num_envs,
        heatup=30,
        training=training,
        progress_interval=11,  # in the middle of decisions
    )
