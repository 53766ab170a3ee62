"""Means of what the losses say, and the first of it that is not finite."""

import math

import numpy as np
import pytest
import torch

from coach_rl.architectures import step_metrics
from coach_rl.architectures.step_metrics import StepMetrics

NAMES = ("loss", "norm")


def added(*rows, names=NAMES):
    metrics = StepMetrics()
    for row in rows:
        metrics.add(names, torch.tensor(row))
    return metrics


def test_sums_are_taken_one_by_one_in_single_precision():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1_000, 2)).astype(np.float32)
    total = np.zeros(2, np.float32)
    for row in rows:
        total += row
    means = added(*rows.tolist()).drain()
    assert means == {"loss": float(total[0]) / 1_000, "norm": float(total[1]) / 1_000}


def test_a_metric_counts_the_steps_it_was_part_of():
    metrics = added([1.0, 5.0], [3.0, 7.0])
    metrics.add(("loss",), torch.tensor([8.0]))
    assert metrics.drain() == {"loss": 4.0, "norm": 6.0}
    assert metrics.drain() == {}


@pytest.mark.parametrize("fold_at", [1, 2, 10])
def test_faults_come_in_their_order_with_their_steps(fold_at, monkeypatch):
    monkeypatch.setattr(step_metrics, "FOLD_AT", fold_at)
    metrics = added([1.0, 1.0], [1.0, math.inf], [math.nan, math.inf])
    metrics.add(("other",), torch.tensor([-math.inf]))
    metrics.add(NAMES, torch.tensor([-math.inf, 0.0]))
    faults = metrics.faults()
    assert list(faults) == ["norm", "loss", "other"]
    assert {name: step for name, (step, _) in faults.items()} == {"norm": 2, "loss": 3, "other": 4}
    assert faults["norm"][1] == math.inf
    assert math.isnan(faults["loss"][1])
    metrics.drain()
    assert metrics.faults() == {}
