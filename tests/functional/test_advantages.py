"""Advantages of rows against a plain loop."""

import pytest
import torch

from coach_rl.functional.advantages import (
    advantages_of_rows,
    explained_variance,
    segment_ends,
)


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


def test_explained_variance_known_values():
    target = torch.tensor([1.0, 2.0, 3.0])
    assert explained_variance(target, target).item() == 1.0
    assert explained_variance(torch.zeros(3), target).item() == 0.0
    assert explained_variance(target, torch.ones(3)).item() == 0.0
    rounded = torch.full((1000,), 1000.1)  # whose variance in float32 is 5e-9
    assert rounded.var(correction=0) > 0
    assert explained_variance(torch.linspace(0, 1, 1000), rounded).item() == 0.0
