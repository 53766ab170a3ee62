"""The preset of a T-maze with options is solved by an upper level that remembers."""

from dataclasses import replace

import numpy as np
import pytest

import coach_rl as rl
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
    preset = rl.load_preset(rl.find_preset("TMaze_PPO_Options"))
    parameters = preset.build({"length": length, "num_envs": 1}).parameters
    top, low = parameters.levels
    top = replace(top, agent=rl.ScriptedAgentParameters(policy=Remembering()))
    with rl.HRLGraphManager(replace(parameters, levels=(top, low))) as manager:
        manager.create_graph(rl.Runtime(device="cpu"))
        scalars = manager.evaluate(rl.EnvironmentEpisodes(20)).scalars
    assert scalars["evaluation/success_rate"] == 1
    assert scalars["evaluation/reward_mean"] == 4
