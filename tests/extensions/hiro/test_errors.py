"""Parameters and stacks of HIRO that are refused: a call, the kind of error, and its message."""

from dataclasses import replace

import pytest

import coach_rl as rl
from tests.agents.test_bonuses import WonParameters, stack, td3
from tests.builders import created
from tests.extensions.level_phases.test_level_phases import PLACES
from tests.extensions.level_phases.test_level_phases import built as phased
from tests.extensions.level_phases.test_level_phases import parameters as phases
from tests.refusals import check_refused

STEPS = rl.ReplayMemoryParameters(units=(rl.SubGoalCorrectionParameters(),))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: rl.AdjacencyParameters(far=0.5),
            rl.ParameterError,
            "near must be at most far = 0.5, got 1.0",
        ),
        (
            lambda: created(stack(td3(memory=STEPS, stores=WonParameters()))),
            rl.ConfigurationError,
            "'correction' needs the steps below",
        ),
        (
            lambda: created(stack(td3(memory=STEPS), td3(stores=WonParameters()))),
            rl.ConfigurationError,
            "level 'low' below, which holds back or drops",
        ),
    ],
)
def test_hiro_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)


def frozen_at_times():
    relative = replace(PLACES, relative=True, observed="relative")
    below = {"agent": rl.TD3AgentParameters(), "goal_space": relative, "frozen_from": 60}
    phased(phases(top={"agent": rl.HIROAgentParameters(), "goal_space": None}, low=below))


def test_hiro_above_a_level_that_is_frozen_at_times_is_refused():
    check_refused(
        frozen_at_times, rl.ConfigurationError, "'low' below, which remembers nothing while it"
    )
