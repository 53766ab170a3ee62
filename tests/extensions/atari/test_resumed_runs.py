"""Runs on Atari games continue bit for bit from a checkpoint in the middle of games."""

import pytest

import coach_rl as rl
from coach_rl.presets import Atari_DQN, Atari_PPO
from tests.agents.resuming import after, assert_resumes
from tests.extensions.atari.games_for_tests import without_evaluations

SMALL = {"level": "breakout", "num_envs": 2, "steps": 400}
PPO = {"rollout": 64, "minibatch": 32, "epochs": 1}
DQN = {"memory": 300, "learning_starts": 50, "updates_per_step": 0.05}


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize(
    ("preset", "panel"),
    [
        (Atari_PPO, {**PPO, "protocol": "A"}),
        (Atari_DQN, {**DQN, "protocol": "B"}),
    ],
)
def test_resumed_run_continues_bit_for_bit(preset, panel, tmp_path):
    def build(seed):
        experiment = without_evaluations(preset.graph_manager(preset.Panel(**SMALL, **panel)))
        experiment.create_graph(rl.Runtime(seed=seed, device="cpu"))
        return experiment

    assert_resumes(build, tmp_path, after(120), after(220))
