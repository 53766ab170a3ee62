"""The preset of a T-maze with options is solved by an upper level that remembers."""

from dataclasses import replace

import numpy as np
import pytest

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.extensions.scripts.scripted_agent import ScriptedAgentParameters
from coach_rl.graph_managers import HRLGraphManager
from tests.environments.test_t_maze import EAST, NORTH, SHOWN, SOUTH


class Remembering:
    """An upper level that remembers the cues of its episodes, which run in step."""

    def __call__(self, observation, space):
        seen = observation["observation"]
        if SHOWN[tuple(seen[0].tolist())] in ("north", "south"):
            self.turn = np.where(seen[:, 0] == 1, SOUTH, NORTH)
        at_junction = (seen == [0, 1, 0]).all(axis=1)
        return np.where(at_junction, self.turn[: len(seen)], EAST)


@pytest.mark.parametrize("length", [10, 50])
def test_t_maze_options_solved_by_an_upper_level_that_remembers(length):
    preset = load_preset(find_preset("TMaze_PPO_Options"))
    parameters = preset.build({"length": length, "num_envs": 1}).parameters
    top, low = parameters.levels
    top = replace(top, agent=ScriptedAgentParameters(policy=Remembering()))
    with HRLGraphManager(replace(parameters, levels=(top, low))) as manager:
        manager.create_graph(Runtime(device="cpu"))
        scalars = manager.evaluate(EnvironmentEpisodes(20)).scalars
    assert scalars["evaluation/success_rate"] == 1
    assert scalars["evaluation/reward_mean"] == 4
