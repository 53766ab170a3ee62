"""Environments that fail: the row restarts or the run stops, and no other row notices."""

import os
import signal
import sys
import time
import warnings

import numpy as np
import pytest
import torch
from failing_environments import IN_RESET, IN_STEP, TROUBLE, Forks, sleeps
from little_environments import FailsToClose

from coach_rl.core.errors import ActionError, CoachWarning, EnvironmentFault, NonFiniteError
from coach_rl.environments.faults import FaultParameters
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.mujoco import MujocoParameters
from tests.environments.walks import answer_to

ROWS, ROW, STEPS = 4, 2, 8
CRASHES = {
    "raised", "exits", "base exception", "no text", "failing text", "long text", "raised in reset",
}  # fmt: skip
LOSES_PROCESS = {"leaves", "killed", "crashed", "hung", "left in reset", "hung in reset"}
NON_FINITE = {
    "nan observed", "infinity observed", "nan reward", "infinite reward", "nan in reset",
}  # fmt: skip
EVERY = [*IN_STEP, *IN_RESET]
CLOSE_LINE = FailsToClose.close.__code__.co_firstlineno + 1


@pytest.fixture(autouse=True)
def time_limit():
    """Nothing hangs: SIGALRM ends a test that takes too long."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(240)
    yield
    signal.alarm(0)


def cause_of(how):
    if how in LOSES_PROCESS:
        return "hung" if how.startswith("hung") else "died"
    if how in NON_FINITE:
        return "non_finite"
    return "raised" if how in CRASHES else "malformed"


def build(how, vectorization, reaction="restart", level="Fails", **changes):
    seconds = 0.3 if how.startswith("hung") else 5.0  # a busy machine is no fault
    limits = {"step_seconds": seconds, "reset_seconds": seconds}
    limits = limits if vectorization == "subprocess" else {}
    faults = FaultParameters(
        on_crash=reaction, on_malformed=reaction, on_non_finite=reaction, **(limits | changes)
    )
    return GymnasiumParameters(
        level=f"failing_environments:{level}",
        kwargs={"how": how},
        vectorization=vectorization,
        processes=2,
        start_method="fork",
        faults=faults,
    ).build(num_envs=ROWS)


def lived(environment, *, trouble_at=2, steps=STEPS, seed=5):
    """The responses of some steps; ROW is in trouble in one of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoachWarning)
        responses = [environment.reset(seed=seed)]
        for step in range(steps):
            action = np.zeros(ROWS, np.int64)
            action[ROW] = TROUBLE if step == trouble_at else 0
            responses.append(answer_to(environment, action))
    return responses


def assert_same_rows(left, right, rows):
    for ours, theirs in zip(left, right, strict=True):
        for key, values in ours.observation.items():
            np.testing.assert_array_equal(values[rows], theirs.observation[key][rows])
            np.testing.assert_array_equal(
                ours.first_observation[key][rows], theirs.first_observation[key][rows]
            )
        for name in ("reward", "terminated", "truncated", "end", "duration"):
            np.testing.assert_array_equal(getattr(ours, name)[rows], getattr(theirs, name)[rows])


@pytest.fixture(scope="module")
def undisturbed():
    environment = build("", "sync")
    yield lived(environment)
    environment.close()


KINDS = [
    (how, vectorization)
    for how in EVERY
    for vectorization in ("sync", "subprocess")
    if vectorization == "subprocess" or how not in LOSES_PROCESS
]


@pytest.mark.drawn(one_of=4, each="vectorization")
@pytest.mark.parametrize(("how", "vectorization"), KINDS)
def test_failed_row_is_restarted_others_unchanged(how, vectorization, undisturbed):
    environment = build(how, vectorization)
    responses = lived(environment)
    environment.close()
    others = [row for row in range(ROWS) if row != ROW]
    assert_same_rows(responses, undisturbed, others)
    before, failed, after = responses[2], responses[3], responses[4]
    (fault,) = failed.faults
    assert (fault.cause, fault.row) == (cause_of(how), ROW)
    assert not before.faults
    assert not after.faults
    in_reset = how in IN_RESET and how not in LOSES_PROCESS  # which take the step's answer along
    assert failed.lost.tolist() == [row == ROW and not in_reset for row in range(ROWS)]
    if not in_reset:  # the episode was cut off where it was before
        assert failed.truncated[ROW]
        assert not failed.terminated[ROW]
        assert failed.reward[ROW] == 0
        for key, values in failed.observation.items():
            np.testing.assert_array_equal(values[ROW], before.first_observation[key][ROW])
    first = failed.first_observation
    assert np.isfinite(first["place"]).all()
    assert first["count"][ROW] == 0
    assert after.observation["count"][ROW] == 1
    assert after.duration.tolist() == [1] * ROWS


