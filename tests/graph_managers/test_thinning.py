import time
from dataclasses import replace
from itertools import pairwise

import psutil
import pytest

from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.toy import PointMassParameters
from coach_rl.graph_managers import BasicRLGraphManager
from coach_rl.graph_managers import progress as thinning
from coach_rl.graph_managers.progress import Thinning
from tests.graph_managers.small_runs import parameters, ppo


@pytest.fixture
def few(monkeypatch):
    """Files leave out records after a few."""
    monkeypatch.setattr(thinning, "WHOLE", 4)


def kept(counter, series, records):
    return [n for n in range(records) if counter.stride(series)[1]]


@pytest.mark.usefixtures("few")
def test_files_take_ever_fewer_records_of_a_series():
    counter = Thinning()
    assert kept(counter, "episode", 31) == [0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24]
    assert counter.stride("episode") == (8, False)
    assert counter.stride("train") == (1, True)


def test_short_runs_are_written_whole():
    counter = Thinning()
    assert all(counter.stride("episode") == (1, True) for _ in range(thinning.WHOLE))
    assert counter.stride("episode")[0] == 2


def said(records):
    return [
        (r.kind, r.environment_steps, r.is_in_files, r.scalars.get("log/thinned"))
        for r in records
        if r.kind in ("episode", "progress", "train", "evaluation")
    ]


@pytest.mark.usefixtures("few")
def test_a_resumed_run_leaves_out_the_same_records():
    params = parameters(training=EnvironmentSteps(1200), evaluation_interval=EnvironmentSteps(300))
    with BasicRLGraphManager(params) as graph_manager:
        whole = list(graph_manager.improve())
    with BasicRLGraphManager(params) as graph_manager:
        begun = []
        for record in graph_manager.improve():
            begun.append(record)
            if len(begun) >= 40 and graph_manager.progress.is_settled:
                break
        state = graph_manager.state_dict()
    with BasicRLGraphManager(params) as graph_manager:
        graph_manager.create_graph()
        graph_manager.load_state_dict(state)
        rest = list(graph_manager.improve())
    assert said([*begun, *rest]) == said(whole)
    assert {2.0, 4.0, None} <= {thinned for *_, thinned in said(whole)}
    assert all(r.is_in_files for r in whole if r.kind == "evaluation")


def test_memory_and_the_time_of_a_step_do_not_grow():
    params = parameters(
        training=EnvironmentSteps(60_000),
        evaluation_interval=EnvironmentSteps(15_000),
        evaluation_episodes=EnvironmentEpisodes(1),
    )
    agent = ppo(rollout=EnvironmentSteps(512), minibatch=256)
    environment = PointMassParameters(max_episode_steps=5)
    params = replace(params, agent=agent, environment=environment, num_envs=16)
    process, resident, seconds = psutil.Process(), [], []
    with BasicRLGraphManager(params) as graph_manager:
        for record in graph_manager.improve():
            if record.kind == "evaluation":
                resident.append(process.memory_info().rss)
                seconds.append(time.process_time())
    assert len(resident) == 4
    first, *_, last = (after - before for before, after in pairwise(seconds))
    assert last < 3 * first  # with a log that was read again, it would be 7 times as much
    assert resident[-1] - resident[0] < 4 * 2**20
