"""Random shifts of sampled pictures against a plain program, in every kind of memory."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.errors import ParameterError, SpaceError, UnknownNameError
from coach_rl.extensions.drq.random_shift import RandomShiftParameters, shifted
from tests.memories.replay_worlds import OBSERVED, Cameras, build, observed, same_batches

BEFORE, AFTER = "/observations/camera", "/next_observations/camera"


def shifted_plainly(picture, shift, pad):
    """One picture [height, width, ...], its edges repeated on each side and cut out again."""
    height, width, *others = picture.shape
    padded = np.pad(picture, [(pad, pad), (pad, pad), *[(0, 0)] * len(others)], mode="edge")
    top, left = pad + shift[0], pad + shift[1]
    return padded[top : top + height, left : left + width]


@pytest.mark.parametrize("shape", [(12, 10, 3), (12, 10, 3, 4), (9, 9, 1), (5, 7, 2, 1)])
def test_shifted_equals_plain_padding_and_cutting(shape):
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (30, *shape), dtype=np.uint8)
    shifts = rng.integers(-4, 5, (30, 2))
    shifts[:4] = [(-4, -4), (4, 4), (0, 0), (-4, 4)]
    expected = [shifted_plainly(*pair, 4) for pair in zip(pictures, shifts, strict=True)]
    found = shifted(torch.from_numpy(pictures), torch.from_numpy(shifts))
    np.testing.assert_array_equal(found.numpy(), expected)


def test_shifted_keeps_order_in_memory_of_stacked_frames():
    frames = torch.randint(0, 256, (4, 3, 6, 5), dtype=torch.uint8)  # as a frame ring reads them
    moved = shifted(frames.movedim(1, -1), torch.ones(4, 2, dtype=torch.int64))
    assert moved.movedim(-1, 1).is_contiguous()


def filled(**parameters):
    """A memory with 200 transitions of stacks of three frames."""
    memory = build(observed=observed(3), capacity=300, **parameters)
    cameras = Cameras(2, 3, seed=0)
    for _ in range(100):
        memory.add(cameras.step([0, 1]))
    return memory


def sampled(memory, size):
    """A batch, the pictures before they were shifted, and shifts drawn by the plain program."""
    (unit,) = (each for each in memory.sampler.units if each.name == "random_shift")
    read = {}
    streams = []
    units = memory.sampler.units
    memory.sampler.watch(
        units[units.index(unit) - 1].name, lambda _: streams.append(copied(memory))
    )
    memory.sampler.watch("gather", read.update)
    batch = memory.sample(size)
    return batch, read, streams[-1]


def copied(memory):
    """A generator in the present state of the memory's."""
    rng = np.random.default_rng()
    rng.bit_generator.state = memory._rng.bit_generator.state
    return rng


STORAGES = [
    {},
    {"frame_stack": ("camera",)},
    {"frame_stack": ("camera",), "storage": "device"},
    {"frame_stack": ("camera",), "n_step": 3},
    {"frame_stack": ("camera",), "prioritised": rl.PrioritisedParameters()},
    {"n_step": 2, "prioritised": rl.PrioritisedParameters(), "discount_by_duration": True},
]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("targets", "losses"), [(1, 1), (2, 1), (1, 3), (2, 3)])
def test_sampled_pictures_equal_plain_program(storage, targets, losses):
    pad = 1
    shift = RandomShiftParameters(pad=pad, targets=targets, losses=losses)
    memory = filled(**storage, parts=(shift,))
    for _ in range(3):
        batch, read, rng = sampled(memory, 20)
        before = rng.integers(0, 2 * pad + 1, (20, losses, 2)) - pad
        after = rng.integers(0, 2 * pad + 1, (20, targets, 2)) - pad
        row = 0
        for sample in range(20):
            for loss in range(losses):
                for target in range(targets):
                    for path, found, shifts in (
                        (BEFORE, batch.observation, before[sample, loss]),
                        (AFTER, batch.next_observation, after[sample, target]),
                    ):
                        expected = shifted_plainly(read[path][row].numpy(), shifts, pad)
                        np.testing.assert_array_equal(found["camera"][row].numpy(), expected)
                    first = sample * losses * targets
                    assert batch.position[row] == batch.position[first]
                    assert batch.reward[row] == batch.reward[first]
                    row += 1
        assert len(batch.reward) == len(batch.weight) == row
        assert rng.bit_generator.state == memory._rng.bit_generator.state


def test_other_columns_are_those_without_shifts():
    plain, moved = (filled(parts=parts) for parts in ((), (RandomShiftParameters(pad=1),)))
    one, other = plain.sample(30), moved.sample(30)
    assert torch.equal(one.position, other.position)
    assert torch.equal(one.reward, other.reward)
    assert torch.equal(one.observation["speed"], other.observation["speed"])
    assert not torch.equal(one.observation["camera"], other.observation["camera"])
    kept = (each.trajectories()[BEFORE] for each in (plain, moved))
    np.testing.assert_array_equal(*kept)


def test_every_shift_is_drawn_equally_often():
    memory = filled(parts=(RandomShiftParameters(pad=2),))
    _, _, rng = sampled(memory, 10)
    drawn = rng.integers(0, 5, (50_000, 1, 2))[:, 0] - 2
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 25
    assert abs(counts - 2_000).max() < 6 * np.sqrt(2_000)  # six standard deviations


@pytest.mark.parametrize("storage", STORAGES)
def test_restored_memory_draws_the_same_shifts(storage):
    shift = RandomShiftParameters(pad=1, targets=2, losses=2)
    memory = filled(**storage, parts=(shift,))
    memory.sample(20)
    restored = build(observed=observed(3), capacity=300, seed=9, **storage, parts=(shift,))
    restored.load_state_dict(memory.state_dict())
    for _ in range(3):
        same_batches(memory.sample(20), restored.sample(20))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"draws": rl.SequenceParameters(length=8)}, "needs transitions that are drawn one by one"),
        ({"relabelling": rl.HindsightParameters()}, "must be 1 with relabelled goals"),
    ],
)
def test_random_shift_refuses_sequences_and_copies_of_goals(settings, message):
    with pytest.raises(ParameterError, match=message):
        rl.ReplayMemoryParameters(parts=(RandomShiftParameters(targets=2),), **settings)


@pytest.mark.parametrize(
    ("space", "keys", "error", "message"),
    [
        (OBSERVED, None, SpaceError, "which are not among the observations"),
        (observed(3), ("speed",), SpaceError, "which are camera among the observations"),
        (observed(3), ("lens",), UnknownNameError, "lens"),
        (
            spaces.Dict({"camera": spaces.Box(0, 1, (2, 2, 3), np.float32)}),
            None,
            SpaceError,
            "shifts pictures, bytes",
        ),
        (
            spaces.Dict({"camera": spaces.Box(0, 255, (3, 9, 9), np.uint8)}),
            None,
            SpaceError,
            "seems to have its channels first",
        ),
    ],
)
def test_random_shift_of_what_is_no_picture_is_refused(space, keys, error, message):
    with pytest.raises(error, match=message):
        build(observed=space, parts=(RandomShiftParameters(keys=keys),))
