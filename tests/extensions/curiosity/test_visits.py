"""Counts within an episode against dictionaries."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError, SpaceError
from tests.extensions.curiosity.little_bonuses import context, decisions, joined, outcome


def corner(observation):
    return np.sign(observation["place"])


KEYS = {
    "all": ({}, lambda each: (*each["place"].tolist(), *each["view"].tolist())),
    "view": ({"key": "view"}, lambda each: tuple(each["view"].tolist())),
    "one element": ({"key": "view", "elements": (1,)}, lambda each: int(each["view"][1])),
    "grid": (
        {"key": "place", "cell": (0.5, 1.0)},
        lambda each: (int(each["place"][0] // 0.5), int(each["place"][1] // 1.0)),
    ),
    "function": ({"key": corner}, lambda each: tuple((np.sign(each["place"]) + 0.0).tolist())),
}


class Dictionaries:
    """The same as a plain program keeps it, for one row."""

    def __init__(self, key):
        self.key = key
        self.counts = defaultdict(int)

    def visit(self, before, after, *, begins):
        if begins:
            self.counts.clear()
            self.counts[self.key(before)] += 1
        self.counts[self.key(after)] += 1
        return self.counts[self.key(after)]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    num_envs=st.integers(1, 5),
    key=st.sampled_from(sorted(KEYS)),
    first_only=st.booleans(),
    saved_every=st.integers(1, 9),
)
def test_counts_equal_dictionaries_of_each_row(seed, num_envs, key, first_only, saved_every):
    """Rows are answered in any company, episodes begin anywhere, states are loaded amid them."""
    parameters, plain_key = KEYS[key]
    params = rl.EpisodicCount(weight=0.3, first_only=first_only, **parameters)
    built = params.build(context(num_envs=num_envs))
    rows_alone = [params.build(context(num_envs=num_envs)) for _ in range(num_envs)]
    plain = [Dictionaries(plain_key) for _ in range(num_envs)]
    rng = np.random.default_rng(seed)
    for step, (rows, before, after, begins) in enumerate(decisions(rng, num_envs, 30)):
        built.begin(np.array(rows)[begins])
        found = built(joined(before), np.array(rows), outcome(rows, joined(after)))
        for place, row in enumerate(rows):
            number = plain[row].visit(before[place], after[place], begins=begins[place])
            paid = number == 1 or not first_only
            assert found[place] == pytest.approx(0.3 / np.sqrt(number) if paid else 0.0)
            alone = rows_alone[row]
            alone.begin(np.array([row] if begins[place] else [], np.int64))
            own = outcome([row], joined([after[place]]))
            assert alone(joined([before[place]]), np.array([row]), own) == found[place]
        if step % saved_every == 0:
            state = built.state_dict()
            built = params.build(context(num_envs=num_envs, seed=1))
            built.load_state_dict(state)


def test_info_counts_from_the_first_decision_on():
    built = rl.EpisodicCount(weight=1.0, key="infos/room").build(context(num_envs=2))
    built.begin(np.arange(2))
    rooms = [[1, 1], [1, 2], [2, 1]]
    found = [
        built({}, np.arange(2), outcome([0, 1], {}, {"room": np.array(each)})) for each in rooms
    ]
    np.testing.assert_allclose(found, [[1, 1], [0.5**0.5, 1], [1, 0.5**0.5]])


def test_zeros_of_either_sign_are_the_same_place():
    built = rl.EpisodicCount(weight=1.0, key="place").build(context(num_envs=1))
    view = np.zeros((1, 3), np.int8)
    before = {"place": np.array([[0.0, 1.0]]), "view": view}
    after = {"place": np.array([[-0.0, 1.0]]), "view": view}
    built.begin(np.arange(1))
    assert built(before, np.arange(1), outcome([0], after)) == pytest.approx(0.5**0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"key": "depth"}, r"EpisodicCount counts the observation 'depth', and"),
        ({"key": "view", "elements": (3,)}, r"elements \(3,\) .* observation of 3; set `elements`"),
        ({"key": "view", "cell": (1.0, 1.0)}, r"cells of \(1.0, 1.0\), of an observation of 3"),
    ],
)
def test_key_that_does_not_fit_is_refused(settings, message):
    with pytest.raises(SpaceError, match=message):
        rl.EpisodicCount(**settings).build(context())


@pytest.mark.parametrize("settings", [{"elements": (0, 1)}, {"cell": (0.5, 0.5)}])
@pytest.mark.parametrize("kind", [rl.EpisodicCount, rl.NovelD])
def test_elements_and_cells_of_no_key_are_refused(kind, settings):
    with pytest.raises(ConfigurationError, match="of no one entry; set `key` to one of place, vi"):
        kind(**settings).build(context())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"key": "infos/room", "elements": (0, 3)}, r"elements \(0, 3\) .* an info of 1; set `el"),
        ({"key": "infos/room", "cell": (1.0, 1.0)}, r"cells of \(1.0, 1.0\), of an info of 1"),
        ({"key": corner, "cell": (1.0,) * 3}, r"cells of .*, of a function's result of 2; set"),
        ({"key": corner, "elements": (2,)}, r"elements \(2,\) .* a function's result of 2"),
    ],
)
def test_info_or_result_that_does_not_fit_is_refused_at_its_first_use(settings, message):
    built = rl.EpisodicCount(**settings).build(context(num_envs=1))
    seen = {"place": np.zeros((1, 2)), "view": np.zeros((1, 3), np.int8)}
    with pytest.raises(SpaceError, match=message):
        built(seen, np.arange(1), outcome([0], seen, {"room": np.zeros(1)}))


def test_missing_info_is_refused():
    built = rl.EpisodicCount(key="infos/room").build(context(num_envs=1))
    with pytest.raises(ConfigurationError, match="'infos/room', which the environment does not"):
        built({}, np.arange(1), outcome([0], {}, {"cost": np.zeros(1)}))
