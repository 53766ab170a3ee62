"""Observations, missions, success, limits and pictures of levels."""

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError, EnvironmentFault, ParameterError
from coach_rl.environments.minigrid.levels import IDS
from coach_rl.environments.minigrid.missions import WORDS, BagOfWords
from coach_rl.environments.minigrid.symbols import AGENT, ONE_HOT, symbol_of
from coach_rl.environments.minigrid.world import package
from coach_rl.extensions.testing import EnvironmentContract
from tests.environments.walks import walk
from tests.extensions.minigrid.levels_for_tests import SAMPLE, build, world

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE = range(6)


@pytest.mark.drawn(one_of=3)
class TestContract(EnvironmentContract):
    steps = 20

    def build(self, num_envs):
        return build(num_envs, level="KeyCorridorS3R3", mission="hidden", max_episode_steps=9)


def steps(env, *actions):
    return [env.step(np.int64(action)) for action in actions]


@pytest.mark.parametrize("shows", ["view", "picture", "grid"])
@pytest.mark.parametrize("level", SAMPLE)
def test_observations_are_in_their_space(level, shows):
    env = world(level, shows=shows, mission="words", given=("position", "state"))
    rng = np.random.default_rng(0)
    for _ in range(30):
        observation, _, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))
        assert env.observation_space.contains(observation)
        if terminated or truncated:
            observation, _ = env.reset()
            assert env.observation_space.contains(observation)


def test_grid_shows_every_cell_and_what_is_carried():
    env = world(shows="grid")
    inner = env.unwrapped
    inner.carrying = inner.grid.get(0, 0)
    observation, *_ = env.step(np.int64(LEFT))
    x, y = inner.agent_pos
    for column in range(8):
        for row in range(8):
            symbol = AGENT if (column, row) == (x, y) else symbol_of(inner.grid.get(column, row))
            np.testing.assert_array_equal(observation["view"][column, row], ONE_HOT[symbol])
    np.testing.assert_array_equal(observation["carried"], ONE_HOT[symbol_of(inner.carrying)])


def test_state_differs_where_anything_differs():
    env = world("DoorKey-5x5", given=("position", "state"))
    inner = env.unwrapped
    seen = []

    def note():
        observation = env.step(np.int64(6))[0]  # done: nothing happens
        np.testing.assert_array_equal(observation["position"], inner.agent_pos)
        seen.append(observation["state"].tobytes())
        return observation

    note()
    note()
    assert seen[0] == seen[1]
    inner.agent_dir = (inner.agent_dir + 1) % 4
    note()
    door = next(each for each in inner.grid.grid if each is not None and each.type == "door")
    door.is_locked = False
    note()
    door.is_open = True
    note()
    place = next(n for n, each in enumerate(inner.grid.grid) if each and each.type == "key")
    inner.carrying = inner.grid.grid[place]
    inner.grid.grid[place] = None
    note()
    assert len(set(seen[1:])) == 5


def test_success_is_the_end_with_a_reward():
    env = world("Empty-5x5")
    answers = steps(env, FORWARD, FORWARD, RIGHT, FORWARD, FORWARD)
    assert [each[4]["is_success"] for each in answers] == [False] * 4 + [True]
    assert answers[-1][2]
    assert answers[-1][1] == pytest.approx(1 - 0.9 * 5 / 100)


def test_lava_is_no_success():
    env = world("DistShift1")
    inner = env.unwrapped
    inner.agent_pos = (3, 1)
    inner.agent_dir = 3
    lava = next(each for each in inner.grid.grid if each is not None and each.type == "lava")
    inner.grid.set(3, 0, lava)
    (answer,) = steps(env, FORWARD)
    assert answer[2]
    assert answer[4]["is_success"] is False


def test_limit_of_steps_truncates_beside_that_of_the_level():
    environment = build(level="DoorKey-8x8", max_episode_steps=7)
    environment.reset(seed=0)
    ends = [bool(answer.truncated[0]) for answer in walk(environment, 14)]
    assert ends == ([False] * 6 + [True]) * 2
    longer = build(level="Empty-5x5", max_episode_steps=1_000, kwargs={"max_steps": 9})
    longer.reset(seed=0)
    ended = [bool(each.truncated[0] | each.terminated[0]) for each in walk(longer, 9)]
    assert any(ended)


def test_level_whose_mission_differs_is_refused_in_one_line():
    with pytest.raises(ConfigurationError, match=r"choose MiniGridParameters\.mission") as refused:
        build(level="GoToDoor-5x5")
    assert "\n" not in str(refused.value)
    assert "go to the" in str(refused.value)


@pytest.mark.parametrize("level", ["DoorKey-8x8", "MultiRoom-N4-S5", "ObstructedMaze-1Dl"])
def test_level_with_one_mission_needs_no_choice(level):
    assert "mission" not in build(level=level).spaces.observation.spaces


def test_bag_counts_the_words_of_the_mission():
    env = world("BabyAI-PutNextLocal", mission="words")
    observation, _ = env.reset(seed=4)
    counts = dict(zip(WORDS, observation["mission"].tolist(), strict=True))
    mission = env.unwrapped.mission.replace(",", "").split()
    assert {word: number for word, number in counts.items() if number} == {
        word: mission.count(word) for word in mission
    }
    assert counts["the"] == 2


def test_words_outside_the_vocabulary_are_errors():
    with pytest.raises(EnvironmentFault, match=r"'ball'.*MiniGridParameters\.words"):
        BagOfWords(("go", "to", "the", "red"))("go to the red ball")


@pytest.mark.slow
def test_vocabulary_has_the_words_of_all_levels():
    bag = BagOfWords(WORDS)
    found = set()
    for level in IDS:
        env = world(level, mission="words")
        for seed in range(15):
            env.reset(seed=seed)
            bag(env.unwrapped.mission)
            found |= set(env.unwrapped.mission.replace(",", "").split())
    assert found <= set(WORDS)


def test_babyai_prints_nothing(capsys):
    env = world("BabyAI-PutNextLocalS5N3")
    for seed in range(10):
        env.reset(seed=seed)
    assert capsys.readouterr().out == ""


def test_picture_of_the_world_shows_the_whole_grid():
    environment = build(2, level="MultiRoom-N4-S5")
    environment.reset(seed=0)
    picture = environment.render(1)
    assert picture.shape == (625, 625, 3)
    assert picture.dtype == np.uint8
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 5
    assert build(level="DoorKey-5x5").spaces.observation["view"].shape == (7, 7, 20)


def test_masks_are_refused():
    with pytest.raises(ParameterError, match="MiniGrid allows every action"):
        rl.MiniGridParameters(level="DoorKey-8x8", action_mask="info:mask")


def test_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "minigrid", None)
    with pytest.raises(ConfigurationError, match=r"\.\[minigrid\]"):
        package()
