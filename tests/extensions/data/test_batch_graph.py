"""Runs that learn from a data set: how it is read, what is counted, resuming, and the world."""

import hashlib
import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError, ParameterError
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.data.block_filling import (
    fill_in_blocks,
    fills_in_blocks,
    learns_in_blocks,
)
from coach_rl.extensions.data.files import write_file
from coach_rl.extensions.data.held_out import split_episodes
from coach_rl.extensions.data.recorded import Recorded, read_into
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.memories.batches import NEXT_OBSERVATIONS, OBSERVATIONS
from tests.refusals import check_refused

SEEN = rl.PointMassParameters().build(num_envs=1).spaces
NORMALISED = rl.InputFilter(observation={"observation": (rl.ObservationNormalizationFilter(),)})
HALVED = rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-0.5, high=0.5),))
SMALL = rl.TorsoParameters(middleware=(8,), activation="relu", orthogonal=False)


def recorded(lengths=(7, 3, 12, 5, 1), seed=0):
    """Episodes in the world of the point mass, of these lengths; every second one is truncated."""
    rng = np.random.default_rng(seed)
    episodes = []
    for number, length in enumerate(lengths):
        seen = rng.uniform(-1, 1, (length + 1, 4)).astype(np.float32)
        terminated = np.zeros(length, np.bool_)
        truncated = np.zeros(length, np.bool_)
        (truncated if number % 2 else terminated)[-1] = True
        episodes.append(
            {
                f"{OBSERVATIONS}observation": seen[:-1],
                f"{NEXT_OBSERVATIONS}observation": seen[1:],
                "/actions": rng.uniform(-1, 1, (length, 2)).astype(np.float32),
                "/rewards": rng.normal(size=length),
                "/terminated": terminated,
                "/truncated": truncated,
                "/durations": np.ones(length, np.int64),
            }
        )
    return Recorded.of(episodes)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return str(write_file(recorded(), tmp_path_factory.mktemp("data") / "mass.npz", SEEN))


def agent(**changes):
    torsos = {"actor": rl.ActorParameters(torso=SMALL), "critic": rl.CriticParameters(torso=SMALL)}
    given = {"memory": rl.ReplayMemoryParameters(capacity=200), "update_mode": "eager"}
    learning = rl.LearningParameters(batch=8, learning_starts=1, report_every=10)
    return rl.TD3BCAgentParameters(**{**torsos, **given, "learning": learning, **changes})


def batch_graph(
    data, updates=20, *, every=None, turn=None, num_envs=2, data_share=None, held_out=0.0, **changes
):
    schedule = rl.batch_schedule(updates, every=every, episodes=1)
    if turn is not None:
        schedule = rl.ScheduleParameters(
            training=rl.EnvironmentSteps(updates),
            evaluation_interval=None,
            progress_interval=rl.TrainingSteps(5),
        )
    return rl.BatchGraphManager(
        rl.BatchGraphParameters(
            data=data,
            updates=turn,
            data_share=data_share,
            held_out=held_out,
            agent=agent(**changes),
            environment=rl.PointMassParameters(max_episode_steps=9),
            num_envs=num_envs,
            schedule=schedule,
            checkpoints=rl.CheckpointParameters(every_steps=rl.TrainingSteps(100)),
        )
    )


def memory_of(manager):
    return manager.graph.agents["main"].memory.trajectories()


def test_data_pass_the_filters_of_the_agent(data):
    filters = replace(NORMALISED, reward=(rl.RewardRescaleFilter(factor=10.0),))
    with batch_graph(data, 1, input_filter=filters, output_filter=HALVED, num_envs=1) as manager:
        manager.run()
        shown = memory_of(manager)
        statistics = manager.graph.agents["main"].input_filter.state_dict()
    known = recorded().columns
    np.testing.assert_allclose(shown["/rewards"][0], 10 * known["/rewards"], rtol=1e-5)
    np.testing.assert_allclose(shown["/agents/agent/actions"][0], known["/actions"] / 2, rtol=1e-5)
    counts = [value for name, value in flat(statistics) if name.endswith("count")]
    # Each observation once: the first of each episode, and what each decision led to.
    assert counts == [len(known["/rewards"]) + 5]


