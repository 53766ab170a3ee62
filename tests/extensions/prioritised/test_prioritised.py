import numpy as np
import pytest
import torch

from coach_rl.core.errors import NonFiniteError
from coach_rl.extensions.prioritised import PrioritisedParameters
from tests.memories.replay_worlds import Stream, build


def filled(ticks=10, **parameters):
    memory, stream = build(prioritised=PrioritisedParameters(**parameters)), Stream(2, seed=3)
    for _ in range(ticks):
        memory.add(stream.step())
    return memory


def chi_square(positions, probabilities):
    counts = np.bincount(positions, minlength=len(probabilities))
    expected = probabilities * counts.sum()
    drawn = expected > 0
    assert (counts[~drawn] == 0).all()
    return ((counts - expected)[drawn] ** 2 / expected[drawn]).sum()


def test_prioritised_frequency_is_proportional_to_priority():
    memory = filled(alpha=0.5, epsilon=1e-9)  # positions 0 to 9 and 500 to 509
    positions = memory.store.kept()
    errors = np.arange(20) - 5.0  # of either sign; one is 0
    memory.note_errors(torch.from_numpy(positions), torch.from_numpy(errors))
    priorities = np.sqrt(np.abs(errors) + 1e-9)
    probabilities = np.zeros(1000)
    probabilities[positions] = priorities / priorities.sum()
    drawn = memory.sample(30_000).position.numpy()
    # strata make the numbers more even than chance: 19 degrees of freedom would allow 44
    assert chi_square(drawn, probabilities) < 44


def test_prioritised_small_batches_are_unbiased():
    memory = filled(alpha=1.0, ticks=3)
    positions = memory.store.kept()
    memory.note_errors(torch.from_numpy(positions), torch.arange(1.0, 7.0))
    drawn = np.concatenate([memory.sample(5).position.numpy() for _ in range(4000)])
    probabilities = np.zeros(1000)
    probabilities[positions] = np.arange(1, 7) / 21
    assert chi_square(drawn, probabilities) < 21  # 5 degrees of freedom, once in 1,000


def test_prioritised_beta_one_means_are_unbiased():
    memory = filled(alpha=1.0, beta=1.0)
    kept = memory.store.kept()
    memory.note_errors(torch.from_numpy(kept), torch.arange(1.0, 21.0))
    batch = memory.sample(20_000)
    weights = batch.weight.double()
    values = torch.from_numpy(memory.store.ledger["/rewards"])
    weighted = (weights * values[batch.position]).sum() / weights.sum()
    assert weighted.item() == pytest.approx(values[kept].double().mean().item(), abs=0.02)
    assert abs(values[batch.position].mean().item() - weighted.item()) > 0.05


def test_prioritised_non_finite_errors_change_nothing():
    memory = filled()
    before = memory.state_dict()["sampler"]["positions"]["priorities"]
    with pytest.raises(NonFiniteError):
        memory.note_errors(torch.tensor([0, 1]), torch.tensor([1.0, torch.nan]))
    after = memory.state_dict()["sampler"]["positions"]["priorities"]
    np.testing.assert_array_equal(before, after)


def test_prioritised_largest_alpha_stays_finite():
    memory = filled(alpha=4.0)
    errors = torch.zeros(len(memory))
    positions = torch.from_numpy(memory.store.kept())
    memory.note_errors(positions, errors)
    assert len(set(memory.sample(64).position.tolist())) > 1
    errors[3] = torch.finfo(torch.float32).max
    memory.note_errors(positions, errors)
    batch = memory.sample(8)
    assert batch.position.tolist() == [positions[3]] * 8
    assert batch.weight.tolist() == [1.0] * 8
