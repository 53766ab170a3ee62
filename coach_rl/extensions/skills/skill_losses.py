"""Losses of learned options and skills."""

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from coach_rl.functional.policy_gradient import Mean

Numbers = dict[str, Tensor]


def discrimination(
    logits: Tensor, skill: Tensor, mean: Mean = torch.mean
) -> tuple[Tensor, Numbers]:
    """Cross-entropy of a discriminator q(z | s) of skills (Eysenbach et al. 2018, algorithm 1).

    Args:
        logits: Of each skill, [B, K].
        skill: The skills that led to the states, int64 [B].
        mean: Mean of values [B] over the samples that count.

    Returns:
        The mean loss, and the share of states whose skill is right.
    """
    loss = mean(cross_entropy(logits, skill, reduction="none"))
    correct = (logits.argmax(dim=1) == skill).to(logits.dtype)
    return loss, {
        "discriminator_loss": loss.detach(),
        "discriminator_accuracy": mean(correct).detach(),
    }


def diversity_reward(logits: Tensor, skill: Tensor) -> Tensor:
    """Log q(z | s) - log p(z), p uniform over K skills (Eysenbach et al. 2018), [B].

    Args:
        logits: Of each skill, [B, K].
        skill: int64 [B].
    """
    log_q = torch.log_softmax(logits, dim=1).gather(1, skill[:, None]).squeeze(1)
    return log_q + math.log(logits.shape[1])


def termination_loss(
    chance: Tensor, advantage: Tensor, counts: Tensor, deliberation_cost: float
) -> tuple[Tensor, Numbers]:
    """beta(s, w) (Q(s, w) - V(s) + cost), whose gradient is that of Bacon et al. 2017, theorem 2.

    The cost of deliberation, which makes options last, is that of Harb et al. 2018
    (arXiv:1709.04571).

    Args:
        chance: beta, the probability that the option ends, [B].
        advantage: Q(s, w) - V(s) of the option in the states that decisions led to, [B].
        counts: False where a state is final, so that no option could continue, bool [B].
        deliberation_cost: Reward that ending an option costs.
    """
    weight = counts.to(chance.dtype)
    count = weight.sum().clamp(min=1.0)
    loss = (chance * (advantage + deliberation_cost) * weight).sum() / count
    return loss, {
        "termination_loss": loss.detach(),
        "termination_chance": ((chance * weight).sum() / count).detach(),
        "option_advantage": ((advantage * weight).sum() / count).detach(),
    }
