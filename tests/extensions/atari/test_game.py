"""Atari games: the contract of environments, both protocols, lives, ends and actions."""

import numpy as np
import pytest

from coach_rl.core.errors import ConfigurationError, ParameterError, UnknownNameError
from coach_rl.core.records import End
from coach_rl.environments import make, parameters
from coach_rl.environments.atari import AtariParameters, emulator
from coach_rl.environments.atari.game import MOST_NOOPS, STICKINESS
from coach_rl.environments.atari.games import GAMES
from coach_rl.extensions.testing import EnvironmentContract
from tests.environments.walks import assert_same_walks, walk
from tests.extensions.atari.games_for_tests import build, game


@pytest.mark.drawn(one_of=3)
class TestContractUnderProtocolA(EnvironmentContract):
    steps = 20

    def build(self, num_envs):
        return build(num_envs, max_episode_steps=12)


@pytest.mark.drawn(one_of=3)
class TestContractUnderProtocolB(EnvironmentContract):
    steps = 20

    def build(self, num_envs):
        return build(num_envs, level="breakout", protocol="B", max_episode_steps=12)


@pytest.mark.drawn(one_of=3)
class TestContractOfMemory(EnvironmentContract):
    steps = 20

    def build(self, num_envs):
        return build(num_envs, level="breakout", shows="memory", max_episode_steps=12)


class Noted:
    """The codes of the frames that a game plays."""

    def __init__(self, playing, monkeypatch):
        self.codes = []
        inner = playing._emulator.play

        def noted(code):
            self.codes.append(code)
            return inner(code)

        monkeypatch.setattr(playing._emulator, "play", noted)


def test_games_by_name_are_the_usual_57():
    assert len(GAMES) == 57
    for name in GAMES:
        assert parameters(name) == AtariParameters(level=name)
    environment = make("pong", num_envs=2, frames_per_step=2)
    assert environment.spaces.action.n == 6
    environment.close()


@pytest.mark.parametrize("name", GAMES)
def test_reference_scores_are_in_order(name):
    assert GAMES[name].human > GAMES[name].random
    assert GAMES[name].normalised(GAMES[name].random) == 0
    assert GAMES[name].normalised(GAMES[name].human) == 1


def test_sticky_frames_repeat_the_action_of_the_frame_before(monkeypatch):
    playing = game("pong")
    noted = Noted(playing, monkeypatch)
    rng = np.random.default_rng(3)
    chosen = []
    for _ in range(700):
        action = int(rng.integers(6))
        chosen += [playing._codes[action]] * 4
        _, _, terminated, _, _ = playing.step(np.int64(action))
        if terminated:
            break
    played = noted.codes
    repeats = 0
    fresh = 0
    for before, code, wanted in zip([0, *played], played, chosen, strict=False):
        assert code in (before, wanted)
        if before != wanted:
            fresh += 1
            repeats += code == before
    # 3 standard deviations of a share of 600 and more
    assert abs(repeats / fresh - STICKINESS) < 3 * (0.25 * 0.75 / fresh) ** 0.5
    assert fresh > 600


def test_protocol_b_plays_each_action_for_four_frames(monkeypatch):
    playing = game("pong", protocol="B")
    noted = Noted(playing, monkeypatch)
    for action in (2, 3, 0, 5):
        playing.step(np.int64(action))
    codes = playing._codes
    assert noted.codes == [codes[action] for action in (2, 3, 0, 5) for _ in range(4)]


def test_protocol_b_begins_with_no_ops_and_the_fire_button(monkeypatch):
    playing = game("breakout", protocol="B")
    noted = Noted(playing, monkeypatch)
    lengths = set()
    for _ in range(30):
        noted.codes.clear()
        playing.reset()
        *noops, _, _ = np.split(noted.codes, [len(noted.codes) - 8, len(noted.codes) - 4])
        assert set(noops[0]) == {emulator.NOOP}
        assert noted.codes[-8:] == [emulator.FIRE] * 4 + [3] * 4  # 3 is right
        lengths.add(len(noops[0]))
    assert lengths <= set(range(1, MOST_NOOPS + 1))
    assert len(lengths) > 10


def test_fire_button_is_found_where_a_game_has_no_action_before_it(monkeypatch):
    playing = game("backgammon", protocol="B")
    noted = Noted(playing, monkeypatch)
    playing.reset()
    assert noted.codes[-8:] == [emulator.FIRE] * 4 + [3] * 4