def flat(state, name=""):
    for key, value in state.items():
        if isinstance(value, dict):
            yield from flat(value, f"{name}/{key}")
        else:
            yield f"{name}/{key}", value


def networks(manager):
    learner = manager.graph.agents["main"].learner
    return {name: each.online.clone().numpy() for name, each in learner.networks.items()}


def test_lengths_and_evaluations_count_updates(data):
    with batch_graph(data, 20, every=10) as manager:
        records = list(manager.improve())
    evaluated = [each.training_steps for each in records if each.kind == "evaluation"]
    assert evaluated == [10, 20]
    assert {each.environment_steps for each in records} == {0}


def test_agent_acts_in_the_world_after_its_updates(data):
    with batch_graph(data, 30, turn=12, num_envs=1) as manager:
        manager.create_graph()
        for _ in range(12):
            manager.graph.tick()
        assert manager.graph.clock.environment_steps == 0
        held = len(manager.graph.agents["main"].memory)
        manager.run()
        assert manager.graph.clock.environment_steps == 30
        assert manager.graph.clock.training_steps == 12 + 30
        memory = manager.graph.agents["main"].memory
        assert len(memory) == held + 30
        assert manager.graph.clock.episodes == 30 // 9


def stopped(data, ticks, **settings):
    """The state of a run after so many ticks."""
    with batch_graph(data, **settings) as manager:
        manager.create_graph()
        for _ in range(ticks):
            manager.graph.tick()
        return manager.state_dict()


def test_state_names_the_data_and_leaves_them_out(data):
    state = stopped(data, 5)
    entries = state["agents"]["main"]["memory"]["store"]["transitions"]
    assert entries.first.tolist() == entries.ends.tolist()  # nothing of the data is written
    assert sum(entries.ends) == len(recorded())
    assert state["training"]["data"]["identity"] == {
        "path": data,
        "sha256": hashlib.sha256(Path(data).read_bytes()).hexdigest(),
        "episodes": 5,
        "of_episodes": 5,
    }


def test_state_behind_the_turn_has_the_transitions_of_the_world_alone(data):
    entries = stopped(data, 18, updates=30, turn=12)["agents"]["main"]["memory"]["store"][
        "transitions"
    ]
    assert (entries.ends - entries.first).tolist() == [6, 6]  # 6 ticks of 2 environments


FULL = [rl.ReplayMemoryParameters(capacity=30 * rows) for rows in (1, 2)]
"""Memories of 1 and 2 rows, of 30 transitions at most, of which the data take 28 at first."""
PRIORITIES = rl.ReplayMemoryParameters(capacity=200, prioritised=rl.PrioritisedParameters())
CONTINUED = [
    *((ticks, {"updates": 15}) for ticks in (0, 1, 7)),
    (18, {"updates": 30, "turn": 12}),
    (20, {"updates": 40, "turn": 4, "num_envs": 1, "memory": FULL[0]}),
    (20, {"updates": 40, "turn": 4, "num_envs": 2, "memory": FULL[1]}),
    (9, {"updates": 24, "turn": 6, "input_filter": NORMALISED, "normalise_observations": 5.0}),
    *((ticks, {"updates": 20, "turn": 10, "memory": PRIORITIES}) for ticks in (3, 15)),
]
"""Ticks before a run is stopped, and its settings."""


@pytest.mark.parametrize(("ticks", "settings"), CONTINUED, ids=str)
def test_restored_run_continues_exactly(data, ticks, settings):
    """Its networks, memory, filters and normaliser end as those of a run that isn't stopped."""

    def ended(state=None):
        with batch_graph(data, **settings) as manager:
            manager.create_graph()
            if state is not None:
                manager.load_state_dict(state)
            manager.run()
            policy = manager.graph.agents["main"].policy_state_dict()
            return {"networks": networks(manager), "memory": memory_of(manager), "policy": policy}

    assert_same_state(ended(stopped(data, ticks, **settings)), ended())


