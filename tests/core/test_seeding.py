import itertools
import random

import numpy as np
import torch

from coach_rl.core.seeding import (
    generator,
    generator_state,
    integer_seed,
    load_generator_state,
)


def first(*names):
    return tuple(generator(*names).integers(0, 2**62, 2).tolist())


def test_generator_streams_are_pinned():
    # SeedSequence([3, crc32("policy"), 2, 1]) into PCG64, numpy alone; crc32("policy") worked out
    # by `python -c "import zlib; print(zlib.crc32(b'policy'))"`.
    sequence = np.random.SeedSequence([3, 4034725142, 2, 1])
    expected = np.random.Generator(np.random.PCG64(sequence)).random(3)
    np.testing.assert_array_equal(generator(3, "policy", 2).random(3), expected)


def test_generator_other_seeds_names_and_rows_other_streams():
    streams = [
        first(0, "a", "b"),
        first(0, "b", "a"),
        first(0, "a"),
        first(1, "a", "b"),
        first(0, "ab"),
        *[first(0, "a", row) for row in range(1, 20)],
    ]
    assert len(set(streams)) == len(streams)
    seeds = [integer_seed(seed, "a", row) for seed, row in itertools.product(range(9), range(9))]
    assert len(set(seeds)) == len(seeds)


def test_generator_trailing_zero_other_stream():
    assert first(7, "noise") != first(7, "noise", 0)


def test_integer_seeds_fit_31_bits():
    seeds = [integer_seed(seed, "x") for seed in range(300)]
    assert all(isinstance(seed, int) and 0 <= seed < 2**31 for seed in seeds)
    assert max(seeds) > 2**30  # the whole range is used


def test_generator_leaves_global_generators_alone():
    before = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    generator(1, "x").random(10)
    integer_seed(1, "x")
    assert random.getstate() == before[0]
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2])


def test_generator_restored_continues_its_stream():
    rng = generator(5, "x")
    rng.standard_normal(3, np.float32)  # leaves half a draw in the generator's buffer
    rng.integers(0, 10, 1, dtype=np.uint32)
    state = generator_state(rng)
    expected = rng.random(5), rng.integers(0, 10, 3, dtype=np.uint32)
    other = generator(6, "y")
    load_generator_state(other, state)
    np.testing.assert_array_equal(other.random(5), expected[0])
    np.testing.assert_array_equal(other.integers(0, 10, 3, dtype=np.uint32), expected[1])
