"""GAE against numbers worked out by hand, a plain loop, and cases where it must be zero."""

import pytest
import torch

from coach_rl.functional.advantages import discounted_sums, explained_variance, gae


def column(*values):
    return torch.tensor(values).unsqueeze(1)


def test_three_steps_by_hand():
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


def test_terminated_step_has_no_future_and_truncated_step_keeps_its_own():
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


def test_self_consistent_values_leave_no_advantage_at_a_truncation():
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
def test_equals_a_plain_loop(steps):
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


def test_discounted_sums_by_hand():
    # s_2 = 3, s_1 = 2 + 0.5*3 = 3.5, s_0 = 1 + 0*3.5 = 1
    sums = discounted_sums(column(1.0, 2.0, 3.0), column(0.0, 0.5, 0.9))
    assert sums[:, 0].tolist() == [1.0, 3.5, 3.0]


def test_explained_variance():
    target = torch.tensor([1.0, 2.0, 3.0])
    assert explained_variance(target, target).item() == 1.0
    assert explained_variance(torch.zeros(3), target).item() == 0.0
    assert explained_variance(target, torch.ones(3)).item() == 0.0
