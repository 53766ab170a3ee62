"""Restored games continue exactly, in new processes too; see `benchmarks/atari_restores.py`."""

import subprocess
import sys

import pytest

from benchmarks import atari_restores
from tests.environments.walks import assert_continues, assert_restored_without_steps
from tests.extensions.atari.games_for_tests import build


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("name", ["pong", "qbert"])
def test_restored_games_continue_exactly_in_a_new_process(name, tmp_path):
    recorded = tmp_path / "states.npz"
    atari_restores.record([name], restores=2, seed=3).save(recorded)
    code = "from benchmarks import atari_restores as a; import sys; print(a.check(sys.argv[1]))"
    answer = subprocess.run(
        [sys.executable, "-c", code, str(recorded)], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == str({f"{name} sticky": (2, 2), f"{name} plain": (2, 2)})


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("protocol", ["A", "B"])
def test_restored_environment_continues_exactly(protocol):
    one, other = (build(2, level="breakout", protocol=protocol) for _ in range(2))
    assert_continues(one, other, before=83, after=120, elsewhere=31)


def test_restored_environment_takes_no_steps(monkeypatch):
    assert_restored_without_steps(build(), build(), monkeypatch, before=40)


def test_game_in_a_wrapper_is_replayed():
    wrappers = ("gymnasium.wrappers:RecordEpisodeStatistics",)
    one, other = build(wrappers=wrappers), build(wrappers=wrappers)
    assert one.replays_episodes
    assert_continues(one, other, before=40, after=40)
