"""What runs of agents, levels and inspections log is described on the page of metrics."""

import re
import warnings
from dataclasses import replace
from typing import get_args

import numpy as np

import coach_rl as rl
from coach_rl.core.log_records import Kind
from coach_rl.extensions.looking import histograms, inspections
from coach_rl.extensions.looking.data_points import DataPoint
from coach_rl.extensions.looking.inspection_text import parse_inspections
from coach_rl.extensions.looking.inspector import Inspector
from tests.builders import flat, graph
from tests.docs.test_docs import DESCRIBED, METRICS, metrics_in_the_source


def experiments_with_metrics():
    """Agents and environments that together log whatever there is to log."""
    for objective, environment in (
        ("clip", rl.GoalPointMassParameters(max_episode_steps=8)),
        ("kl", rl.GymnasiumParameters(level="CartPole-v1")),
    ):
        algorithm = rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(64), epochs=1, objective=objective
        )
        yield rl.PPOAgentParameters(algorithm=algorithm), environment
    shared = {
        "learning": rl.LearningParameters(batch=4, learning_starts=4, report_every=8),
        "memory": rl.ReplayMemoryParameters(
            capacity=100,
            prioritised=rl.PrioritisedParameters(),
        ),
    }
    yield rl.DQNAgentParameters(**shared), rl.OneStepParameters()
    yield rl.DQNAgentParameters(**shared, exploration=rl.NoisyNet()), rl.OneStepParameters()
    for agent in (
        rl.DDPGAgentParameters(**shared, parameter_noise=rl.ParameterNoise()),
        rl.TD3AgentParameters(**shared),
        rl.SACAgentParameters(**shared),
    ):
        yield agent, rl.OneStepParameters(continuous=True)


SKILLS = {
    "PointMass_PPO_Skills": {"steps": 512, "rollout": 64, "skills": "option_critic"},
    "PointMass_DIAYN": {"steps": 1_100},
    "PointMaze_METRA": {"steps": 1_100},
}
"""Presets that learn skills, and changes by which they log soon."""


SOON = {"batch": 4, "updates_per_step": 0.05, "learning_starts": 4, "report_every": 2}
"""Settings of learning by which agents with a replay memory log soon."""


def logging_soon(agent):
    learning = getattr(agent, "learning", None)
    return agent if learning is None else replace(agent, learning=replace(learning, **SOON))


def skills(preset, changes):
    """A graph manager of a preset that learns skills."""
    with rl.load_preset(rl.find_preset(preset)).build(changes) as graph_manager:
        params = graph_manager.parameters
    levels = (replace(level, agent=logging_soon(level.agent)) for level in params.levels)
    return rl.GraphManager(replace(params, levels=tuple(levels)))


def strict_hac():
    """Two levels of HAC, of which the upper one ends at failures and has no limits of actions."""
    with rl.load_preset(rl.find_preset("Pendulum_HAC")).build({"steps": 1_000}) as graph_manager:
        params = graph_manager.parameters
    top, low = (
        replace(level, agent=replace(level.agent, learner=logging_soon(level.agent.learner)))
        for level in params.stack
    )
    top = replace(top, parts=(rl.StopOnFailure(),), agent=replace(top.agent, actions=None))
    schedule = replace(
        params.schedule,
        evaluation_interval=rl.EnvironmentSteps(1_000),
        evaluation_episodes=rl.EnvironmentEpisodes(1),
    )
    return rl.HACGraphManager(replace(params, stack=(top, low), schedule=schedule))


def slow_features():
    """Two levels with sub-goals in a space that is learned."""
    params = guided_hierarchy()
    (top, low), box = params.levels, {"low": (-9.0,), "high": (9.0,), "threshold": (0.1,)}
    features = rl.LESSONGoalSpace(**box, key="observation", ahead=2, every=1)
    top = replace(top, agent=replace(top.agent, actor_terms=()))
    return replace(params, levels=(top, replace(low, goal_space=features)))


def with_a_curriculum():
    """Two levels whose sub-goals are reached more strictly as they train."""
    params = guided_hierarchy()
    top, low = params.levels
    stricter = rl.Curriculum(threshold=rl.LinearSchedule(start=2.0, end=1.0))
    schedule = replace(params.schedule, progress_interval=rl.EnvironmentSteps(32))
    levels = (top, replace(low, changes=(stricter,)))
    return replace(params, levels=levels, schedule=schedule)


def guided_hierarchy():
    """Two levels, of which the upper one has whatever guides sub-goals."""
    places = rl.GoalSpace(
        key="achieved_goal", low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.1, 0.1)
    )
    agent = rl.TD3AgentParameters(
        learning=rl.LearningParameters(batch=4, learning_starts=4, report_every=4)
    )
    guide = rl.SubGoalGuideParameters(landmarks=rl.LandmarkParameters(novelty=None))
    return graph(
        rl.LevelParameters(name="top", agent=replace(agent, actor_terms=(guide,))),
        rl.LevelParameters(name="low", agent=agent, goal_space=places, horizon=4),
        environment=rl.GoalPointMassParameters(),
        num_envs=4,
        training=96,
    )


def infos_of(environment):
    return ("is_success",) if isinstance(environment, rl.GoalPointMassParameters) else ()


def names_of_what_is_wrong():
    """The names of the numbers by which inspections say that something is wrong."""
    params = rl.InspectParameters(
        checks=("nan", "shape", "range", "staleness"), within=(0, 1), oldest=1, reaction="warn"
    )
    point = DataPoint(name="batch", watch=lambda look: None, ages=("age",))
    found = []
    inspector = Inspector(params, point, level="main", note=found.append)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for columns in ({"age": np.array([2.0, np.inf])}, {"age": np.zeros((1, 2))}):
            inspector.inspect(lambda columns=columns: columns)
    return {name for each in found for name in each.scalars}


