import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.architectures.continuous_control import DeterministicActor
from coach_rl.architectures.observation_normaliser import Normalise, ObservationNormaliser
from coach_rl.core.errors import NonFiniteError

CPU = torch.device("cpu")
SEEN = spaces.Dict(
    {
        "x": spaces.Box(-99, 99, (2,)),
        "goal": spaces.Box(-99, 99, (1,), np.float64),
        "lamp": spaces.Discrete(3),
        "bytes": spaces.Box(0, 255, (2,), np.uint8),
    }
)
BOX = spaces.Box(np.float32([-1]), np.float32([3]))
SMALL = rl.TorsoParameters(middleware=(5,), activation="relu", orthogonal=False)


def made(clip=5.0, space=SEEN):
    return ObservationNormaliser(space, clip=clip, device=CPU)


def rows(count=6, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "x": (rng.normal(size=(count, 2)) * [3, 0.1] + [50, -2]).astype(np.float32),
        "goal": rng.normal(size=(count, 1)),
        "lamp": rng.integers(0, 3, count),
        "bytes": rng.integers(0, 256, (count, 2)).astype(np.uint8),
    }


def test_numbers_by_hand():
    normaliser = made(clip=1.5)
    layer = Normalise(normaliser, "x")
    seen = rows(3)
    seen["x"] = np.float32(
        [[1, 10], [2, 10], [6, 10]]
    )  # mean 3, variance 14/3; mean 10, variance 0
    normaliser.update(seen)
    deviation = (14 / 3) ** 0.5
    found = layer(torch.tensor([[3.0, 10.0], [3 + deviation, 10.0], [99.0, 10.001], [-99.0, 9.0]]))
    expected = [[0.0, 0.0], [1.0, 0.0], [1.5, 0.1], [-1.5, -1.5]]  # a constant has deviation 0.01
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_before_the_first_observation_it_only_clips():
    layer = Normalise(made(clip=2.0), "x")
    assert layer(torch.tensor([[0.5, -7.0]])).tolist() == [[0.5, -2.0]]


SECONDS = 1_764_000_000.0 + np.arange(20.0)[:, None]
"""Twenty seconds, of which float32, whose steps are 128 there, makes one."""


@pytest.mark.parametrize("sizes", [(20,), (1,) * 20])
def test_a_spread_that_float32_loses_is_warned_of_once(sizes):
    space = spaces.Dict({"time": spaces.Box(-np.inf, np.inf, (2,), np.float64)})
    values = np.hstack((SECONDS, np.ones_like(SECONDS)))
    normaliser = made(space=space)

    def see():
        for part in (*np.split(values, np.cumsum(sizes)[:-1]), values.repeat(3, axis=0)):
            normaliser.update({"time": part})

    with pytest.warns(rl.CoachWarning) as caught:
        see()
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (SECONDS - SECONDS[0], np.float64),
        (np.full((64, 1), 1e9 + 0.1), np.float64),  # constant
        (SECONDS[:8], np.float64),  # too few to know
        (SECONDS.astype(np.float32), np.float32),  # rounded by the environment
    ],
)
def test_spreads_that_float32_keeps_and_constants_are_not_warned_of(values, dtype):
    normaliser = made(space=spaces.Dict({"time": spaces.Box(-np.inf, np.inf, (1,), dtype)}))
    normaliser.update({"time": values})  # warnings are errors


def test_only_floats_are_normalised():
    normaliser = made()
    assert set(normaliser.mean) == {"x", "goal"}
    actor = DeterministicActor(rl.ActorParameters(torso=SMALL), SEEN, BOX, generator(), normaliser)
    names = {
        key: [type(layer).__name__ for layer in embedder]
        for key, embedder in zip(
            actor.torso.embedder.keys, actor.torso.embedder.embedders, strict=True
        )
    }
    assert [key for key, layers in names.items() if "Normalise" in layers] == ["goal", "x"]


def generator():
    return torch.Generator().manual_seed(0)


def test_a_number_that_is_not_finite_spoils_nothing():
    normaliser = made()
    normaliser.update(rows(7))
    before = {key: values.clone() for key, values in normaliser.mean.items()}
    broken = rows(2)
    broken["x"][1, 0] = np.nan
    with pytest.raises(NonFiniteError):
        normaliser.update(broken)
    assert all(torch.equal(normaliser.mean[key], before[key]) for key in before)