def test_picture_of_single_frames_has_the_fire_button_before_it(monkeypatch):
    playing = game("breakout", protocol="B", frames_per_step=1)
    screens = np.zeros((2, playing._emulator.height, playing._emulator.width), np.uint8)
    inner = playing._emulator.play

    def noted(code):
        reward = inner(code)
        screens[0] = screens[1]
        playing._emulator.read_grey(screens[1])
        return reward

    monkeypatch.setattr(playing._emulator, "play", noted)
    after_fire = 0
    while after_fire < 2:
        is_fired = playing._waits_for_fire
        picture, *_ = playing.step(np.int64(0))
        if is_fired:
            after_fire += 1
            np.testing.assert_array_equal(picture, playing._shrink(screens.max(0)))


def test_protocol_a_begins_as_the_game_does(monkeypatch):
    playing = game("breakout")
    noted = Noted(playing, monkeypatch)
    playing.reset()
    assert not noted.codes


def test_lost_life_is_shown_and_the_episode_continues(monkeypatch):
    playing = game("breakout", protocol="B")
    noted = Noted(playing, monkeypatch)
    lives = playing._emulator.lives
    lost = 0
    for _ in range(2_000):
        noted.codes.clear()
        fires = playing._waits_for_fire
        _, _, terminated, _, info = playing.step(np.int64(0))
        assert len(noted.codes) == info["frames"]
        assert len(noted.codes) == (12 if fires else 4) or terminated
        assert not fires or noted.codes[:4] == [emulator.FIRE] * 4
        lost += info["life_lost"]
        if terminated:
            break
        assert playing._emulator.lives == lives - lost
    assert terminated
    assert not info["life_lost"]
    assert lost == lives - 1


def test_episode_is_truncated_after_its_most_frames():
    environment = build(most_frames=42)
    environment.reset(seed=0)
    answers = walk(environment, 22)
    ends = [int(answer.end[0]) for answer in answers]
    assert ends == ([0] * 10 + [End.TRUNCATED]) * 2
    assert [int(answer.info["frames"][0]) for answer in answers] == ([4] * 10 + [2]) * 2


def test_last_picture_is_of_the_last_frame():
    playing = game("breakout")
    for _ in range(10_000):
        picture, _, terminated, _, info = playing.step(playing.action_space.sample())
        if terminated and info["frames"] < 4:
            break
        if terminated:
            playing.reset()
    assert terminated
    last = np.zeros((210, 160), np.uint8)
    playing._emulator.read_grey(last)
    np.testing.assert_array_equal(picture, playing._shrink(last))


def test_memory_is_scaled_and_all_actions_are_18():
    environment = build(shows="memory", all_actions=True)
    assert environment.spaces.action.n == 18
    shown = environment.reset(seed=0).observation["observation"]
    assert shown.shape == (1, 128)
    assert shown.dtype == np.float32
    assert 0 < shown.max() <= 1


def test_random_actions_replace_that_share(monkeypatch):
    playing = game("pong", protocol="B", random_actions=0.5)
    noted = Noted(playing, monkeypatch)
    for _ in range(400):
        playing.step(np.int64(0))
    others = np.mean([code != playing._codes[0] for code in noted.codes[::4]])
    assert abs(others - 0.5 * 5 / 6) < 3 * (0.42 * 0.58 / 400) ** 0.5


def test_workers_play_the_same_games():
    here = build(3, protocol="B", level="breakout")
    there = build(
        3,
        protocol="B",
        level="breakout",
        vectorization="subprocess",
        processes=2,
        start_method="fork",
    )
    for environment in (here, there):
        environment.reset(seed=7)
    assert_same_walks(here, there, 60)
    assert not there.replays_episodes
    here.load_state_dict(there.state_dict())
    assert_same_walks(here, there, 30)
    here.close()
    there.close()


def test_frames_are_drawn_in_colours():
    environment = build()
    environment.reset(seed=0)
    walk(environment, 30)
    frame = environment.render(0)
    assert frame.shape == (210, 160, 3)
    assert frame.dtype == np.uint8
    assert (frame[..., 0] != frame[..., 2]).any()


def test_unknown_game_is_refused():
    with pytest.raises(UnknownNameError, match=r"Atari game 'pongg'.*did you mean 'pong'"):
        build(level="pongg")


@pytest.mark.parametrize("name", sorted(emulator.FOR_TWO_PLAYERS))
def test_games_for_two_players_are_refused(name):
    with pytest.raises(UnknownNameError, match=f"Atari game for one player '{name}'"):
        build(level=name)


def test_settings_without_meaning_are_refused():
    with pytest.raises(ParameterError, match="kwargs and action_mask have no meaning"):
        AtariParameters(kwargs={"mode": 1})


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ale_py", None)
    with pytest.raises(ConfigurationError, match=r"Atari games need ale_py.*\[atari\]"):
        build()
