"""RND and NovelD against plain programs in double precision."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.errors import SpaceError
from coach_rl.memories.transition_batch import TransitionBatch
from tests.extensions.curiosity.little_bonuses import (
    SPACE,
    context,
    decisions,
    joined,
    outcome,
    random_observation,
)
from tests.extensions.curiosity.plain_distillation import PlainBonus

SMALL = {
    "torso": rl.TorsoParameters(middleware=(12,), activation="relu"),
    "predictor_layers": (8,),
    "latents": 5,
    "batch": 16,
    "updates": 2,
    "proportion": 0.5,
    "warmup": 30,
    "optimizer": rl.AdamParameters(learning_rate=3e-3),
}


def by_place(observation):
    return tuple(np.floor(observation["place"] / 0.5).astype(int).tolist())


BONUSES = {
    "RND": (rl.RND(weight=0.7, **SMALL), None),
    "NovelD": (rl.NovelD(key="place", cell=0.5, alpha=0.4, **SMALL), by_place),
}


def bonuses(params, *, visited=None, steps=120, seed=3):
    """The bonuses of decisions, and those of the plain program, with the built one."""
    torch.set_num_threads(1)
    built = params.build(context())
    plain = PlainBonus(params, built, 4, visited)
    found = []
    expected = []
    for rows, before, after, begins in decisions(np.random.default_rng(seed), 4, steps):
        built.begin(np.array(rows)[begins])
        expected += plain(before, rows, after, begins)
        found += built(joined(before), np.array(rows), outcome(rows, joined(after))).tolist()
    return np.array(found), np.array(expected), built, plain


@pytest.mark.parametrize("name", BONUSES)
def test_bonus_equals_a_plain_program_in_double_precision(name):
    params, visited = BONUSES[name]
    found, expected, built, plain = bonuses(params, visited=visited)
    assert (expected[: SMALL["warmup"]] == 0).all()
    assert np.count_nonzero(expected) > 60
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4)
    assert built.distillation.engine.steps == plain.distillation.steps > 20


@pytest.mark.parametrize("name", BONUSES)
def test_fresh_bonus_of_a_batch_equals_the_plain_program(name):
    params, visited = BONUSES[name]
    _, _, built, plain = bonuses(replace(params, fresh=True), visited=visited)
    rng = np.random.default_rng(8)
    before, after = ([random_observation(rng) for _ in range(10)] for _ in range(2))
    first = rng.random(10) < 0.6
    reward = rng.normal(size=10).astype(np.float32)
    batch = TransitionBatch(
        observation={k: torch.from_numpy(v) for k, v in joined(before).items()},
        action=torch.zeros(10),
        reward=torch.from_numpy(reward),
        discount=torch.ones(10),
        next_observation={k: torch.from_numpy(v) for k, v in joined(after).items()},
        weight=torch.ones(10),
        position=torch.arange(10),
        extras={"bonus/first_visit": torch.from_numpy(first)},
    )
    squares = [plain.distillation.squares([plain.distillation.row(x) for x in side])
               for side in (after, before)]  # fmt: skip
    novelty = squares[0] / params.latents
    if visited is not None:
        novelty = np.maximum(np.sqrt(squares[0]) - params.alpha * np.sqrt(squares[1]), 0) * first
    expected = reward + params.weight * novelty / np.sqrt(np.var(plain.noted) + 1e-8)
    np.testing.assert_allclose(built.refreshed(batch).reward, expected, rtol=2e-3, atol=2e-3)
    assert list(built.kept(np.ones(4))) == list(built.extras)


def test_images_and_discrete_parts_of_a_dict_are_seen():
    space = spaces.Dict(
        {
            "frame": spaces.Box(0, 255, (40, 40, 3), np.uint8),
            "direction": spaces.Discrete(4),
            "planes": spaces.Box(0, 1, (7, 7, 2), np.int8),
            rl.GOAL_KEY: SPACE["place"],
        }
    )
    built = rl.RND(warmup=2, batch=4, keys=("frame", "direction")).build(context(space, 2))
    flat = rl.RND(warmup=2, batch=4, keys=("planes",)).build(context(space, 2))
    assert rl.RND().build(context(spaces.Dict({k: space[k] for k in ("planes", rl.GOAL_KEY)}))
                          ).distillation.keys == ("planes",)  # fmt: skip
    space.seed(0)
    for _ in range(8):
        seen = joined([space.sample() for _ in range(2)])
        for each in (built, flat):
            bonus = each({}, np.zeros(2), outcome([0, 1], seen))
    assert (bonus > 0).all()
    convolutions = [m for m in built.distillation.target.module.modules()
                    if isinstance(m, torch.nn.Conv2d)]  # fmt: skip
    assert len(convolutions) == 3
    assert not any(
        isinstance(m, torch.nn.Conv2d) for m in flat.distillation.target.module.modules()
    )


@pytest.mark.parametrize("kind", [rl.RND, rl.NovelD])
def test_first_observations_of_episodes_are_learned(kind):
    """A start that no decision leads to becomes known, as all else does."""
    built = kind(**SMALL).build(context(num_envs=2))
    view = np.zeros((2, 3), np.int8)
    start = {"place": np.array([[9.0, 9.0]] * 2), "view": view}
    there = {"place": np.array([[1.0, -1.0]] * 2), "view": view}
    for begins, observed in (([0, 1], 4), ([], 6), ([1], 9)):
        built.begin(np.array(begins, np.int64))
        built(start, np.zeros(2), outcome([0, 1], there))
        assert built.distillation.observed == observed
    mean = built.distillation.whitening.statistics["place"].mean
    np.testing.assert_allclose(mean, (3 * np.array([9, 9]) + 6 * np.array([1, -1])) / 9)


def test_observation_that_is_missing_is_refused():
    with pytest.raises(SpaceError, match=r"RND has no observation 'depth'; there are place, view"):
        rl.RND(keys=("depth",)).build(context())
