import torch

from coach_rl.functional.action_values import dueling_values, of_actions


def test_dueling_values_by_hand():
    # Advantages 1, 2, 6 have the mean 3, so they count -2, -1, 3 beside the value 10.
    value = torch.tensor([[[10.0]]])
    advantage = torch.tensor([[[1.0], [2.0], [6.0]]])
    assert dueling_values(value, advantage)[0, :, 0].tolist() == [8.0, 9.0, 13.0]


def test_advantages_are_centred_number_by_number():
    # Two numbers per action: means 2 and -1 over the actions.
    value = torch.tensor([[[0.0, 5.0]]])
    advantage = torch.tensor([[[1.0, 0.0], [3.0, -2.0]]])
    assert dueling_values(value, advantage).tolist() == [[[-1.0, 6.0], [1.0, 4.0]]]


def test_a_shift_of_all_advantages_says_nothing():
    rng = torch.Generator().manual_seed(0)
    value, advantage = torch.randn(4, 1, 3, generator=rng), torch.randn(4, 5, 3, generator=rng)
    shifted = dueling_values(value, advantage + 7)
    torch.testing.assert_close(shifted, dueling_values(value, advantage))


def test_the_numbers_of_one_action_each():
    values = torch.arange(12.0).view(2, 3, 2)
    assert of_actions(values, torch.tensor([2, 0])).tolist() == [[4.0, 5.0], [6.0, 7.0]]
