"""The loss of slow features, by hand."""

import pytest
import torch

from coach_rl.extensions.learned_goals.slow_features import slowness


@pytest.mark.parametrize(
    ("has_later", "apart"), [([True, True], 1.5), ([False, True], 3.0), ([False, False], 0.0)]
)
def test_slowness_is_near_after_a_step_and_apart_later(has_later, apart):
    before = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    after = torch.tensor([[1.0, 0.0], [1.0, 2.0]])  # 1 and 4 away
    later = torch.tensor([[3.0, 0.0], [1.0, 1.0]])  # 9 and 1 away, of a margin of 4
    loss, metrics = slowness(before, after, later, torch.tensor(has_later), margin=4.0)
    assert loss.item() == pytest.approx(2.5 + apart)
    assert metrics["step"].item() == pytest.approx(2.5)
    assert metrics["apart"].item() == pytest.approx(apart)