@pytest.mark.drawn(one_of=4, each="vectorization")
@pytest.mark.parametrize(("how", "vectorization"), KINDS)
def test_failed_row_stop_error_has_diagnosis(how, vectorization):
    environment = build(how, vectorization, "stop")
    kind = NonFiniteError if how in NON_FINITE else EnvironmentFault
    with pytest.raises(kind) as stop:
        lived(environment)
    line = str(stop.value)
    assert "\n" not in line
    assert len(line) < 2_500
    assert len(str(stop.value.evidence.get("traceback", ""))) < 25_000
    done = 12 if how in IN_RESET and how not in LOSES_PROCESS else 11  # ROW's third step, or not
    assert f"environment step {done}" in line
    assert "failing_environments.py, line " in line or how in {"leaves", "killed", "left in reset"}
    assert {"acted_on/place", "action/0"} <= stop.value.evidence.keys()
    with pytest.raises(ActionError):
        environment.send(np.zeros(ROWS, np.int64))
    if done == 11:  # it fails no more: it works again
        assert len(environment.reset(seed=1)) == ROWS
    environment.close()


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("how", ["raised", "nan observed", "killed", "hung in reset"])
def test_restart_is_reproducible_and_saved(how):
    first, again, loaded = (build(how, "subprocess") for _ in range(3))
    expected = lived(first)
    assert_same_rows(lived(again), expected, slice(None))
    lived(again, steps=4)
    state = again.state_dict()
    loaded.load_state_dict(state)
    first.close()
    ahead = []
    for environment in (again, loaded):
        responses = []
        for step in range(6):
            action = np.zeros(ROWS, np.int64)
            action[ROW] = TROUBLE if step == 3 else 0
            responses.append(answer_to(environment, action))
        ahead.append(responses)
        environment.close()
    assert [len(response.faults) for response in ahead[0]] == [0, 0, 0, 1, 0, 0]
    assert_same_rows(*ahead, slice(None))


def test_default_reactions_by_cause():
    faults = FaultParameters()
    reactions = {
        cause: faults.reaction(cause)
        for cause in ("raised", "died", "hung", "malformed", "non_finite", "unstable")
    }
    assert reactions == dict.fromkeys(("raised", "died", "hung"), "restart") | dict.fromkeys(
        ("malformed", "non_finite", "unstable"), "stop"
    )


def test_fault_limit_error_names_first_cause():
    environment = build("raised", "sync", limit=2, window=1000)
    lived(environment)
    lived(environment)
    with pytest.raises(
        EnvironmentFault,
        match=r"failed 3 times within 1,000 steps, faults.limit allows 2; the first time: row 2 .*"
        r"the wheels came off \(failing_environments.py, line \d+\); environment step 11",
    ):
        lived(environment)


def test_fault_limit_ignores_faults_before_window():
    environment = build("raised", "sync", limit=1, window=20)
    for _ in range(4):  # one each 31 steps
        lived(environment)


def test_failure_before_first_step_is_not_restarted():
    with pytest.raises(EnvironmentFault):
        build("", "sync", level="Touchy").reset(seed=2000)


def test_failing_restart_repeats_until_limit():
    environment = build("raised", "sync", level="Touchy", limit=3)
    with pytest.raises(EnvironmentFault):
        lived(environment)


def test_failing_construction_counts_as_fault():
    environment = build("raised", "sync", level="FailsOnce", limit=2)
    with pytest.raises(EnvironmentFault):
        lived(environment)


def test_each_cause_warns_once():
    environment = build("raised", "sync")
    actions = np.zeros((5, ROWS), np.int64)
    actions[4, ROW] = TROUBLE

    def live():
        environment.reset(seed=0)
        for action in actions:
            answer_to(environment, action)

    with pytest.warns(CoachWarning) as told:
        live()
    assert len(told) == 1
    live()  # warnings are errors


