"""Wrong fields of PettingZoo's environments: each is one line that has the value and the rule."""

from functools import partial

import pytest

from coach_rl.core.errors import ParameterError
from coach_rl.environments.pettingzoo import PettingZooParameters
from tests.refusals import check_refused

P = ParameterError
hunt = partial(PettingZooParameters, level="little_parallel:Hunt")
HUNTS = [
    (hunt, {"vectorization": "vector"}, P, "must be 'sync' or 'subprocess', got 'vector'"),
    (hunt, {"start_method": "thread"}, P, "'forkserver' or 'fork', got 'thread'"),
    (hunt, {"max_episode_steps": 0}, P, "must be int > 0 | -1 | None, got 0"),
    (hunt, {"processes": 0}, P, "processes must be int > 0 | None, got 0"),
]


@pytest.mark.parametrize(("build", "given", "kind", "message"), HUNTS)
def test_pettingzoo_invalid_input_error(build, given, kind, message):
    check_refused(partial(build, **given), kind, message)
