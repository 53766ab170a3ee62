"""Losses of options and skills against numbers worked out by hand."""

import math

import pytest
import torch

from coach_rl.extensions.skills.skill_losses import (
    discrimination,
    diversity_reward,
    termination_loss,
)

LOGITS = torch.log(torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]))
SKILL = torch.tensor([0, 1])


def test_discrimination_by_hand():
    loss, metrics = discrimination(LOGITS, SKILL)
    assert loss.item() == pytest.approx(-(math.log(0.7) + math.log(0.3)) / 2)
    assert metrics["discriminator_accuracy"].item() == 0.5


def test_diversity_reward_by_hand():
    expected = [math.log(0.7) - math.log(1 / 3), math.log(0.3) - math.log(1 / 3)]
    assert diversity_reward(LOGITS, SKILL).tolist() == pytest.approx(expected)


def test_termination_loss_gradient_by_hand():
    # Final states do not count; (0.5 * (-2 + 0.5) + 0.1 * (0 + 0.5)) / 2 = -0.35.
    chance = torch.tensor([0.5, 0.1, 0.9], requires_grad=True)
    advantage = torch.tensor([-2.0, 0.0, -7.0])
    counts = torch.tensor([True, True, False])
    loss, metrics = termination_loss(chance, advantage, counts, 0.5)
    assert loss.item() == pytest.approx(-0.35)
    (gradient,) = torch.autograd.grad(loss, chance)
    assert gradient.tolist() == pytest.approx([-0.75, 0.25, 0.0])
    assert metrics["termination_chance"].item() == pytest.approx(0.3)
    assert metrics["option_advantage"].item() == pytest.approx(-1.0)


def test_termination_loss_only_final_states_is_zero():
    nowhere = torch.zeros(2, dtype=torch.bool)
    assert termination_loss(torch.ones(2), torch.ones(2), nowhere, 1.0)[0].item() == 0