@pytest.mark.parametrize("vectorization", ["sync", "subprocess"])
@pytest.mark.parametrize("key", ["box", "mode"])
def test_rare_observation_outside_space_warns_once(key, vectorization):
    environment = GymnasiumParameters(
        level="little_environments:Far",
        kwargs={"key": key},
        vectorization=vectorization,
        start_method="fork",
    ).build(num_envs=3)
    environment.reset(seed=0)

    def step(rows):
        answer_to(environment, np.zeros((len(rows), 2), np.float32), np.array(rows))

    for _ in range(35):
        step([1, 2])
    with pytest.warns(CoachWarning):
        step([2])
    for _ in range(60):  # once: warnings are errors
        step([0, 1, 2])
    environment.close()


@pytest.mark.parametrize("how", ["error", "exit", "interrupt"])
@pytest.mark.parametrize("vectorization", ["sync", "subprocess", "vector"])
def test_close_error_warns_per_row(how, vectorization):
    level = "fail_to_close" if vectorization == "vector" else "FailsToClose"
    environment = GymnasiumParameters(
        level=f"little_environments:{level}",
        kwargs={"how": how},
        vectorization=vectorization,
        start_method="fork",
    ).build(num_envs=2)
    environment.reset(seed=0)
    with pytest.warns(CoachWarning) as warned:
        environment.close()
    environment.close()  # once: warnings are errors
    error = {
        "error": "RuntimeError: stuck",
        "exit": "SystemExit: 0",
        "interrupt": "KeyboardInterrupt: mine",
    }[how]
    names = ["vector environment"] if vectorization == "vector" else ["row 0 of", "row 1 of"]
    assert [str(each.message) for each in warned] == [
        f"{name} 'little_environments:{level}' failed in close: {error} "
        f"(little_environments.py, line {CLOSE_LINE}); the run is not affected"
        for name in names
    ]


@pytest.mark.parametrize(
    ("level", "vectorization"), [("FailsToClose", "sync"), ("fail_to_close", "vector")]
)
def test_signal_while_closing_is_raised(level, vectorization):
    environment = GymnasiumParameters(
        level=f"little_environments:{level}", kwargs={"how": "signal"}, vectorization=vectorization
    ).build(num_envs=1)
    with pytest.raises(KeyboardInterrupt):
        environment.close()


@pytest.mark.parametrize("vectorization", ["sync", "subprocess", "vector"])
def test_forked_environment_continues_in_one_process(vectorization):
    level = "forks" if vectorization == "vector" else "Forks"
    environment = GymnasiumParameters(
        level=f"failing_environments:{level}",
        vectorization=vectorization,
        processes=2 if vectorization == "subprocess" else None,
        start_method="fork",
    ).build(num_envs=ROWS)
    responses = lived(environment)
    environment.close()
    assert not any(response.faults for response in responses)
    assert [int(response.observation["count"][ROW]) for response in responses[1:7]] == [
        *range(1, 7)
    ]
    for child in Forks.children:  # those of workers are not known here
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    Forks.children.clear()


@pytest.mark.parametrize(
    ("vectorization", "where"),
    [
        *(("sync", where) for where in ("construction", "reset", "step", "render", "close")),
        *(("vector", where) for where in ("construction", "reset", "step", "close")),
    ],
)
def test_standard_streams_are_put_back(vectorization, where):
    before = sys.stdout, sys.stderr
    parameters = GymnasiumParameters(
        level=f"little_environments:{'mute' if vectorization == 'vector' else 'Mutes'}",
        kwargs={"where": where},
        vectorization=vectorization,
    )
    if vectorization == "sync":
        parameters = parameters.drawable()
    environment = one_step(parameters)
    if where == "render":
        environment.render()
    environment.close()
    assert (sys.stdout, sys.stderr) == before


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            "hung",
            "took more than 0.3 s (failing_environments.py, line {}); that is faults.reset_se",
        ),
        ("leaves", "died (exit code 3)"),
    ],
)
def test_worker_lost_before_it_begins_error_names_rows_and_limit(how, message):
    with pytest.raises(EnvironmentFault) as caught:
        build(how, "subprocess", level="NeverMade")
    line = sleeps.__code__.co_firstlineno + 1
    begin = "rows 0 to 1 of 'failing_environments:NeverMade' failed in construction: "
    assert f"{begin}its worker process {message.format(line)}" in str(caught.value)