def logged(graph_manager):
    """The names of all scalars and arrays of a run."""
    with graph_manager:
        return {
            name for record in graph_manager.improve() for name in (*record.scalars, *record.arrays)
        }


def selector():
    """A level that selects others."""
    changes = {"steps": 10_000, "preempt": True}
    params = rl.load_preset(rl.find_preset("Workshop_PPO_Selector")).build(changes).parameters
    top, *parts = params.levels
    levels = (top, *(replace(part, frozen=True) for part in parts))
    schedule = replace(params.schedule, evaluation_interval=None)
    return rl.GraphManager(replace(params, levels=levels, schedule=schedule))


def planner():
    """A level that plans, above one that stands still."""
    maze = rl.GoalWorldParameters(level="point_maze_u")
    top = rl.LevelParameters(
        name="graph",
        agent=rl.GraphAgentParameters(places=rl.GridPlaces(spacing=1.0), prune_after=2),
        goal_space=maze.task.goal_space,
        changes=(rl.LevelTimes(frozen_from=rl.EnvironmentSteps(200)),),
    )
    walker = rl.LevelParameters(
        name="low",
        agent=rl.ScriptedAgentParameters(policy="still"),
        goal_space=maze.task.subgoal_space,
        horizon=5,
    )
    params = graph(
        top,
        walker,
        environment=maze,
        training=240,
        evaluation_interval=120,
        evaluation_episodes=1,
        progress_interval=60,
    )
    return rl.GraphManager(params)


def flat_runs():
    for agent, environment in experiments_with_metrics():
        parameters = flat(
            agent,
            environment,
            training=128,
            evaluation_interval=64,
            evaluation_episodes=1,
            progress_interval=64,
            num_envs=4,
            signals=rl.SignalParameters(infos=infos_of(environment)),
            callbacks=parse_inspections("batch:stats"),
        )
        yield rl.BasicRLGraphManager(parameters)


def metrics_of_runs():
    """The names of every scalar and array of small runs."""
    hierarchies = (guided_hierarchy(), slow_features(), with_a_curriculum())
    managers = (
        *flat_runs(),
        *(planner(), strict_hac(), selector()),
        *(skills(preset, changes) for preset, changes in SKILLS.items()),
        *map(rl.HRLGraphManager, hierarchies),
    )
    found = set().union(*map(logged, managers))
    return found | metrics_of_a_bonus() | metrics_of_data() | names_of_what_is_wrong()


def metrics_of_data():
    """What agents log that learn from a data set."""
    names = set()
    learning = rl.LearningParameters(batch=4, learning_starts=1, report_every=2)
    memory = rl.ReplayMemoryParameters(capacity=11_000)
    for data, level, kinds in (
        ("hopper", "Hopper-v5", (rl.BCAgentParameters, rl.IQLAgentParameters)),
        ("cartpole", "CartPole-v1", (rl.DiscreteCQLAgentParameters,)),
    ):
        for kind in kinds:
            params = rl.BatchGraphParameters(
                data=f"data:{data}-expert",
                agent=kind(learning=learning, memory=memory),
                environment=rl.GymnasiumParameters(level=level),
                schedule=rl.batch_schedule(4, episodes=1),
            )
            names |= logged(rl.BatchGraphManager(params))
    return names


def metrics_of_a_bonus():
    """What a bonus logs that has networks and counts visits."""
    changes = {"steps": 600, "bonus": "noveld"}
    params = rl.load_preset(rl.find_preset("Chain_PPO")).build(changes).parameters
    every = rl.EnvironmentSteps(100)
    schedule = replace(params.schedule, evaluation_interval=None, progress_interval=every)
    bonus = replace(params.agent.bonus, warmup=50, batch=32)
    algorithm = replace(params.agent.algorithm, rollout=rl.EnvironmentSteps(300))
    changed = {
        "agent": replace(params.agent, bonus=bonus, algorithm=algorithm),
        "schedule": schedule,
        "num_envs": 2,
        "environment": replace(params.environment, length=5),
    }
    return logged(rl.BasicRLGraphManager(replace(params, **changed)))


def test_logged_metrics_are_described():
    """Each in the metrics.toml of its room; after a change: `python .ci/metrics_page.py`."""
    logged = {
        re.sub(r"^(final_)?evaluation_(level|signals)/", r"\2/", name).removeprefix("final_")
        for name in metrics_in_the_source() | metrics_of_runs()
    }
    assert {
        "train/kl_coefficient",
        "train/policy_loss",
        "train/q_loss",
        "train/critic_loss",
        "train/temperature_gradient_norm",
        "episode/success",
        "exploration/epsilon",
        "exploration/parameter_scale",
        "memory/beta",
    } <= logged
    patterns = DESCRIBED.values()
    assert not {name for name in logged if not any(each.fullmatch(name) for each in patterns)}
    unused = {name for name, each in DESCRIBED.items() if not any(map(each.fullmatch, logged))}
    of_groups = {"episode/reward/<agent>", "evaluation/reward_mean/<agent>"}
    # Of agents of one's own, and of data that a run without an environment holds out.
    assert unused == {*of_groups, "level/own_end_share", "held_out/<metric>"}


def test_described_kinds_of_records_are_those_of_the_code():
    kinds = METRICS["descriptions"]()[METRICS["KINDS"]]
    assert sorted(kinds) == sorted([*get_args(Kind), histograms.KIND, inspections.KIND])
