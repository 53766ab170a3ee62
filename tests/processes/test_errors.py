"""Errors of workers, and runs that several processes cannot share."""

from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest
from shared_runs import EXPERIMENTS, TASK
from test_data_parallel import Three
from test_worker_process import ENDS, Counter, Limit

import coach_rl as rl
from coach_rl.agents.scripted_agent import ScriptedAgentParameters
from coach_rl.core.errors import CoachWarning, ConfigurationError, RunError, SpaceError
from coach_rl.core.runtime import DivergenceParameters
from coach_rl.graph_managers import BasicRLGraphManager
from coach_rl.memories import PrioritisedParameters, ReplayMemoryParameters
from coach_rl.processes import WorkerLost, WorkerProcess
from coach_rl.sessions.data_parallel import check_group
from tests.refusals import check_refused

PPO, SAC = EXPERIMENTS["ppo"], EXPERIMENTS["sac"]
PRIORITISED = ReplayMemoryParameters(prioritised=PrioritisedParameters())
RECURRENT = rl.ActorCriticParameters(torso=rl.TorsoParameters(recurrence=rl.GRU(size=4)))
IN_TURN = rl.AgentGroupParameters(members=(rl.GroupMember(agent=PPO.agent),), arbiter=rl.Turns())


def call(method, *values, start=0, **settings):
    with closing(WorkerProcess(partial(Counter, start), start_method="fork", **settings)) as worker:
        worker.submit(method, *values).result()


def call_after(end):
    with closing(WorkerProcess(Counter, start_method="fork")) as worker:
        end(worker)
        worker.submit(Counter.add, 1).result()


def with_agent(experiment, **changes):
    return replace(experiment, num_envs=6, agent=replace(experiment.agent, **changes))


CASES = [
    (partial(call, Counter.fail, "SpaceError"), SpaceError, "the count is wrong"),
    (partial(call, Counter.fail, "ValueError"), RunError, "a worker failed: ValueError: the count"),
    (partial(call, Counter.leave), RunError, "SystemExit: 3"),
    (partial(call, Counter.add, 1, start=-1), SpaceError, "starts at 0"),
    (partial(call, Counter.warn, 1), CoachWarning, "count 0"),
    (partial(call, Counter.wait, time_limit=Limit()), WorkerLost, "took more than 0.5 s"),
    *((partial(call_after, end), WorkerLost, f"died ({message}") for message, end in ENDS.items()),
    (partial(call_after, WorkerProcess.close), WorkerLost, "exit code 0"),
    (
        lambda: WorkerProcess(lambda: Counter(), start_method="spawn"),
        ConfigurationError,
        "cannot be sent to a worker process ... top level",
    ),
    *(
        (
            partial(check_group, BasicRLGraphManager(parameters), replace(TASK, group=Three())),
            ConfigurationError,
            f"3 processes cannot share this run: ... {message}",
        )
        for parameters, message in [
            (PPO, "num_envs (64) is not a multiple of 3 ... -n"),
            (replace(PPO, num_envs=6), "agent.algorithm.minibatch (64) is not a multiple of 3"),
            (replace(SAC, num_envs=6), "agent.learning.batch (64) is not a multiple of 3"),
            (with_agent(PPO, network=RECURRENT), "minibatches of sequences are not divided"),
            (with_agent(PPO, update_mode="compiled"), "'compiled' runs a step as a whole"),
            (with_agent(SAC, memory=PRIORITISED), "prioritised by the errors of the whole batch"),
            (replace(PPO, num_envs=6, agent=IN_TURN), "AgentGroupParameters learns in one process"),
            (
                replace(PPO, num_envs=6, agent=ScriptedAgentParameters(policy="still")),
                "ScriptedAgentParameters learns in one process only",
            ),
            (
                replace(PPO, num_envs=6, divergence=DivergenceParameters(response="roll_back")),
                "'roll_back' goes back in one process",
            ),
        ]
    ),
]


@pytest.mark.parametrize(("failing", "kind", "message"), CASES)
def test_processes_error_names_value_and_rule(failing, kind, message):
    check_refused(failing, kind, message)
