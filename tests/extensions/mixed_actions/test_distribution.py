"""Mixed distributions against torch.distributions and against a plain loop, in float64."""

import pytest
import torch
from torch import distributions as reference

from coach_rl.extensions.mixed_actions.distribution import Mixed

SIZES, GROUPS = (3, 2), ((2, None), (1, (0, 2)), (3, (1, 0)), (1, (0, 2)))
MIXED = Mixed(SIZES, GROUPS)
COUNT = 40
EXACT = {"rtol": 0.0, "atol": 1e-10}


def parameters(seed):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(COUNT, 5 + 2 * 7, generator=rng, dtype=torch.float64)


def actions():
    rng = torch.Generator().manual_seed(2)
    chosen = [torch.randint(size, (COUNT, 1), generator=rng) for size in SIZES]
    numbers = torch.randn(COUNT, 7, generator=rng, dtype=torch.float64)
    return torch.cat([*chosen, numbers], dim=1)


def parts(row):
    """The choices and the groups of normals that a row of parameters describes."""
    first, second, mean, log_std = row.split([3, 2, 7, 7])
    sizes = [size for size, _ in GROUPS]
    normals = zip(mean.split(sizes), log_std.exp().split(sizes), strict=True)
    return (
        [reference.Categorical(logits=first), reference.Categorical(logits=second)],
        [reference.Independent(reference.Normal(*each), 1) for each in normals],
    )


def log_prob(row, action):
    choices, normals = parts(row)
    total = sum(choice.log_prob(chosen) for choice, chosen in zip(choices, action[:2], strict=True))
    numbers = action[2:].split([size for size, _ in GROUPS])
    for (_, owner), normal, number in zip(GROUPS, normals, numbers, strict=True):
        if owner is None or action[owner[0]] == owner[1]:
            total = total + normal.log_prob(number)
    return total


def expected_over_choices(choices, terms):
    """The terms of the groups that count, over all pairs of choices with their probabilities."""
    total = 0.0
    for first, chance in enumerate(choices[0].probs):
        for second, other in enumerate(choices[1].probs):
            chosen = (first, second)
            for (_, owner), term in zip(GROUPS, terms, strict=True):
                if owner is None or chosen[owner[0]] == owner[1]:
                    total = total + chance * other * term
    return total


def entropy(row):
    choices, normals = parts(row)
    own = sum(choice.entropy() for choice in choices)
    return own + expected_over_choices(choices, [normal.entropy() for normal in normals])


def kl(old, new):
    (choices, normals), (new_choices, new_normals) = parts(old), parts(new)
    own = sum(map(reference.kl_divergence, choices, new_choices))
    terms = list(map(reference.kl_divergence, normals, new_normals))
    return own + expected_over_choices(choices, terms)


CASES = {
    "log_prob": (MIXED.log_prob, log_prob, (parameters(0), actions())),
    "entropy": (MIXED.entropy, entropy, (parameters(0),)),
    "kl": (MIXED.kl, kl, (parameters(0), parameters(1))),
}


@pytest.mark.parametrize("name", CASES)
def test_mixed_equals_a_plain_loop_with_its_gradients(name):
    ours, plain, given = CASES[name]
    given = [each.clone().requires_grad_() for each in given]
    found = ours(*given)
    expected = torch.stack([plain(*rows) for rows in zip(*given, strict=True)])
    torch.testing.assert_close(found, expected, **EXACT)
    weights = torch.linspace(-1, 2, COUNT, dtype=torch.float64)
    slopes = [torch.autograd.grad((weights * each).sum(), given) for each in (found, expected)]
    torch.testing.assert_close(*slopes, **EXACT)


def test_mixed_sizes():
    assert MIXED.parameter_size == 19
    assert MIXED.log_std_size == 7
    same = parameters(0)
    torch.testing.assert_close(MIXED.kl(same, same), torch.zeros(COUNT, dtype=torch.float64))
