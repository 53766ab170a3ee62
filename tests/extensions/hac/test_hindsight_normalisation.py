"""Hindsight goals survive the normaliser: what batches show lies within its clip."""

import numpy as np
import pytest
import torch

from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.presets import AntReacher_HAC, Pendulum_HAC, PointMaze_HAC

PANELS = {
    "one fixed goal": (Pendulum_HAC, {"level": "goal_pendulum"}),
    "one fixed goal, alone": (Pendulum_HAC, {"level": "goal_pendulum", "hierarchy": "none"}),
    "narrow goals": (Pendulum_HAC, {}),
    "narrow goals, alone": (Pendulum_HAC, {"hierarchy": "none"}),
    "three levels": (Pendulum_HAC, {"levels": 3}),
    "maze": (PointMaze_HAC, {}),
    "ant": (AntReacher_HAC, {}),
}


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("panel", PANELS)
def test_few_hindsight_goals_are_clipped_by_the_normaliser(panel):
    preset, changes = PANELS[panel]
    panel = preset.Panel(**changes, num_envs=4, layers=(8,), batch=16, updates_per_step=1e-3)
    manager = preset.graph_manager(panel)
    manager.create_graph(Runtime(seed=0, device="cpu"))
    for _ in manager.heatup(EnvironmentSteps(1_000)):
        pass
    for agent in manager.graph.agents.values():
        goals = agent.memory.sample(4_096).observation[GOAL_KEY]
        normal = (goals - agent.normaliser.mean[GOAL_KEY]) * agent.normaliser.scale[GOAL_KEY]
        clipped = (normal.abs() > agent.normaliser.clip).any(dim=1)
        assert clipped.float().mean() < 0.03
        shown = normal.clamp(-agent.normaliser.clip, agent.normaliser.clip)
        assert len(torch.unique(shown, dim=0)) > 0.95 * len(np.unique(goals.numpy(), axis=0))
    manager.close()
