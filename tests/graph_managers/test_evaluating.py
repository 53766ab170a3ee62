"""Evaluations are values: their episodes, their metrics, and an end when somebody asks for one."""

from dataclasses import replace

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.clock import Phase
from coach_rl.core.seeding import integer_seed
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.graph_managers.evaluations import EvaluationStopped, play
from coach_rl.graph_managers.graph import Graph
from tests.builders import created
from tests.graph_managers.small_runs import parameters

TASK = rl.Runtime(seed=1, device="cpu")


def test_evaluations_may_have_an_environment_of_their_own():
    shorter = rl.PointMassParameters(max_episode_steps=7)
    with created(replace(parameters(), evaluation_environment=shorter)) as manager:
        records = list(manager.improve())
    tested = [r.arrays["episode/length"].tolist() for r in records if r.kind == "evaluation"]
    assert tested == [[7] * 3] * 4
    trained = [r.scalars["episode/length"] for r in records if r.kind == "episode"]
    assert set(trained) == {50}


def test_evaluation_plays_every_row_its_share():
    with created(parameters(evaluation_episodes=rl.EnvironmentEpisodes(16))) as manager:
        record = manager.evaluate(rl.EnvironmentEpisodes(21))
        assert len(record.arrays["episode/reward"]) == 21
        assert record.scalars["evaluation/episodes"] == 21
        again = manager.evaluate(rl.EnvironmentEpisodes(21))
        np.testing.assert_array_equal(
            record.arrays["episode/reward"], again.arrays["episode/reward"]
        )
        fresh = manager.evaluate(rl.EnvironmentEpisodes(21), seed=99)
        assert not np.array_equal(record.arrays["episode/reward"], fresh.arrays["episode/reward"])


def test_evaluations_of_other_seeds_share_no_episode():
    with created(parameters(evaluation_episodes=rl.EnvironmentEpisodes(8)), 1) as manager:
        episodes = rl.EnvironmentEpisodes(8)

        def rewards(seed):
            return manager.evaluate(episodes, seed=seed).arrays["episode/reward"].tolist()

        played = [rewards(seed) for seed in (0, 1, 2, 9, 2**40)]
        assert len({reward for run in played for reward in run}) == 5 * 8
        assert rewards(1) == played[1]
        # Those of the final evaluation of a run with that seed: row i starts from its seed + i.
        seed = integer_seed(1, "final evaluation")
        scores = play(manager.graph.evaluation, episodes, seed=seed)
        assert scores.episodes.reward.tolist() == played[1]


def test_an_agent_that_draws_its_actions_plays_alike_in_each_evaluation():
    with created(replace(parameters(), agent=rl.UniformAgentParameters())) as manager:
        rewards = [
            manager.evaluate(rl.EnvironmentEpisodes(n)).arrays["episode/reward"] for n in (6, 6)
        ]
    np.testing.assert_array_equal(*rewards)
    assert len(set(rewards[0])) == 6


def test_scores_hold_the_episodes_and_their_metrics():
    graph = Graph(parameters(), TASK, training=False)
    scores = play(graph.evaluation, rl.EnvironmentEpisodes(7), seed=3)
    graph.close()
    assert len(scores.episodes) == 7
    assert scores.metrics()["evaluation/reward_mean"] == scores.episodes.reward.mean()
    assert scores.arrays()["episode/length"].tolist() == [50] * 7
    assert scores.levels == {}, "a single level whose sub-episodes are the episodes"
    assert not scores.reports_success
    assert "evaluation/success_rate" not in scores.metrics()
    assert scores.metrics(with_success=True)["evaluation/success_rate"] == 0.0


def asked(times):
    """Asks for a stop the n-th time it is called."""
    calls = iter(range(1, times + 1))
    return lambda: next(calls) == times


def test_an_evaluation_ends_when_a_stop_is_asked_for():
    graph = Graph(parameters(), TASK, training=False)
    with pytest.raises(EvaluationStopped):
        play(graph.evaluation, rl.EnvironmentEpisodes(3), seed=1, is_stopped=asked(10))
    graph.close()


def test_an_evaluation_tells_how_many_episodes_are_over():
    told = []
    graph = Graph(parameters(), TASK, training=False)
    play(graph.evaluation, rl.EnvironmentEpisodes(5), seed=1, on_activity=told.append)
    graph.close()
    of = [f"evaluating, {over} of 5 episodes" for over in (0, 3, 5)]  # three at a time
    assert told == [*of, ""]


def test_a_run_tells_of_its_evaluations():
    told = []
    manager = rl.BasicRLGraphManager(parameters())
    manager.create_graph(replace(TASK, on_activity=told.append))
    for record in manager.improve():
        if record.kind == "evaluation":
            break
    manager.close()
    assert told[-3:] == ["evaluating, 0 of 3 episodes", "evaluating, 3 of 3 episodes", ""]


def test_a_run_stopped_amid_an_evaluation_makes_it_again_and_ends_as_if_never_stopped():
    stopped, straight = rl.BasicRLGraphManager(parameters()), rl.BasicRLGraphManager(parameters())
    for manager in (stopped, straight):
        manager.create_graph(TASK)
    expected = list(straight.improve())
    amid = asked(10)
    at_the_second = 240
    records = list(
        stopped.improve(
            is_stopped=lambda: stopped.graph.clock.environment_steps == at_the_second and amid()
        )
    )
    assert stopped.progress.is_settled
    last = records[-1]
    assert (last.kind, last.phase, last.environment_steps) == ("phase", Phase.TEST, 240)
    other = rl.BasicRLGraphManager(parameters())
    other.create_graph(TASK)
    other.load_state_dict(stopped.state_dict())
    rest = list(other.improve())
    assert [r.environment_steps for r in rest if r.kind == "evaluation"] == [240, 340, 400]
    assert rest[-1].scalars == expected[-1].scalars
    assert_same_state(other.state_dict(), straight.state_dict())
    for manager in (stopped, straight, other):
        manager.close()


@pytest.mark.parametrize("episodes", [3, 7])
def test_evaluation_step_limit_cuts_off_episodes(episodes):
    with created(parameters(evaluation_step_limit=20), 1) as manager:
        with pytest.warns(rl.CoachWarning):
            record = manager.evaluate(rl.EnvironmentEpisodes(episodes))
        assert record.arrays["episode/length"].tolist() == [20] * episodes
        assert record.scalars["evaluation/episodes_cut_off"] == episodes
        # Rows start new episodes after a cut: no episode is the rest of another.
        assert len(set(record.arrays["episode/reward"].tolist())) == episodes


def test_a_step_limit_that_no_episode_reaches_changes_nothing():
    limited, free = (
        rl.BasicRLGraphManager(parameters(evaluation_step_limit=limit)) for limit in (51, None)
    )
    for manager in (limited, free):
        manager.create_graph(TASK)
    one, other = (manager.evaluate(rl.EnvironmentEpisodes(7)) for manager in (limited, free))
    assert one.scalars == other.scalars
    assert "evaluation/episodes_cut_off" not in one.scalars
    for manager in (limited, free):
        manager.close()
