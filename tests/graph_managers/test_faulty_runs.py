"""Runs in environments that fail: nothing false is stored, everything is counted and saved."""

import json
import warnings

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.errors import NonFiniteError
from coach_rl.core.parts import trajectories_of
from coach_rl.sessions.session import run_experiment
from tests.agents.resuming import after, assert_resumes
from tests.builders import flat, graph
from tests.graph_managers.small_runs import ppo

LEARNING = rl.LearningParameters(batch=8, updates_per_step=0.1, learning_starts=16)
STEPS = 600


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rl.CoachWarning)
        yield


def walk(chance=0.04, *, limit=10_000, **kwargs):
    return rl.GymnasiumParameters(
        level="faulty_walks:FaultyWalk",
        kwargs={"chance": chance, **kwargs},
        faults=rl.FaultParameters(limit=limit),
    )


SCHEDULE = {"training": STEPS, "heatup": 60, "evaluation_episodes": 3, "progress_interval": 100}


def dqn():
    return rl.DQNAgentParameters(
        learning=LEARNING,
        memory=rl.ReplayMemoryParameters(capacity=4_000, n_step=3),
        update_mode="eager",
    )


def ddpg(**memory):
    return rl.DDPGAgentParameters(
        learning=LEARNING,
        memory=rl.ReplayMemoryParameters(capacity=4_000, **memory),
        update_mode="eager",
    )


def two_levels():
    goals = rl.GoalSpace(key="observation", low=(-9.0, -9.0), high=(9.0, 9.0), threshold=(0.3, 0.3))
    learner = ddpg(relabelling=rl.HindsightParameters())
    params = graph(
        rl.LevelParameters(name="top", agent=ddpg()),
        rl.LevelParameters(name="low", agent=learner, goal_space=goals, horizon=4),
        environment=walk(discrete=False),
        num_envs=4,
        **SCHEDULE,
    )
    return rl.GraphManager(params)


def one_level(agent, environment=None, **changes):
    given = {"num_envs": 4, **SCHEDULE, **changes}
    return rl.BasicRLGraphManager(flat(agent, environment or walk(), **given))


RUNS = {
    "ppo": lambda: one_level(ppo()),
    "dqn": lambda: one_level(dqn()),
    "two levels": two_levels,
}


def created(make):
    manager = make()
    manager.create_graph(rl.Runtime(seed=1, device="cpu"))
    return manager


def assert_a_chain(stored):
    """What a row has stored is its life: a transition begins where the one before it ended.

    Args:
        stored: The memory's content by flat path, [N, T, ...] each.
    """
    ends = stored["/terminated"] | stored["/truncated"]
    here = stored["/mask"][:, 1:] & ~ends[:, :-1]
    assert here.sum() > 100
    begins, led_to = stored["/observations/observation"], stored["/next_observations/observation"]
    np.testing.assert_array_equal(begins[:, 1:][here], led_to[:, :-1][here])
    assert np.isfinite(stored["/rewards"]).all()


@pytest.mark.parametrize("name", ["dqn", "two levels"])
def test_a_fault_leaves_no_transition_and_ends_the_episode_before_it(name):
    with created(RUNS[name]) as manager:
        records = list(manager.improve())
        faults = [record for record in records if record.kind == "fault"]
        assert len(faults) > 10
        level = list(manager.graph.agents)[-1]
        stored = manager.graph.agents[level].memory.trajectories()
        assert_a_chain(stored)
        assert stored["/mask"].sum() == manager.graph.clock.environment_steps  # each step once
        cut_short = len(faults)  # some in an episode's first step, which leaves none to truncate
        truncated = stored["/truncated"].sum() + stored["/terminated"].sum()
        if name == "dqn":
            episodes = manager.graph.clock.episodes
            assert episodes < truncated <= episodes + cut_short
        else:
            top = manager.graph.agents["top"].memory.trajectories()
            assert_a_chain(top)
            assert top["/durations"][top["/mask"]].sum() <= manager.graph.clock.environment_steps
            assert top["/durations"][top["/mask"]].min() == 1


def test_ppo_bootstraps_before_a_fault():
    with created(RUNS["ppo"]) as manager:
        agent, seen = manager.graph.agents["main"], []
        learn = agent.rollout_batch

        def spied(rollout, grid):
            seen.append(trajectories_of(agent))
            return learn(rollout, grid)

        agent.rollout_batch = spied
        records = list(manager.improve())
    assert sum(record.kind == "fault" for record in records) > 10
    assert len(seen) > 5
    for rollout in seen:
        ends = rollout["/terminated"] | rollout["/truncated"]
        here = rollout["/mask"][:, 1:] & ~ends[:, :-1]
        np.testing.assert_array_equal(
            rollout["/observations/observation"][:, 1:][here],
            rollout["/next_observations/observation"][:, :-1][here],
        )
    assert any(rollout["/truncated"].any() for rollout in seen)


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", RUNS)
def test_stopped_and_resumed_between_faults(name, tmp_path):
    def has_failed(manager):
        return manager.graph.tracker.faults.get("raised", 0) > 0

    def build(seed):
        return created(RUNS[name])

    kinds = ("fault", "episode", "train")
    assert_resumes(build, tmp_path, after(290, has_failed), kinds=kinds)


def test_fault_records_say_what_happened():
    with created(RUNS["dqn"]) as manager:
        faults = [record for record in manager.improve() if record.kind == "fault"]
        assert faults[4].scalars["faults/raised"] == 5
        assert 0 <= faults[4].scalars["faults/row"] < 4
        assert "failed in step: RuntimeError: slipped (faulty_walks.py, line" in faults[4].text
        episodes = [record for record in manager.improve() if record.kind == "episode"]
    assert all(record.scalars["episode/length"] == 15 for record in episodes)


def test_evaluations_count_whole_episodes_only():
    with created(lambda: one_level(ppo(), walk(0.03))) as manager:
        evaluation = manager.evaluate(rl.EnvironmentEpisodes(6), seed=5)
    assert evaluation.arrays["episode/length"].tolist() == [15] * 6
    assert evaluation.scalars["evaluation/faults"] > 0


def test_faulty_run_stopped_by_nan_writes_the_data(tmp_path):
    manager = one_level(ppo(), walk(0.0, nan_at=9), heatup=rl.EnvironmentSteps(0))
    with pytest.raises(
        NonFiniteError,
    ) as stop:
        run_experiment(manager, rl.Runtime(device="cpu"), name="walk", root=tmp_path)
    (data,) = tmp_path.glob("walk/*/faults/step_32.npz")
    assert str(data.with_suffix("")) in str(stop.value)
    with np.load(data) as arrays:
        assert np.isnan(arrays["reward"])
        assert arrays["acted_on/observation"].shape == (2,)
        assert "action/0" in arrays
    assert "the reward is nan" in data.with_suffix(".txt").read_text()


def test_a_finished_run_says_how_often_its_environment_failed(tmp_path):
    result = run_experiment(
        one_level(ppo(), walk(0.03), evaluation_environment=walk(0.0)),
        rl.Runtime(device="cpu"),
        name="walk",
        root=tmp_path,
        settings=rl.RunSettings(final_episodes=rl.EnvironmentEpisodes(2), tensorboard=False),
    )
    count = json.loads(result.folder.summary.read_text())["faults"]["raised"]
    log = (result.folder.path / "log.jsonl").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    texts = [line["text"] for line in lines if line["kind"] == "fault"]
    assert len(texts) == count > 0
    assert "slipped" in texts[0]
    assert (result.folder.path / "faults.csv").read_text().count("\n") == count + 1