def test_changed_data_are_refused_when_a_run_continues(data, tmp_path):
    path = tmp_path / "mine.npz"
    shutil.copy(data, path)
    state = stopped(str(path), 3)
    path.unlink()
    write_file(recorded(seed=1), path, SEEN)

    def continue_run():
        with batch_graph(str(path)) as manager:
            manager.create_graph()
            manager.load_state_dict(state)

    check_refused(continue_run, ConfigurationError, "has changed since this run has learned from")
    path.unlink()
    check_refused(continue_run, ConfigurationError, "is gone from")


def test_data_are_found_where_they_were(data, tmp_path, monkeypatch):
    shutil.copy(data, tmp_path / "mine.npz")
    monkeypatch.chdir(tmp_path)
    state = stopped("./mine.npz", 3)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    with batch_graph("./mine.npz") as manager:
        manager.create_graph()
        manager.load_state_dict(state)
        assert len(manager.graph.agents["main"].memory) == len(recorded())


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.25, 2), (0.5, 4), (1.0, 8)])
def test_share_of_the_data_in_a_batch_is_fixed(data, share, expected):
    with batch_graph(data, 30, turn=2, data_share=share) as manager:
        manager.run()
        memory = manager.graph.agents["main"].memory
        known = memory.known
        for _ in range(20):
            positions = memory.sample(8).position.numpy()
            steps = memory.store.steps_of(positions)
            rows = memory.store.rows_of(positions)
            assert (steps < known[rows]).sum() == expected


def test_share_draws_each_transition_equally_often(data):
    with batch_graph(data, 30, turn=2, data_share=0.5) as manager:
        manager.run()
        memory = manager.graph.agents["main"].memory
        drawn = np.concatenate([memory.sample(8).position.numpy() for _ in range(4_000)])
        found, counts = np.unique(drawn, return_counts=True)
        is_data = memory.store.steps_of(found) < memory.known[memory.store.rows_of(found)]
    assert len(found) == len(memory)
    for part, size in ((counts[is_data], 28), (counts[~is_data], 30)):
        expected = 16_000 / size
        assert abs(part - expected).max() < 5 * np.sqrt(expected)


def test_share_of_data_that_the_world_would_replace_is_refused(data):
    memory = rl.ReplayMemoryParameters(capacity=60)

    def run():
        with batch_graph(data, 40, turn=2, data_share=0.5, memory=memory) as manager:
            manager.run()

    check_refused(
        run,
        ConfigurationError,
        "data_share is 0.5, and the memory has room for 60 transitions ... need 70",
    )


def test_before_the_turn_a_share_changes_nothing(data):
    found = []
    for share in (None, 0.5):
        with batch_graph(data, 15, data_share=share) as manager:
            manager.run()
            found.append(networks(manager))
    for name, values in found[0].items():
        np.testing.assert_array_equal(values, found[1][name])


