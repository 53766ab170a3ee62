"""Gymnasium environments that offer their own state are saved by it, and the rest is replayed."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import CheckpointError
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.gymnasium.rows import LocalRows
from tests.environments.walks import assert_same_walks, walk

STEPS = 9


class Counted(gymnasium.Env):
    """A walk that counts its steps over all episodes, which a replay cannot restore."""

    observation_space = spaces.Box(-100, 100, (2,), np.float64)
    action_space = spaces.Discrete(3)

    def __init__(self, odd: object = None) -> None:
        self.place = np.zeros(1)
        self.total = 0
        self.time = 0
        self.odd = odd

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.normal(size=1)
        self.time = 0
        return self.observed(), {}

    def step(self, action):
        self.place += action - 1 + self.np_random.normal()
        self.total += 1
        self.time += 1
        return self.observed(), float(self.total), False, self.time >= STEPS, {}

    def observed(self):
        return np.array([self.place[0], self.total])


class Offering(Counted):
    """The same, which offers its own state."""

    def save_state(self):
        state = {"place": self.place, "total": self.total, "time": self.time}
        return state if self.odd is None else {**state, "odd": self.odd}

    def restore_state(self, state):
        self.place = state["place"]
        self.total = state["total"]
        self.time = state["time"]


class Passing(gymnasium.Wrapper):
    """A wrapper with a state that no one knows."""


class Adding(gymnasium.Wrapper):
    """A wrapper that offers its own state, and what is in it."""

    def __init__(self, env):
        super().__init__(env)
        self.added = 0.0

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.added += 1
        return observation, reward + self.added, terminated, truncated, info

    def save_state(self):
        return {"added": self.added, "inner": self.env.save_state()}

    def restore_state(self, state):
        self.added = state["added"]
        self.env.restore_state(state["inner"])


HERE = "tests.environments.test_own_state"
gymnasium.register("OfferingWithLimit-v0", entry_point=Offering, max_episode_steps=5)


def build(level, num_envs=2, **fields):
    named = level if level.endswith("-v0") else f"{HERE}:{level}"
    return GymnasiumParameters(level=named, **fields).build(num_envs=num_envs)


@pytest.mark.parametrize(
    ("level", "fields"),
    [
        ("Offering", {}),
        ("Offering", {"max_episode_steps": 7}),
        ("OfferingWithLimit-v0", {}),
        ("Offering", {"wrappers": (f"{HERE}:Adding",)}),
        ("Offering", {"vectorization": "subprocess", "processes": 2, "start_method": "fork"}),
    ],
)
def test_own_state_continues_exactly(level, fields):
    one, other = build(level, **fields), build(level, **fields)
    one.reset(seed=5)
    walk(one, 24)
    other.reset(seed=1)
    state = one.state_dict()
    assert all(row["steps"] == 0 for row in state["rows"].values())
    other.load_state_dict(state)
    assert not one.replays_episodes
    assert_same_walks(one, other, 20)
    one.close()
    other.close()


def test_own_state_shares_no_memory():
    one = build("Offering")
    one.reset(seed=5)
    walk(one, 4)
    state = one.state_dict()
    before = state["rows"]["0"]["own"]["environment"]["place"].copy()
    walk(one, 4)
    np.testing.assert_array_equal(state["rows"]["0"]["own"]["environment"]["place"], before)
    other = build("Offering")
    other.load_state_dict(state)
    walk(other, 4)
    np.testing.assert_array_equal(state["rows"]["0"]["own"]["environment"]["place"], before)


def test_environment_without_own_state_is_replayed_and_checked():
    one, other = build("Counted"), build("Counted")
    assert one.replays_episodes
    one.reset(seed=5)
    walk(one, 24)
    with pytest.raises(CheckpointError, match="carries something over from earlier episodes"):
        other.load_state_dict(one.state_dict())


def test_unknown_wrapper_around_own_state_is_replayed():
    environment = build("Offering", wrappers=(f"{HERE}:Passing",))
    assert environment.replays_episodes


def test_lost_worker_continues_from_the_restored_state():
    fields = {"vectorization": "subprocess", "processes": 1, "start_method": "fork"}
    one, other = build("Offering"), build("Offering", **fields)
    one.reset(seed=5)
    walk(one, 24)
    other.load_state_dict(one.state_dict())
    assert_same_walks(one, other, 2)
    history = other._rows._histories[1]
    assert history.saved is not None
    assert len(history.actions) == 2
    start = other._rows._call(LocalRows.replay, {0: ([1], [history])})[0]
    np.testing.assert_array_equal(
        start.observation["observation"][0], other._acts_on["observation"][1]
    )
    other.close()


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        ({"at": object()}, r"save_state\(\)\['odd'\]\['at'\] is <object.*allowed: arrays"),
        ({1: 2}, r"has the key 1, which is no string"),
        (np.array([None]), "is an array of objects"),
    ],
)
def test_own_state_that_cannot_be_saved_is_refused(odd, message):
    environment = build("Offering", kwargs={"odd": odd}, num_envs=1)
    environment.reset(seed=0)
    with pytest.raises(CheckpointError, match=message):
        environment.state_dict()


def test_state_of_an_environment_that_offers_none_any_more_is_refused():
    one, other = build("Offering"), build("Counted")
    one.reset(seed=5)
    with pytest.raises(CheckpointError, match="it was saved by its own state"):
        other.load_state_dict(one.state_dict())
