"""Runs from data that `--online` sends into the world, killed there, and resumed to their end."""

import shutil

import numpy as np
import pytest
from killed_processes import coach, moments
from killed_runs import OFTEN, OFTEN_RECORDS, difference, made, story

SETTINGS = (
    "updates=40; batch=16; layers=(8, 8); evaluation_interval=30; num_envs=2; "
    "schedule.evaluation_episodes=1; agent.learning.report_every=20; "
    f"environment.max_episode_steps=25; {OFTEN_RECORDS}"
)
ONLINE = ("--online", "60", "--data_share", "0.5")


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("preset", ["CartPole_CQL", "Mujoco_TD3_BC"])
def test_run_killed_behind_the_turn_resumes_to_what_it_would_have_been(preset, tmp_path):
    begun = tmp_path / "begun"
    begun.mkdir()
    words = ["-p", preset, "-cp", SETTINGS, "-c", "--plain", "--threads", "1", *OFTEN]
    ended = coach([*words, "-ep", str(begun), "-e", "run"], begun)
    assert ended.code == 0, ended.output

    def turned(name, killed=None):
        root = tmp_path / name
        shutil.copytree(begun, root)
        return root, coach(["resume", str(made(root)), "--plain", *ONLINE], root, killed)

    whole, ended = turned("whole")
    assert ended.code == 0, ended.output
    expected = story(whole, checkpoints_too=False)
    for number in range(1):
        for kind, moment in moments(ended, np.random.default_rng(number)).items():
            root, died = turned(f"{number} {kind}", moment)
            if died.code:  # as its user would: before its first checkpoint, the same command
                again = ["resume", str(made(root)), "--plain"]
                ended_again = coach(again, root)
                if "nothing left to train" in ended_again.output:
                    ended_again = coach([*again, *ONLINE], root)
                assert ended_again.code == 0, ended_again.output
            found = story(root, checkpoints_too=False)
            assert not difference(found["state"], expected["state"]), (kind, moment)
            assert not difference(found["log"], expected["log"]), (kind, moment)
