"""GAE against numbers worked out by hand, a plain loop, and cases where it must be zero."""

import pytest
import torch

from coach_rl.functional.advantages import (
    advantages_of_rows,
    discounted_sums,
    explained_variance,
    gae,
    segment_ends,
)


def column(*values):
    return torch.tensor(values).unsqueeze(1)


def test_gae_three_steps_by_hand():
    # discount 0.5, lambda 0.5, rewards 1 2 3, values 1 1 1, next values 1 1 4, nothing ends.
    # delta_2 = 3 + 0.5*4 - 1 = 4;     A_2 = 4
    # delta_1 = 2 + 0.5*1 - 1 = 1.5;   A_1 = 1.5 + 0.25*4 = 2.5
    # delta_0 = 1 + 0.5*1 - 1 = 0.5;   A_0 = 0.5 + 0.25*2.5 = 1.125
    advantage = gae(
        reward=column(1.0, 2.0, 3.0),
        value=column(1.0, 1.0, 1.0),
        next_value=column(1.0, 1.0, 4.0),
        terminated=column(False, False, False),
        ended=column(False, False, False),
        discount=torch.full((3, 1), 0.5),
        trace=0.5,
    )
    assert advantage[:, 0].tolist() == pytest.approx([1.125, 2.5, 4.0])


def test_gae_termination_has_no_future_truncation_bootstraps():
    # Step 0 ends its episode, step 1 belongs to the next: A_1 must not leak into A_0.
    shared = {
        "reward": column(1.0, 5.0),
        "value": column(2.0, 3.0),
        "next_value": column(10.0, 0.0),
        "ended": column(True, False),
        "discount": torch.full((2, 1), 0.9),
        "trace": 0.95,
    }
    dead = gae(**shared, terminated=column(True, False))
    cut = gae(**shared, terminated=column(False, False))
    assert dead[0, 0].item() == pytest.approx(1.0 - 2.0)
    assert cut[0, 0].item() == pytest.approx(1.0 + 0.9 * 10.0 - 2.0)


def test_gae_consistent_values_truncation_has_no_advantage():
    # All rewards 0, V = 1, discount 1: every advantage is 0, also where an episode is cut off.
    ones = torch.ones(5, 2)
    ended = torch.zeros(5, 2, dtype=torch.bool)
    ended[2, 0] = True
    advantage = gae(
        reward=ones * 0,
        value=ones,
        next_value=ones,
        terminated=ended & False,
        ended=ended,
        discount=ones,
        trace=0.95,
    )
    assert advantage.abs().max().item() == 0.0


def slow_gae(reward, value, next_value, terminated, ended, discount, trace):
    advantage = torch.zeros_like(value)
    following = torch.zeros_like(value[0])
    for t in reversed(range(len(value))):
        future = torch.where(terminated[t], torch.zeros_like(next_value[t]), next_value[t])
        delta = reward[t] + discount[t] * future - value[t]
        follows = torch.where(ended[t], torch.zeros_like(following), following)
        following = delta + discount[t] * trace * follows
        advantage[t] = following
    return advantage


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 64, 129])
def test_gae_equals_plain_loop(steps):
    rng = torch.Generator().manual_seed(steps)
    draw = lambda: torch.randn(steps, 3, generator=rng, dtype=torch.float64)  # noqa: E731
    ended = torch.rand(steps, 3, generator=rng) < 0.1
    arguments = {
        "reward": draw(),
        "value": draw(),
        "next_value": draw(),
        "terminated": ended & (torch.rand(steps, 3, generator=rng) < 0.5),
        "ended": ended,
        "discount": torch.full((steps, 3), 0.99, dtype=torch.float64),
        "trace": 0.95,
    }
    torch.testing.assert_close(gae(**arguments), slow_gae(**arguments))


def of_rows(row, reward, value, next_value, terminated, truncated, follows, discount, trace):
    """Advantages by memory position of transitions that came in this order, one a memory place."""
    row = torch.tensor(row)
    members = [torch.nonzero(row == number)[:, 0] for number in row.unique()]
    longest = max(map(len, members))
    valid = torch.tensor([[t < len(each) for each in members] for t in range(longest)])
    index = torch.stack([torch.cat([m, m.new_zeros(longest - len(m))]) for m in members], dim=1)
    ends = segment_ends(index=index, valid=valid, ended=terminated | truncated, follows=follows)
    return advantages_of_rows(
        index=index,
        valid=valid,
        ends=ends,
        reward=reward,
        value=value,
        value_after_ends=next_value[index[ends]],
        terminated=terminated,
        discount=discount[index],
        trace=trace,
    )


