"""Trained agents of extensions act without their environments as they do in evaluations."""

import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import coach_rl
from tests.sessions.trained_agents import (
    EPISODES,
    check_sampled_actions,
    ends_of_equal_episodes,
    short_run,
)

PRESETS = {
    "FourRooms_PPO_Options": EPISODES,
    "Pendulum_HAC": 0,  # whose episodes have 1,000 steps
    "PointMaze_HAC": EPISODES,
    "PointMaze_HIRO": EPISODES,
    "SpeakerListener_PPO": EPISODES,
}
"""Presets, and how many of their episodes end at least."""
pytestmark = pytest.mark.filterwarnings("ignore:.*would learn nothing")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function from a preset's name to a short run of it, made once."""
    return cache(lambda name: short_run(name, {}, tmp_path_factory.mktemp("runs")))


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", PRESETS)
def test_act_equals_an_evaluation_to_the_bit(trained: Callable[[str], Path], name: str) -> None:
    if name == "SpeakerListener_PPO" and importlib.util.find_spec("mpe2") is None:
        pytest.skip("mpe2 is not installed")
    assert ends_of_equal_episodes(trained(name)) >= PRESETS[name]


def test_act_sampled_options_repeat_with_the_seed(trained: Callable[[str], Path]) -> None:
    check_sampled_actions(coach_rl.load(trained("FourRooms_PPO_Options")))


def test_scripted_level_has_no_network(trained: Callable[[str], Path]) -> None:
    stack = coach_rl.load(trained("FourRooms_PPO_Options"))
    assert set(stack.network) == {"top"}
    assert set(stack.network["top"]) == {"actor_critic"}
