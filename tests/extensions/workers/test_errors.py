"""Workers that are refused: calls, kinds, and parts of the one line."""

from dataclasses import replace
from functools import partial

import pytest

import coach_rl as rl
from coach_rl.core.errors import CheckpointError
from tests.extensions.workers.test_collection import manager_of, on_policy, with_workers
from tests.graph_managers.small_runs import parameters
from tests.graph_managers.test_policies import DeclaredParameters, ForgottenParameters
from tests.graph_managers.test_policies import experiment as with_state
from tests.refusals import check_refused

C, P = rl.ConfigurationError, rl.ParameterError


def collected(params=None, *, use=lambda params: params, **workers):
    return lambda: use(with_workers(params or parameters(), **workers))


def resumed_by(**workers):
    with manager_of(with_workers(on_policy())) as first:
        list(first.train_and_act(rl.EnvironmentSteps(40)))
        saved = first.state_dict()
    other = with_workers(on_policy(), **workers) if workers else on_policy()
    with manager_of(other) as second:
        second.load_state_dict(saved)


NOWHERE = replace(parameters(), environment=rl.GymnasiumParameters(level="nowhere:Missing"))
CASES = [
    (rl.CollectionParameters, P, "CollectionParameters lacks workers"),
    (collected(workers=5), P, "source.workers (5) must be num_envs (4) or less"),
    (collected(on="moon"), P, "must be local, inline, ray or ray:ADDRESS, got 'moon'"),
    (collected(mode="asynchronous", on="local", ticks=99), P, "CollectionParameters.staleness"),
    (collected(mode="asynchronous"), P, "only in synchronous mode"),
    (
        collected(on_policy(), on="local", mode="asynchronous", use=manager_of),
        C,
        "level 'main' learns only ... use synchronous",
    ),
    (collected(NOWHERE, on="local", use=manager_of), C, "nowhere"),
    (
        collected(with_state(ForgottenParameters), use=manager_of),
        C,
        "state of its own (state_dict)",
    ),
    (
        collected(with_state(DeclaredParameters), use=manager_of),
        C,
        "state of its own (SAVED: shift)",
    ),
    (
        partial(resumed_by, workers=4),
        CheckpointError,
        "those of 2 workers, not of 4 workers ... --restart_episodes",
    ),
    (resumed_by, CheckpointError, "2 workers, not of the run's own process ... --restart_episodes"),
]


@pytest.mark.parametrize(("call", "kind", "message"), CASES)
def test_workers_that_do_not_fit_are_refused(call, kind, message):
    check_refused(call, kind, message)
