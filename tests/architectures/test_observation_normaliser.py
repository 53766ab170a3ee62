import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.architectures.continuous_control import Critics, DeterministicActor
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.numpy_policy import numpy_forward
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


def test_in_parts_or_at_once_is_the_same():
    at_once, parts = made(), made()
    seen = rows(9)
    at_once.update(seen)
    for part in (slice(0, 1), slice(1, 2), slice(2, 9)):
        parts.update({key: values[part] for key, values in seen.items()})
    torch.testing.assert_close(parts.mean, at_once.mean)
    torch.testing.assert_close(parts.scale, at_once.scale)


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


def tensors(seen):
    return {key: torch.from_numpy(values) for key, values in seen.items()}


def networks(normaliser, space):
    params = rl.ActorParameters(torso=SMALL)
    actor = DeterministicActor(params, space, BOX, generator(), normaliser)
    critics = Critics(rl.CriticParameters(torso=SMALL), space, BOX, generator(), normaliser)
    return (
        NetworkWrapper(actor, device=CPU, with_target=True),
        NetworkWrapper(critics, device=CPU, with_target=True),
    )


FLOATS = spaces.Dict({"x": SEEN["x"], "goal": SEEN["goal"]})


def floats(count=6, seed=0):
    seen = rows(count, seed)
    return {"x": seen["x"], "goal": seen["goal"]}


def by_hand(seen, clip):
    """Observations normalised by numpy's mean and variance of `floats(40, 1)`."""
    known = floats(40, 1)
    return {
        key: np.clip(
            (values - known[key].astype(np.float64).mean(axis=0))
            / np.sqrt(known[key].astype(np.float64).var(axis=0) + 1e-8),
            -clip,
            clip,
        ).astype(np.float32)
        for key, values in seen.items()
    }


@pytest.mark.parametrize("clip", [5.0, 0.5])
def test_acting_learning_and_targets_see_the_same_numbers(clip):
    """Each equals a network without a normaliser on numbers normalised by hand."""
    normaliser = made(clip=clip, space=FLOATS)
    actor, critics = networks(normaliser, FLOATS)
    plain_actor, plain_critics = networks(None, FLOATS)
    act = numpy_forward(actor.module.torso, actor.module.head)
    assert act is not None
    normaliser.update(floats(40, 1))  # after everything was built: statistics are read, not copied
    seen, action = floats(6, 2), torch.tensor([[0.5]] * 6)
    expected = plain_actor.module(tensors(by_hand(seen, clip)))
    np.testing.assert_allclose(act(seen), expected, rtol=1e-4, atol=1e-5)
    for flat in (actor.online, actor.target):
        torch.testing.assert_close(actor.call(flat, tensors(seen)), expected, rtol=1e-4, atol=1e-5)
    expected = plain_critics.module(tensors(by_hand(seen, clip)), action)
    for flat in (critics.online, critics.target):
        found = critics.call(flat, tensors(seen), action)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_saved_statistics_come_back_and_go_on():
    normaliser, other = made(), made()
    layer = Normalise(other, "x")
    normaliser.update(rows(7))
    other.load_state_dict(normaliser.state_dict())
    for each in (normaliser, other):
        each.update(rows(5, seed=3))
    for key in normaliser.mean:
        assert torch.equal(normaliser.mean[key], other.mean[key])
        assert torch.equal(normaliser.scale[key], other.scale[key])
    probe = torch.from_numpy(rows(4)["x"])
    assert torch.equal(layer(probe), Normalise(normaliser, "x")(probe))


def test_a_saved_state_does_not_change_any_more():
    normaliser = made()
    normaliser.update(rows(7))
    saved = normaliser.state_dict()
    before = saved["x"]["mean"].copy()
    normaliser.update(rows(7, seed=1))
    assert np.array_equal(saved["x"]["mean"], before)


def test_statistics_are_no_parameters():
    normaliser = made(space=FLOATS)
    actor, _ = networks(normaliser, FLOATS)
    plain, _ = networks(None, FLOATS)
    assert actor.size == plain.size
    assert actor.state_dict()["online"].keys() == plain.state_dict()["online"].keys()


def test_a_number_that_is_not_finite_spoils_nothing():
    normaliser = made()
    normaliser.update(rows(7))
    before = {key: values.clone() for key, values in normaliser.mean.items()}
    broken = rows(2)
    broken["x"][1, 0] = np.nan
    with pytest.raises(NonFiniteError):
        normaliser.update(broken)
    assert all(torch.equal(normaliser.mean[key], before[key]) for key in before)


def test_jitter_of_a_constant_is_not_amplified():
    """As in Baselines' HER: no deviation counts as less than 0.01."""
    normaliser = made(space=FLOATS)
    layer = Normalise(normaliser, "x")
    jitter = np.float32([[1.0, 0.5], [1.0001, 0.6], [0.9999, 0.4]])
    normaliser.update({"x": jitter, "goal": np.zeros((3, 1))})
    deviation = jitter[:, 1].astype(np.float64).std()
    expected = torch.tensor([[0.01, 0.1 / deviation]])
    found = layer(torch.tensor([[1.0001, 0.6]]))
    torch.testing.assert_close(found, expected.float(), rtol=1e-2, atol=1e-4)
