"""Certified plans in whole experiments: forks come true, are counted apart and change nothing."""

import numpy as np
import pytest

from coach_rl import (
    CertifyParameters,
    DDPGAgentParameters,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GoalPointMassParameters,
    GoalSpace,
    GoalWorldParameters,
    GraphAgentParameters,
    GraphParameters,
    GridPlaces,
    HACAgentParameters,
    HRLGraphManager,
    LearningParameters,
    LevelParameters,
    ReplayMemoryParameters,
    Runtime,
    ScheduleParameters,
    ScriptedAgentParameters,
)
from coach_rl.core.goals import GOAL_KEY
from coach_rl.levels.certifier import Fork
from coach_rl.testing import assert_same_state

PLACES = GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.2, 0.2), elements=(0, 1))
MASS = GoalPointMassParameters(threshold=0.2, max_episode_steps=47)
MAZE = GoalWorldParameters(level="point_maze_u")


def straight(observation, space):
    """Walks towards the goal and knows nothing of walls."""
    away = observation[GOAL_KEY] - observation["observation"][:, :2]
    return np.clip(3 * away, -1, 1).astype(np.float32)


def hac(**options):
    learning = LearningParameters(batch=8, updates_per_step=0.5, learning_starts=10)
    learner = DDPGAgentParameters(
        learning=learning, memory=ReplayMemoryParameters(capacity=2_000), update_mode="eager"
    )
    return LevelParameters(agent=HACAgentParameters(learner=learner), goal_space=PLACES, **options)


def learning(top=None, middle=None, environment=MASS, **options):
    """Three levels that learn to move a mass."""
    levels = (
        hac(name="top", horizon=4, testing_rate=0.3, certify=top),
        hac(name="middle", horizon=3, certify=middle),
        hac(name="low", horizon=5),
    )
    return experiment(levels, environment, num_envs=3, **options)


def planning(certify, environment=MAZE, **options):
    """A graph of way-points above a script, neither of which draws lots."""
    levels = (
        LevelParameters(
            name="graph",
            agent=GraphAgentParameters(places=GridPlaces(spacing=0.5), exploring=0.0),
            goal_space=environment.task.goal_space,
            certify=certify,
        ),
        LevelParameters(
            name="low",
            agent=ScriptedAgentParameters(policy=straight),
            goal_space=environment.task.subgoal_space,
            horizon=12,
        ),
    )
    return experiment(levels, environment, num_envs=4, **options)


def experiment(levels, environment, *, steps=240, **options):
    schedule = ScheduleParameters(
        training=EnvironmentSteps(steps),
        heatup=EnvironmentSteps(30),
        evaluation_interval=EnvironmentSteps(steps),
        evaluation_episodes=EnvironmentEpisodes(3),
        progress_interval=EnvironmentSteps(30),
    )
    return GraphParameters(levels=levels, environment=environment, schedule=schedule, **options)


def built(parameters):
    manager = HRLGraphManager(parameters)
    manager.create_graph(Runtime(seed=2))
    return manager


@pytest.mark.parametrize("prefer", ["first", "nearest"])
def test_what_was_tried_comes_about_bit_for_bit(prefer, monkeypatch):
    """In MuJoCo's simulators, above a level that does the same each time."""
    manager = built(planning(CertifyParameters(candidates=4, prefer=prefer)))
    low = manager.graph.training.levels[1]
    tried, told, compared = {}, {}, 0
    run, send, process = Fork.run, low.send, low.process

    def recorded_run(fork, state, directive, rows):
        answer, steps = run(fork, state, directive, rows)
        for i, row in enumerate(rows.tolist()):
            tried.setdefault(row, []).append((directive.action[i], answer.rows_of(np.array([i]))))
        return answer, steps

    def recorded_send(directive, rows):
        told.update(zip(rows.tolist(), directive.action, strict=True))
        send(directive, rows)

    def compared_process(answer):
        nonlocal compared
        upwards = process(answer)
        for i, row in enumerate(upwards.rows.tolist()):
            (fork, *_) = (came for goal, came in tried.pop(row) if (goal == told[row]).all())
            mine, compared = upwards.rows_of(np.array([i])), compared + 1
            for name in ("observation", "first_observation", "reward", "end", "duration"):
                assert_same_state({name: getattr(fork, name)}, {name: getattr(mine, name)})
        return upwards

    monkeypatch.setattr(Fork, "run", recorded_run)
    monkeypatch.setattr(low, "send", recorded_send)
    monkeypatch.setattr(low, "process", compared_process)
    for _ in manager.train_and_act(EnvironmentSteps(600)):
        pass
    assert compared > 30
    assert manager.graph.training.fork_steps > 600 * 0.8
    manager.close()


