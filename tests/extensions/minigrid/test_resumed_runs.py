"""Runs on MiniGrid continue bit for bit from a checkpoint in the middle of episodes."""

from dataclasses import replace

import pytest

import coach_rl as rl
from coach_rl.presets import MiniGrid_PPO
from tests.agents.resuming import after, assert_resumes

SMALL = {"num_envs": 2, "rollout": 64, "minibatch": 32, "epochs": 1, "steps": 400, "units": 8}


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    "panel",
    [
        {"level": "DoorKey-8x8"},
        {"level": "KeyCorridorS3R3", "recurrence": "gru", "sequence": 16},
        {"level": "BabyAI-GoToLocal", "mission": "words", "given": ("position",)},
    ],
)
def test_resumed_run_continues_bit_for_bit(panel, tmp_path):
    def build(seed):
        experiment = MiniGrid_PPO.graph_manager(MiniGrid_PPO.Panel(**SMALL, **panel))
        parameters = experiment.parameters
        schedule = replace(parameters.schedule, evaluation_interval=None)
        experiment.parameters = replace(parameters, schedule=schedule)
        experiment.create_graph(rl.Runtime(seed=seed, device="cpu"))
        return experiment

    assert_resumes(build, tmp_path, after(120), after(220))
