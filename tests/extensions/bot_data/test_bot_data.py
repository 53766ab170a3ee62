"""Data sets of BabyAI's levels: what is in them, what is refused, and the command."""

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.cli.main import main
from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.bot_data import bot_episodes
from coach_rl.extensions.data.files import open_file, read_data
from coach_rl.memories.batches import NEXT_OBSERVATIONS, OBSERVATIONS

pytest.importorskip("minigrid")

LEVEL = rl.MiniGridParameters(level="BabyAI-GoToLocal", mission="words")


def made(seed=0, **changes):
    return rl.bot_data(rl.BotDataParameters(environment=LEVEL, **{"episodes": 4} | changes), seed)


@pytest.mark.parametrize("random_share", [0.0, 0.5])
def test_columns_are_what_the_level_shows_for_their_actions(random_share):
    data = made(random_share=random_share)
    columns = data.recorded.columns
    assert not data.failed  # so that the level's episodes follow on each other
    env = LEVEL.recipe().make()
    now, _ = env.reset(seed=bot_episodes.integer_seed(0, "bot data"))
    for place, action in enumerate(columns["/actions"]):
        for key, values in now.items():
            np.testing.assert_array_equal(columns[f"{OBSERVATIONS}{key}"][place], values)
        now, reward, terminated, truncated, info = env.step(action)
        for key, values in now.items():
            np.testing.assert_array_equal(columns[f"{NEXT_OBSERVATIONS}{key}"][place], values)
        assert columns["/rewards"][place] == reward
        assert columns["/terminated"][place] == terminated == info["is_success"]
        assert columns["/truncated"][place] == truncated
        if terminated:
            now, _ = env.reset()
    assert columns["/terminated"].sum() == len(data.recorded.begins) == 4
    assert columns["/terminated"][-1]


def test_random_actions_are_drawn_and_the_bot_plans_after_them():
    alone, mixed = made(episodes=30), made(episodes=30, random_share=0.5)
    assert len(mixed.recorded) > 1.5 * len(alone.recorded)
    # Of actions 3 to 6 the mission, to go to an object, needs none.
    drawn = np.bincount(mixed.recorded.columns["/actions"], minlength=7) / len(mixed.recorded)
    assert (np.abs(drawn[3:] - 0.5 / 7) < 0.04).all()
    assert not np.bincount(alone.recorded.columns["/actions"], minlength=7)[3:].any()


def test_data_of_a_seed_are_always_the_same():
    first, again, other = (made(seed=seed, random_share=0.3) for seed in (3, 3, 4))
    columns = first.recorded.columns
    assert all(np.array_equal(columns[path], again.recorded.columns[path]) for path in columns)
    assert not np.array_equal(columns["/actions"], other.recorded.columns["/actions"])


def test_episodes_in_which_the_bot_fails_are_left_out(monkeypatch):
    whole = made(episodes=3).recorded
    actions = bot_episodes._actions
    numbers = iter(range(10))

    def second_fails(*arguments):
        return iter(()) if next(numbers) == 1 else actions(*arguments)

    monkeypatch.setattr(bot_episodes, "_actions", second_fails)
    data = made(episodes=2)
    assert data.failed == 1
    _, second, third = whole.begins
    kept = np.r_[0:second, third : len(whole)]
    np.testing.assert_array_equal(
        data.recorded.columns[f"{OBSERVATIONS}mission"][0],
        whole.columns[f"{OBSERVATIONS}mission"][kept][0],
    )
    assert len(data.recorded.begins) == 2


@pytest.mark.parametrize(
    ("level", "message"),
    [
        ("DoorKey-8x8", "BabyAI's bot plays levels.*got 'DoorKey-8x8'; give such a level"),
        ("BabyAI-KeyInBox", "failed in 10 episodes of 'BabyAI-KeyInBox-v0' in a row"),
    ],
)
def test_levels_that_the_bot_cannot_play_are_refused(level, message):
    params = rl.BotDataParameters(
        environment=rl.MiniGridParameters(level=level, mission="words"), episodes=1
    )
    with pytest.raises(ConfigurationError, match=message):
        rl.bot_data(params, 0)


def test_command_writes_what_the_function_makes(tmp_path, capsys):
    file = tmp_path / "bot.npz"
    words = ["bot_data", "BabyAI-GoToLocal", str(file), "--episodes", "3", "--random", "0.2"]
    assert main([*words, "--seed", "5"]) == 0
    assert "transitions of 3 episodes" in capsys.readouterr().out
    wanted = made(seed=5, episodes=3, random_share=0.2)
    assert open_file(str(file)).spaces == wanted.spaces
    written = read_data(
        str(file),
        observation_space=wanted.spaces.observation,
        action_space=wanted.spaces.action,
    )
    for path, column in wanted.recorded.columns.items():
        np.testing.assert_array_equal(written.columns[path], column)