def test_a_run_stopped_in_mid_decision_continues_bit_for_bit():
    """With forks in forks, and networks that learn meanwhile."""
    parameters = learning(
        CertifyParameters(candidates=3, prefer="nearest"), CertifyParameters(candidates=2)
    )
    first, second = built(parameters), built(parameters)
    for _ in first.train_and_act(EnvironmentSteps(100)):
        pass
    assert any(level.goals.open.any() for level in first.graph.training.levels[1:])
    second.load_state_dict(first.state_dict())
    for manager in (first, second):
        for _ in manager.train_and_act(EnvironmentSteps(100)):
            pass
    assert first.graph.training.fork_steps > 200
    assert_same_state(first.graph.state_dict(), second.graph.state_dict())
    one, other = (manager.evaluate(EnvironmentEpisodes(4)) for manager in (first, second))
    assert one.scalars == other.scalars
    assert [level.scalars for level in one.levels] == [level.scalars for level in other.levels]
    first.close()
    second.close()


def test_forks_in_evaluations_leave_training_as_it_is():
    """An evaluation gives the same numbers again, whatever was tried in between."""
    plain, certified = (
        built(learning(certify))
        for certify in (None, CertifyParameters(candidates=3, during="evaluation"))
    )
    for manager in (plain, certified):
        for _ in manager.improve():
            pass
    assert_same_state(plain.graph.state_dict(), certified.graph.state_dict())
    assert certified.graph.training.fork_steps is None
    first, again = (certified.evaluate(EnvironmentEpisodes(4)) for _ in range(2))
    assert first.levels[0].scalars == again.levels[0].scalars
    assert first.levels[0].scalars["evaluation_level/fork_steps"] > 0
    plain.close()
    certified.close()


def test_steps_in_forks_are_reported_and_are_no_environment_steps():
    manager = built(learning(CertifyParameters(candidates=3, during="training")))
    records = list(manager.improve())
    progress = [each.scalars for each in records if each.kind == "progress"]
    levels = [each for each in records if each.kind == "level" and each.level == "top"]
    own = [each.scalars for each in levels if each.phase.value == "train"]
    assert manager.graph.clock.environment_steps == 240
    assert progress[0]["forks/environment_steps"] == 0, "heat-up certifies nothing"
    assert progress[-1]["forks/environment_steps"] == manager.graph.training.fork_steps > 0
    assert sum(each.get("level/fork_steps", 0) for each in own) == manager.graph.training.fork_steps
    for each in own[1:]:
        assert 1 <= each["level/fork_candidates"] <= 3
        assert each["level/fork_certified_share"] >= each["level/fork_changed_share"] >= 0
    in_evaluation = [each for each in levels if each.phase.value == "test"]
    assert in_evaluation
    assert not any("evaluation_level/fork_steps" in each.scalars for each in in_evaluation)
    manager.close()


def test_a_graph_learns_from_tries_only_where_it_is_asked_to():
    tries = {}
    for learn in (False, True):
        manager = built(planning(CertifyParameters(candidates=4, learn=learn), steps=400))
        for _ in manager.train_and_act(EnvironmentSteps(400)):
            pass
        agent = manager.graph.agents["graph"]
        tries[learn] = agent.graph.tries.sum() - agent.records.visits.sum()
        manager.close()
    assert tries[False] <= 0, "an edge is tried by a decision at most"
    assert tries[True] > 10


def test_agents_propose_what_they_would_do_next():
    """The graph its other neighbours, by the cost of the way; DDPG what it explores."""
    manager = built(planning(CertifyParameters(candidates=9)))
    told = []
    manager.graph.training.levels[0].certifier.reset(1)
    agent = manager.graph.agents["graph"]
    propose = agent.propose

    def recorded(row_state, alternatives, request, clock):
        others = propose(row_state, alternatives, request, clock)
        told.append((row_state.way_point[request.rows].copy(), others))
        return others

    agent.propose = recorded
    for _ in manager.train_and_act(EnvironmentSteps(4)):
        pass
    (chosen, others), grid = told[0], agent.graph.roadmap
    for own, each in zip(chosen, others, strict=True):
        places = grid.nearest(each)
        assert own not in places
        assert len(set(places.tolist())) in (2, 3, 4, 5, 6, 7, 8)
    manager.close()
