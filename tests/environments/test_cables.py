"""The rules of the cables, the least total, and what masks are worth."""

import itertools

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.records import End
from coach_rl.environments.toy import Cables
from tests.environments.walks import answer_to


def ends_of(places):
    """The two places of each action's cable, in the order of the actions."""
    return list(itertools.combinations(range(places), 2))


def are_connected(one, other, cables):
    """Whether cables, pairs of places, lead from one place to the other."""
    reached, grown = {one}, True
    while grown:
        further = {end for cable in cables if reached & set(cable) for end in cable}
        grown = not further <= reached
        reached |= further
    return other in reached


def least_total(lengths, places):
    """The total length of the shortest cables that connect all places (Prim 1957)."""
    length = np.full((places, places), np.inf)
    for (one, other), each in zip(ends_of(places), lengths, strict=True):
        length[one, other] = length[other, one] = each
    connected, total = {0}, 0.0
    while len(connected) < places:
        rest = [place for place in range(places) if place not in connected]
        total += length[np.ix_(sorted(connected), rest)].min()
        connected.add(min(rest, key=lambda place: length[sorted(connected), place].min()))
    return total


def shortest_allowed(observation):
    """The shortest of the allowed cables, [N]."""
    allowed = observation["action_mask"] > 0
    return np.where(allowed, observation["observation"][:, : allowed.shape[1]], 9).argmin(axis=1)


def play(environment, choose, seed):
    """The least totals of the first episodes of all rows, and minus their rewards, [N] each."""
    seen = environment.reset(seed=seed).observation
    places, rows = environment.world.start_numbers // 2, np.arange(environment.num_envs)
    lengths = seen["observation"][:, : len(ends_of(places))].astype(np.float64)
    total, is_open = np.zeros(len(rows)), np.ones(len(rows), bool)
    while is_open.any():
        answer = answer_to(environment, choose(seen))
        total -= np.where(is_open, answer.reward, 0)
        is_open &= answer.end == 0
        seen = answer.first_observation
    return np.array([least_total(each, places) for each in lengths]), total


def randomly_allowed(seed):
    rng = np.random.default_rng(seed)
    return lambda seen: (rng.random(seen["action_mask"].shape) * seen["action_mask"]).argmax(axis=1)


@pytest.mark.parametrize("places", [2, 3, 5])
def test_cables_random_play_follows_the_rules(places):
    environment = rl.CablesParameters(places=places, refused=0.7, max_episode_steps=9).build(
        num_envs=1
    )
    rng, ends = np.random.default_rng(0), ends_of(places)
    seen = environment.reset(seed=0).observation
    cables, steps = [], 0
    for _ in range(200):
        lengths, laid = np.split(seen["observation"][0], 2)
        allowed = [not are_connected(*pair, cables) for pair in ends]
        assert seen["action_mask"][0].tolist() == allowed
        assert laid.tolist() == [pair in cables for pair in ends]
        action = int(rng.integers(len(ends)))
        answer = answer_to(environment, np.array([action]))
        steps += 1
        wanted = -lengths[action] if allowed[action] else -0.7
        assert answer.reward[0] == pytest.approx(wanted, rel=1e-6)
        cables += [ends[action]] if allowed[action] else []
        over = all(are_connected(0, place, cables) for place in range(places))
        assert answer.terminated[0] == over
        assert (answer.end[0] == End.TRUNCATED) == (steps == 9 and not over)
        seen = answer.first_observation
        if answer.end[0]:
            cables, steps = [], 0


def test_cables_lengths_are_distances():
    state = Cables(rl.CablesParameters(places=3)).start(np.array([[0, 0, 0.3, 0.4, 0.0, 1.0]]))
    np.testing.assert_allclose(state["length"], [[0.5, 1.0, np.hypot(0.3, 0.6)]])


def test_cables_without_masks_is_the_same_task():
    plain, masked = (rl.CablesParameters(masked=each).build(num_envs=4) for each in (False, True))
    answers = plain.reset(seed=3), masked.reset(seed=3)
    rng = np.random.default_rng(0)
    for _ in range(60):
        shown, with_mask = (answer.first_observation for answer in answers)
        assert set(shown) == {"observation"}
        assert set(with_mask) == {"observation", "action_mask"}
        np.testing.assert_array_equal(shown["observation"], with_mask["observation"])
        action = rng.integers(28, size=4)
        answers = answer_to(plain, action), answer_to(masked, action)
        np.testing.assert_array_equal(answers[0].reward, answers[1].reward)
        np.testing.assert_array_equal(answers[0].end, answers[1].end)


def test_cables_shortest_allowed_equals_least_total():
    least, total = play(rl.CablesParameters(places=8).build(num_envs=100), shortest_allowed, seed=0)
    np.testing.assert_allclose(total, least, rtol=1e-5)


def trained_score(masked, root):
    """The greedy score after 100,000 steps: 0 for allowed cables at random, 1 for the least."""
    preset = rl.load_preset(rl.find_preset("Cables_PPO"))
    manager = preset.configure({"masked": masked, "steps": 100_000})
    settings = rl.RunSettings(tensorboard=False, final_episodes=rl.EnvironmentEpisodes(2))
    result = rl.run_experiment(
        manager, rl.Runtime(seed=0, device="cpu"), name="cables", root=root, settings=settings
    )
    build = lambda masked: rl.CablesParameters(masked=masked).build(num_envs=400)  # noqa: E731
    least, total = play(build(masked), rl.load(result.folder.path).act, seed=1)
    _, random = play(build(True), randomly_allowed(seed=0), seed=1)
    return (random.mean() - total.mean()) / (random.mean() - least.mean())


@pytest.mark.slow
def test_cables_with_masks_is_solved_and_without_is_not(tmp_path):
    assert trained_score(True, tmp_path) >= 0.95
    assert trained_score(False, tmp_path) <= 0.6