def test_probe_close_error_does_not_stop():
    for how in ("error", "exit"):
        parameters = GymnasiumParameters(
            level="little_environments:FailsToClose", kwargs={"how": how}
        )
        assert parameters.obstacle_to_restoring() is None  # the run's own rows give the warning


SETTINGS = {
    "dtype": "the default dtype from torch.float32 to torch.float64",
    "gradients": "whether gradients are computed from True to False",
    "device": "the default device from cpu to meta",
}


def one_step(parameters):
    environment = parameters.build(num_envs=2)
    environment.reset(seed=0)
    answer_to(environment, np.zeros(2, np.int64))
    return environment


@pytest.mark.parametrize(
    ("setting", "where"),
    [
        (setting, where)
        for setting in SETTINGS
        for where in ("construction", "reset", "step")
        if (setting, where) != ("device", "step")  # watched where environments are made and reset
    ],
)
def test_changed_torch_setting_error_names_it(setting, where):
    parameters = GymnasiumParameters(
        level="little_environments:Meddles", kwargs={"setting": setting, "where": where}
    )
    with pytest.raises(EnvironmentFault, match=rf"Meddles' changed .*{SETTINGS[setting]};"):
        one_step(parameters)
    assert torch.get_default_dtype() is torch.float32
    assert torch.is_grad_enabled()
    assert torch.zeros(1).device.type == "cpu"


def test_changed_torch_threads_restored_with_warning():
    before = torch.get_num_threads()
    environment = GymnasiumParameters(
        level="little_environments:Meddles", kwargs={"setting": "threads", "where": "step"}
    ).build(num_envs=2)
    environment.reset(seed=0)

    def step():
        answer_to(environment, np.zeros(2, np.int64))
        assert torch.get_num_threads() == before

    with pytest.warns(CoachWarning):
        step()
    step()  # warnings are errors


def test_long_replay_is_not_a_hang():
    environment = build("slow", "subprocess", level="Slow", step_seconds=0.3, reset_seconds=0.3)
    environment.reset(seed=0)
    for _ in range(6):
        answer_to(environment, np.zeros(ROWS, np.int64))
    state = environment.state_dict()
    begun = time.monotonic()
    environment.load_state_dict(state)
    assert time.monotonic() - begun > 0.5
    environment.close()


@pytest.mark.parametrize("reaction", ["restart", "stop"])
@pytest.mark.parametrize("spoilt", [np.nan, 1e12])
@pytest.mark.parametrize("at", ["simulator", "gymnasium"])
def test_unstable_simulation_is_a_fault(at, spoilt, reaction):
    faults = FaultParameters(on_non_finite=reaction)
    if at == "simulator":
        kind, level = MujocoParameters, "hopper"
    else:
        kind, level = GymnasiumParameters, "Hopper-v5"
    runs = []
    for spoils in (False, True):
        environment = kind(level=level, faults=faults).build(num_envs=ROWS)
        environment.reset(seed=3)
        responses = []
        for step in range(6):
            if spoils and step == 2:
                data = (
                    environment.simulators.data[ROW]
                    if at == "simulator"
                    else environment._rows._rows[ROW].env.unwrapped.data
                )
                data.qvel[0] = spoilt
            environment.send(np.zeros((ROWS, 3), np.float32))
            if spoils and step == 2 and reaction == "stop":
                with pytest.raises(NonFiniteError):
                    environment.recv()
                return
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CoachWarning)
                responses.append(environment.recv())
        runs.append(responses)
    others = [row for row in range(ROWS) if row != ROW]
    assert_same_rows(*runs, others)
    failed = runs[1][2]
    assert [fault.cause for fault in failed.faults] == ["unstable"]
    assert failed.truncated[ROW]
    assert failed.duration.tolist() == [1, 1, 0, 1]
    before = runs[1][1].first_observation["observation"][ROW]
    np.testing.assert_array_equal(failed.observation["observation"][ROW], before)
    assert np.isfinite(runs[1][-1].observation["observation"]).all()
