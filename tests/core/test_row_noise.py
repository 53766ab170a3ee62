import numpy as np
import pytest

from coach_rl.core.row_noise import BLOCK, RowNoise


def noise(num_rows=3, *, seed=1, name="policy", kind="normal", size=2):
    return RowNoise(num_rows=num_rows, size=size, kind=kind, seed=seed, name=name)


def rows(*numbers):
    return np.array(numbers, np.int64)


DRAWS = 2 * BLOCK + 7  # crosses two refills


def test_draw_row_is_the_same_alone_and_among_many():
    alone = noise(3)
    expected = np.stack([alone.draw(rows(2))[0] for _ in range(DRAWS)])
    many, rng, got = noise(8), np.random.default_rng(0), []
    while len(got) < DRAWS:
        chosen = rng.permutation(8)[: rng.integers(0, 9)]
        numbers = many.draw(chosen)
        got += [numbers[where] for where in np.flatnonzero(chosen == 2)]
    np.testing.assert_array_equal(got, expected)


def test_draw_rows_seeds_and_names_have_their_own_streams():
    draws = [
        *noise(3).draw(rows(0, 1, 2)),
        noise(seed=2).draw(rows(0))[0],
        noise(name="heatup").draw(rows(0))[0],
    ]
    assert len({tuple(numbers) for numbers in draws}) == 5


def test_draw_repeats_no_number():
    source = noise(1, size=1)
    numbers = [float(source.draw(rows(0))[0, 0]) for _ in range(DRAWS)]
    assert len(set(numbers)) >= DRAWS - 2  # float32 may repeat a number by chance


def test_draw_normal_numbers_are_standard_normal():
    source = noise(50, size=20)
    numbers = np.concatenate([source.draw(np.arange(50)).ravel() for _ in range(20)])
    # 20,000 numbers: five standard errors are 0.035 for the mean, 0.025 for the deviation
    assert abs(numbers.mean()) < 0.035
    assert abs(numbers.std() - 1) < 0.025
    assert abs((numbers > 1.0).mean() - 0.1587) < 0.013
    assert numbers.dtype == np.float32


def test_draw_uniform_numbers_cover_zero_to_one_evenly():
    source = noise(50, size=20, kind="uniform")
    numbers = np.concatenate([source.draw(np.arange(50)).ravel() for _ in range(20)])
    assert numbers.min() >= 0
    assert numbers.max() < 1
    counts = np.histogram(numbers, bins=10, range=(0, 1))[0]
    # 2,000 in each bin, standard error 42
    assert np.abs(counts - 2000).max() < 5 * 42


def test_draw_without_rows_is_empty():
    assert noise().draw(rows()).shape == (0, 2)


@pytest.mark.parametrize("used", [0, 5, BLOCK - 1, BLOCK, BLOCK + 1])
def test_row_noise_restored_continues_its_streams(used):
    source = noise()
    for _ in range(used):
        source.draw(rows(0, 2))
    state = source.state_dict()
    expected = [source.draw(rows(2, 1, 0)) for _ in range(BLOCK + 2)]
    restored = noise(seed=99)
    restored.load_state_dict(state)
    got = [restored.draw(rows(2, 1, 0)) for _ in range(BLOCK + 2)]
    np.testing.assert_array_equal(got, expected)
