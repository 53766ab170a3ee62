"""Rewards, lengths and success of episodes, and the rates that evaluations make of them."""

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.records import EnvResponse
from coach_rl.graph_managers.episode_tracker import EpisodeTracker
from tests.builders import created, flat, ppo


def graph(num_envs, *, testing_envs=None, evaluated_elsewhere=False, **kwargs):
    environment = rl.GymnasiumParameters(level="success_reporters:EveryOther", kwargs=kwargs)
    params = flat(
        ppo(100),
        environment,
        evaluation_environment=environment if evaluated_elsewhere else None,
        num_envs=num_envs,
        training=200,
        evaluation_episodes=testing_envs or num_envs,
    )
    return created(params)


def evaluated(manager, episodes, seed):
    return manager.evaluate(rl.EnvironmentEpisodes(episodes), seed=seed)


def answer(success=None, mask=None, *, over, key="is_success"):
    """An answer of all rows; `mask` says which of them were told about success."""
    count = len(over)
    info = {} if success is None else {key: np.array(success)}
    if mask is not None:
        info[f"_{key}"] = np.array(mask)
    return EnvResponse(
        rows=np.arange(count),
        observation={},
        first_observation={},
        reward=np.ones(count),
        terminated=np.array(over),
        truncated=np.zeros(count, np.bool_),
        end=np.zeros(count, np.uint8),
        duration=np.ones(count, np.int64),
        info=info,
    )


@pytest.mark.parametrize("tells", ["at_success", "always"])
@pytest.mark.parametrize("key", ["is_success", "success"])
@pytest.mark.parametrize("num_envs", [1, 2, 8])
@pytest.mark.parametrize("seed", [4, 5])
def test_success_rate_is_half_when_4_of_8_episodes_succeed(tells, key, num_envs, seed):
    with graph(num_envs, tells=tells, key=key) as manager:
        record = evaluated(manager, 8, seed)
    assert record.scalars["evaluation/success_rate"] == 0.5
    assert record.scalars["evaluation/success_any_rate"] == 0.5
    for name in ("episode/success", "episode/success_any"):
        assert sorted(record.arrays[name].tolist()) == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("num_envs", [1, 2, 8])
def test_success_any_rate_early_success_counts(num_envs):
    with graph(num_envs, tells="early") as manager:
        record = evaluated(manager, 8, 4)
    assert record.scalars["evaluation/success_rate"] == 0.0
    assert record.scalars["evaluation/success_any_rate"] == 0.5


@pytest.mark.parametrize("num_envs", [1, 2, 8])
def test_success_rate_unreported_training_episodes_count(num_envs):
    with graph(num_envs) as manager:
        episodes = [record for record in manager.improve() if record.kind == "episode"]
    told = ["episode/success" in episode.scalars for episode in episodes]
    first = told.index(True)
    assert first <= 2 * num_envs
    assert all(told[first:])
    for episode in episodes[first:]:
        succeeded = float(episode.scalars["episode/length"] == 2)
        assert episode.scalars["episode/success"] == succeeded
        assert episode.scalars["episode/success_any"] == succeeded


def test_success_rate_never_reported_is_missing():
    with graph(2, tells="never") as manager:
        records = [*manager.improve(), evaluated(manager, 8, 4)]
    names = {name for record in records for name in (*record.scalars, *record.arrays)}
    assert "episode/reward" in names
    assert not [name for name in names if "success" in name]


@pytest.mark.parametrize("trains_first", [False, True])
def test_success_rate_unreported_evaluation_is_zero(trains_first):
    """Seed 5 begins with an episode that fails; alone it cannot show that success is ever told."""
    with graph(1, evaluated_elsewhere=not trains_first) as manager:
        assert "evaluation/success_rate" not in evaluated(manager, 1, 5).scalars
        if trains_first:
            list(manager.improve())
        else:
            assert evaluated(manager, 1, 4).scalars["evaluation/success_rate"] == 1.0
        known = evaluated(manager, 1, 5)
        state = manager.state_dict()
    assert known.scalars["evaluation/success_rate"] == 0.0
    assert known.arrays["episode/success"].tolist() == [0.0]
    with graph(1, evaluated_elsewhere=not trains_first) as other:
        other.load_state_dict(state)
        assert evaluated(other, 1, 5).scalars["evaluation/success_rate"] == 0.0


def test_success_rate_other_evaluation_environment_is_missing():
    with graph(1, evaluated_elsewhere=True) as manager:
        list(manager.improve())
        assert "evaluation/success_rate" not in evaluated(manager, 1, 5).scalars


def test_episode_tracker_unreported_rows_have_no_success():
    tracker = EpisodeTracker(3)
    finished = tracker.note(answer([1.0, 1.0, 0.0], [True, False, True], over=[True] * 3))
    assert tracker.reports_success
    assert finished.success.tolist() == [1.0, 0.0, 0.0]
    assert finished.success_any.tolist() == [1.0, 0.0, 0.0]


def test_episode_tracker_restored_reports_success():
    tracker, other = EpisodeTracker(2), EpisodeTracker(2)
    assert not tracker.reports_success
    tracker.note(answer([True, False], over=[False, False]))
    other.load_state_dict(tracker.state_dict())
    assert other.reports_success
    finished = other.note(answer([False, False], over=[True, True]))
    assert finished.success.tolist() == [0.0, 0.0]
    assert finished.success_any.tolist() == [1.0, 0.0]
