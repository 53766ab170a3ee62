"""Levels under any sequence of calls, against a plain recursion over one environment."""

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


TestLevels = machine_of(stacks()).TestCase
TestLevels.settings = EXAMPLES