def test_run_goes_online_from_a_checkpoint_in_its_folder(data, tmp_path):
    result = rl.run_experiment(batch_graph(data, 12), name="mine", root=tmp_path)
    changes = {"online": True, "data_share": 0.5}
    more = rl.resume_experiment(result.folder.path, steps=rl.EnvironmentSteps(16), changes=changes)
    assert more.folder.path == result.folder.path
    assert more.environment_steps == 16
    lines = (more.folder.path / "log.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["training_steps"] == 12 + 16


def test_share_beside_priorities_is_refused(data):
    check_refused(
        lambda: batch_graph(data, data_share=0.5, memory=PRIORITIES),
        ParameterError,
        "data_share is 0.5, and a prioritised memory draws by errors alone",
    )


def test_held_out_episodes_are_not_in_the_memory(data):
    with batch_graph(data, 3, held_out=0.4) as manager:
        manager.run()
        state = manager.state_dict()["training"]["data"]["identity"]
        assert (state["episodes"], state["of_episodes"]) == (3, 5)
        held = len(manager.graph.agents["main"].memory)
    learned, out = split_episodes(5, 0.4, 0)
    assert sorted([*learned, *out]) == list(range(5))
    assert held == recorded().lengths[learned].sum()


def graph_of(**changes):
    """A call that describes such an experiment, with other settings."""
    given = {
        "data": "./mine.npz",
        "agent": agent(),
        "environment": rl.PointMassParameters(),
        "schedule": rl.batch_schedule(10),
    }
    return lambda _: rl.BatchGraphParameters(**{**given, **changes})


def run_of(name, columns=None, known=SEEN, **changes):
    """A call that runs an experiment on a file with these columns."""

    def call(folder):
        path = folder / "mine.npz"
        if columns is not None:
            write_file(Recorded(columns, np.zeros(1, np.int64)), path, known)
        with batch_graph(name.format(folder=folder), 1, **changes) as manager:
            manager.run()

    return call


def changed(**columns):
    return {**recorded().columns, **{f"/{name}": values for name, values in columns.items()}}


OTHER = EnvironmentSpaces(observation=SEEN.observation, action=spaces.Box(-2, 2, (2,)))
REFUSED = [
    (graph_of(agent=rl.PPOAgentParameters()), ParameterError, "PPOAgentParameters) has no replay"),
    (
        graph_of(schedule=rl.ScheduleParameters(progress_interval=rl.TrainingSteps(1))),
        ParameterError,
        "no step is counted while agents learn from data; give gradient updates",
    ),
    (
        graph_of(
            schedule=rl.ScheduleParameters(
                heatup=rl.EnvironmentSteps(5),
                training=rl.TrainingSteps(10),
                evaluation_interval=None,
                progress_interval=rl.TrainingSteps(1),
            )
        ),
        ParameterError,
        "schedule.heatup is 5 environment steps, and nothing is acted",
    ),
    (run_of("{folder}/none.npz"), ConfigurationError, "there is no data set"),
    (run_of("data:none"), ConfigurationError, "there is no sample 'data:none'"),
    (run_of("data:../prefill"), ConfigurationError, "there is no sample"),
    (
        run_of("{folder}/mine.npz", recorded().columns, OTHER),
        rl.CoachError,
        "has actions Box(2,) from -2 to 2, the memory keeps Box(2,) from -1 to 1",
    ),
    (
        run_of("{folder}/mine.npz", changed(rewards=np.full(28, np.nan))),
        ConfigurationError,
        "'/rewards' holds a number that is not finite in transition 0",
    ),
    (
        run_of("{folder}/mine.npz", changed(rewards=np.zeros(27))),
        ConfigurationError,
        "its columns have different lengths",
    ),
    (
        run_of(
            "{folder}/mine.npz",
            recorded().columns,
            memory=rl.ReplayMemoryParameters(capacity=20),
        ),
        ConfigurationError,
        "does not fit into the memory of agent 'agent' ... raise memory.capacity (20)",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_unfit_data_are_refused(call, kind, message, tmp_path):
    check_refused(lambda: call(tmp_path), kind, message)


CHANGED = rl.InputFilter(
    observation={"observation": (rl.ObservationClippingFilter(low=-0.5, high=0.5),)},
    reward=(rl.RewardRescaleFilter(factor=2.0),),
)


@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize(
    "changes",
    [
        {"output_filter": HALVED},
        {"input_filter": CHANGED},
        {"memory": rl.ReplayMemoryParameters(capacity=200, n_step=3)},
        {"normalise_observations": 10.0},
    ],
)
def test_memory_filled_in_blocks_equals_one_filled_decision_by_decision(data, changes, num_envs):
    found = []
    for fill in (partial(read_into, seed=1), fill_in_blocks):
        with batch_graph(data, 1, num_envs=num_envs, **changes) as manager:
            manager.create_graph()
            mine = manager.graph.agents["main"]
            assert fills_in_blocks(mine)
            fill(mine, recorded(), num_rows=num_envs, episodes=np.array([4, 0, 2]))
            columns = mine.memory.trajectories()
            ledger = mine.memory.store.ledger
            found.append({**columns, **{f"ledger{path}": each for path, each in ledger.items()}})
    assert found[0].keys() == found[1].keys()
    for path, values in found[0].items():
        np.testing.assert_array_equal(values, found[1][path])
        assert values.dtype == found[1][path].dtype


def test_decisions_filled_in_blocks_are_made_on_what_those_before_led_to(data):
    changed_data = recorded()
    changed_data.columns[f"{OBSERVATIONS}observation"][2] = 9  # in the middle of an episode
    found = []
    for fill in (partial(read_into, seed=1), fill_in_blocks):
        with batch_graph(data, 1) as manager:
            manager.create_graph()
            fill(manager.graph.agents["main"], changed_data, num_rows=2)
            found.append(memory_of(manager)[f"{OBSERVATIONS}observation"])
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0].max() <= 1


def test_filling_in_blocks_refuses_what_the_level_cannot_show(data):
    endless = recorded()
    endless.columns[f"{NEXT_OBSERVATIONS}observation"][3, 0] = np.inf
    with batch_graph(data, 1) as manager:
        manager.create_graph()
        with pytest.raises(rl.CoachError, match="that is not finite"):
            fill_in_blocks(manager.graph.agents["main"], endless, num_rows=2)


def bonus(observation, action, outcome):
    return np.ones(len(outcome.rows))


def action_bonus(observation, action, outcome):
    return 10 * action[:, 0]


def test_recurrent_agent_has_the_bonus_of_the_action_of_the_data(data):
    torso = rl.TorsoParameters(embedder=(4,), recurrence=rl.GRU(size=4), middleware=())
    recurrent = {
        "actor": rl.ActorParameters(torso=torso),
        "critic": rl.CriticParameters(torso=torso),
        "memory": rl.ReplayMemoryParameters(capacity=200, draws=rl.SequenceParameters(length=4)),
    }
    with batch_graph(data, 1, num_envs=1, bonus=action_bonus, **recurrent) as manager:
        manager.create_graph()
        mine = manager.graph.agents["main"]
        read_into(mine, recorded(), num_rows=1, seed=1)
        stored = mine.memory.trajectories()
    known = recorded().columns
    expected = known["/rewards"] + 10 * known["/actions"][:, 0]
    np.testing.assert_allclose(stored["/rewards"][0], expected, rtol=1e-6)


@pytest.mark.parametrize("changes", [{"bonus": bonus}, {"input_filter": NORMALISED}])
def test_agent_whose_decisions_depend_on_more_is_not_filled_in_blocks(data, changes):
    with batch_graph(data, 1, **changes) as manager:
        manager.create_graph()
        assert not fills_in_blocks(manager.graph.agents["main"])


@pytest.mark.parametrize(
    ("changes", "num_envs", "is_same"),
    [
        ({}, 3, True),
        ({"normalise_observations": 10.0}, 1, True),
        ({"normalise_observations": 10.0}, 2, False),
        ({"memory": PRIORITIES}, 1, False),
    ],
)
def test_statistics_of_one_row_and_no_priorities_follow_blocks(data, changes, num_envs, is_same):
    with batch_graph(data, 1, num_envs=num_envs, **changes) as manager:
        manager.create_graph()
        assert learns_in_blocks(manager.graph.agents["main"], num_envs) == is_same


def test_statistics_of_networks_are_to_the_last_bit_those_of_single_decisions(data):
    found = []
    for fill in (partial(read_into, seed=1), partial(fill_in_blocks, learn=True)):
        with batch_graph(data, 1, num_envs=1, normalise_observations=10.0) as manager:
            manager.create_graph()
            mine = manager.graph.agents["main"]
            fill(mine, recorded(), num_rows=1, episodes=np.array([4, 0, 2]))
            found.append(mine.normaliser.state_dict())
    assert_same_state(*found)
    assert found[0]["observation"]["count"] == 20
