import pytest
import torch

from coach_rl.functional.temporal_difference import (
    dueling_values,
    of_actions,
    regression_loss,
    td_target,
)


def test_td_target_by_hand():
    reward = torch.tensor([1.0, -2.0, 0.5])
    discount = torch.tensor([0.9, 0.0, 0.81])  # goes on, terminated, two steps
    next_value = torch.tensor([10.0, 99.0, -1.0])
    found = td_target(reward, discount, next_value)
    torch.testing.assert_close(found, torch.tensor([10.0, -2.0, -0.31]))
    clipped = td_target(reward, discount, next_value, clip=(-1.0, 5.0))
    torch.testing.assert_close(clipped, torch.tensor([5.0, -1.0, -0.31]))


def test_critic_loss_squared_by_hand():
    # Critic 1: (1*1 + 2*9)/2 / 2 = 4.75; critic 2: (1*4 + 2*0)/2 / 2 = 1.
    error = torch.tensor([[1.0, -3.0], [2.0, 0.0]])
    weight = torch.tensor([1.0, 2.0])
    assert regression_loss(error, weight).item() == pytest.approx(5.75)


def test_critic_loss_huber_by_hand():
    # Within 1: 0.5 * 0.25 = 0.125; beyond: 1 * (3 - 0.5) = 2.5; mean 1.3125.
    error = torch.tensor([[0.5, -3.0]])
    assert regression_loss(error, torch.ones(2), huber=1.0).item() == pytest.approx(1.3125)


def test_critic_loss_huber_equals_torch():
    error = torch.linspace(-4, 4, 33)[None]
    ours = regression_loss(error, torch.ones(33), huber=1.5)
    theirs = torch.nn.functional.huber_loss(error[0], torch.zeros(33), delta=1.5)
    torch.testing.assert_close(ours, theirs)


def test_dueling_values_by_hand():
    # Advantages 1, 2, 6 have the mean 3, so they count -2, -1, 3 beside the value 10.
    value = torch.tensor([[[10.0]]])
    advantage = torch.tensor([[[1.0], [2.0], [6.0]]])
    assert dueling_values(value, advantage)[0, :, 0].tolist() == [8.0, 9.0, 13.0]


def test_dueling_values_advantages_are_centred():
    # Two numbers per action: means 2 and -1 over the actions.
    value = torch.tensor([[[0.0, 5.0]]])
    advantage = torch.tensor([[[1.0, 0.0], [3.0, -2.0]]])
    assert dueling_values(value, advantage).tolist() == [[[-1.0, 6.0], [1.0, 4.0]]]


def test_dueling_values_ignore_a_shift_of_all_advantages():
    rng = torch.Generator().manual_seed(0)
    value, advantage = torch.randn(4, 1, 3, generator=rng), torch.randn(4, 5, 3, generator=rng)
    shifted = dueling_values(value, advantage + 7)
    torch.testing.assert_close(shifted, dueling_values(value, advantage))


def test_of_actions_selects_values():
    values = torch.arange(12.0).view(2, 3, 2)
    assert of_actions(values, torch.tensor([2, 0])).tolist() == [[4.0, 5.0], [6.0, 7.0]]
