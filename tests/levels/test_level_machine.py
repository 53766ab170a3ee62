"""Levels under any sequence of calls, against a plain recursion over one environment."""

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.levels.any_stack import machine_of, stacks

EXAMPLES = settings(
    max_examples=50,
    stateful_step_count=10,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),  # to shrink takes minutes
    suppress_health_check=list(HealthCheck),
)


class TestLevels(machine_of(stacks()).TestCase):
    settings = EXAMPLES


@pytest.mark.slow
class TestLevelsForLong(machine_of(stacks()).TestCase):
    settings = settings(EXAMPLES, max_examples=1_000, stateful_step_count=20, derandomize=False)