def interleaved(*, terminated=(), truncated=(), anew=()):
    """Row 7 at positions 0, 2, 3 and row 4 at 1, 4; all rewards 1, discount and lambda 1/2.

    The values are 1, 2, 3 and 4, 8; the values of the next observations 20, 30, 40 and 80, 90.
    """
    flags = [torch.zeros(5, dtype=torch.bool) for _ in range(3)]
    for flag, positions in zip(flags, (terminated, truncated, anew), strict=True):
        flag[list(positions)] = True
    advantage = of_rows(
        [7, 4, 7, 7, 4],
        torch.ones(5),
        torch.tensor([1.0, 4.0, 2.0, 3.0, 8.0]),
        torch.tensor([20.0, 80.0, 30.0, 40.0, 90.0]),
        *flags[:2],
        ~flags[2],
        torch.full((5,), 0.5),
        0.5,
    )
    return advantage[[0, 2, 3]].tolist(), advantage[[1, 4]].tolist()


def test_advantages_of_rows_open_row_bootstraps():
    # Row 7: delta 1 + 2/2 - 1 = 1, 1 + 3/2 - 2 = 1/2, 1 + 40/2 - 3 = 18; each carries 1/4:
    # A_2 = 18, A_1 = 1/2 + 18/4 = 5, A_0 = 1 + 5/4 = 2.25
    # Row 4: delta 1 + 8/2 - 4 = 1, 1 + 90/2 - 8 = 38; A_0 = 1 + 38/4 = 10.5
    assert interleaved() == ([2.25, 5.0, 18.0], [10.5, 38.0])


def test_advantages_of_rows_end_stops_value_and_trace():
    # Position 2 terminates: delta 1 - 2 = -1, A_0 = 1 - 1/4
    assert interleaved(terminated=[2])[0] == [0.75, -1.0, 18.0]
    # It is truncated: delta 1 + 30/2 - 2 = 14 from its true next observation, A_0 = 1 + 14/4
    assert interleaved(truncated=[2])[0] == [4.5, 14.0, 18.0]
    assert interleaved(terminated=[2], truncated=[2]) == interleaved(terminated=[2])
    # The row's end needs no bootstrap if it terminates: delta 1 - 8 = -7, A_0 = 1 - 7/4
    assert interleaved(terminated=[4])[1] == [-0.75, -7.0]


def test_advantages_of_rows_gap_is_truncation():
    assert interleaved(anew=[3]) == interleaved(truncated=[2])
    assert interleaved(anew=[0, 1]) == interleaved()  # nothing lies before the first of a row


@pytest.mark.parametrize(("count", "rows"), [(1, 1), (2, 2), (40, 1), (60, 7), (200, 3)])
def test_advantages_of_rows_irregular_equals_plain_loop(count, rows):
    rng = torch.Generator().manual_seed(count)
    draw = lambda: torch.randn(count, generator=rng, dtype=torch.float64)  # noqa: E731
    chance = lambda p: torch.rand(count, generator=rng) < p  # noqa: E731
    row = torch.randint(rows, (count,), generator=rng).tolist()
    reward, value, next_value, discount = draw(), draw(), draw(), draw().sigmoid()
    terminated, truncated, follows = chance(0.1), chance(0.1), chance(0.9)
    found = of_rows(
        row, reward, value, next_value, terminated, truncated, follows, discount, trace=0.9
    )
    later = {}  # by row: its next transition, and that one's advantage
    for at in reversed(range(count)):
        following, advantage = later.get(row[at], (None, 0.0))
        is_end = following is None or not follows[following] or terminated[at] or truncated[at]
        after = next_value[at] if is_end else value[following]
        delta = reward[at] + discount[at] * after * (not terminated[at]) - value[at]
        advantage = delta + (0.0 if is_end else discount[at] * 0.9 * advantage)
        later[row[at]] = at, advantage
        assert found[at].item() == pytest.approx(float(advantage), rel=1e-9)


def test_discounted_sums_by_hand():
    # s_2 = 3, s_1 = 2 + 0.5*3 = 3.5, s_0 = 1 + 0*3.5 = 1
    sums = discounted_sums(column(1.0, 2.0, 3.0), column(0.0, 0.5, 0.9))
    assert sums[:, 0].tolist() == [1.0, 3.5, 3.0]


def test_explained_variance_known_values():
    target = torch.tensor([1.0, 2.0, 3.0])
    assert explained_variance(target, target).item() == 1.0
    assert explained_variance(torch.zeros(3), target).item() == 0.0
    assert explained_variance(target, torch.ones(3)).item() == 0.0
    rounded = torch.full((1000,), 1000.1)  # whose variance in float32 is 5e-9
    assert rounded.var(correction=0) > 0
    assert explained_variance(torch.linspace(0, 1, 1000), rounded).item() == 0.0
