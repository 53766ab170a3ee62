"""What runs of agents, levels and inspections log is described on the page of metrics."""

import re
import warnings
from dataclasses import replace
from typing import get_args

import numpy as np

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.agents.dqn_agent import DQNAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.agents.sac_agent import SACAgentParameters
from coach_rl.agents.td3_agent import TD3AgentParameters
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.clock import LinearSchedule
from coach_rl.core.goals import GoalSpace
from coach_rl.core.log_records import Kind
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.goal_worlds import GoalWorldParameters
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.toy import GoalPointMassParameters, OneStepParameters
from coach_rl.extensions.curricula.curriculum import Curriculum
from coach_rl.extensions.data.batch_graph import (
    BatchGraphManager,
    BatchGraphParameters,
    batch_schedule,
)
from coach_rl.extensions.exploration import ParameterNoise
from coach_rl.extensions.hac.hac_graph import HACGraphManager
from coach_rl.extensions.hiro.landmarks import LandmarkParameters
from coach_rl.extensions.hiro.sub_goal_guide import SubGoalGuideParameters
from coach_rl.extensions.imitation.behaviour_cloning import BCAgentParameters
from coach_rl.extensions.learned_goals.lesson_goals import LESSONGoalSpace
from coach_rl.extensions.level_phases.level_phases import LevelTimes
from coach_rl.extensions.looking import histograms, inspections
from coach_rl.extensions.looking.data_points import DataPoint
from coach_rl.extensions.looking.inspection_text import parse_inspections
from coach_rl.extensions.looking.inspections import InspectParameters
from coach_rl.extensions.looking.inspector import Inspector
from coach_rl.extensions.noisy import NoisyNet
from coach_rl.extensions.offline.discrete_cql import DiscreteCQLAgentParameters
from coach_rl.extensions.offline.iql import IQLAgentParameters
from coach_rl.extensions.planning.graph_agent import GraphAgentParameters
from coach_rl.extensions.planning.places import GridPlaces
from coach_rl.extensions.prioritised import PrioritisedParameters
from coach_rl.extensions.scripts.scripted_agent import ScriptedAgentParameters
from coach_rl.extensions.strict_subgoals.stop_on_failure import StopOnFailure
from coach_rl.graph_managers import (
    BasicRLGraphManager,
    GraphManager,
    HRLGraphManager,
    LevelParameters,
    SignalParameters,
)
from coach_rl.memories import ReplayMemoryParameters
from tests.builders import flat, graph
from tests.docs.test_docs import DESCRIBED, METRICS, metrics_in_the_source


def experiments_with_metrics():
    """Agents and environments that together log whatever there is to log."""
    for objective, environment in (
        ("clip", GoalPointMassParameters(max_episode_steps=8)),
        ("kl", GymnasiumParameters(level="CartPole-v1")),
    ):
        algorithm = PPOAlgorithmParameters(
            rollout=EnvironmentSteps(64), epochs=1, objective=objective
        )
        yield PPOAgentParameters(algorithm=algorithm), environment
    shared = {
        "learning": LearningParameters(batch=4, learning_starts=4, report_every=8),
        "memory": ReplayMemoryParameters(
            capacity=100,
            prioritised=PrioritisedParameters(),
        ),
    }
    yield DQNAgentParameters(**shared), OneStepParameters()
    yield DQNAgentParameters(**shared, exploration=NoisyNet()), OneStepParameters()
    for agent in (
        DDPGAgentParameters(**shared, parameter_noise=ParameterNoise()),
        TD3AgentParameters(**shared),
        SACAgentParameters(**shared),
    ):
        yield agent, OneStepParameters(continuous=True)


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
    with load_preset(find_preset(preset)).build(changes) as graph_manager:
        params = graph_manager.parameters
    levels = (replace(level, agent=logging_soon(level.agent)) for level in params.levels)
    return GraphManager(replace(params, levels=tuple(levels)))


def strict_hac():
    """Two levels of HAC, of which the upper one ends at failures and has no limits of actions."""
    with load_preset(find_preset("Pendulum_HAC")).build({"steps": 1_000}) as graph_manager:
        params = graph_manager.parameters
    top, low = (
        replace(level, agent=replace(level.agent, learner=logging_soon(level.agent.learner)))
        for level in params.stack
    )
    top = replace(top, parts=(StopOnFailure(),), agent=replace(top.agent, actions=None))
    schedule = replace(
        params.schedule,
        evaluation_interval=EnvironmentSteps(1_000),
        evaluation_episodes=EnvironmentEpisodes(1),
    )
    return HACGraphManager(replace(params, stack=(top, low), schedule=schedule))


def slow_features():
    """Two levels with sub-goals in a space that is learned."""
    params = guided_hierarchy()
    (top, low), box = params.levels, {"low": (-9.0,), "high": (9.0,), "threshold": (0.1,)}
    features = LESSONGoalSpace(**box, key="observation", ahead=2, every=1)
    top = replace(top, agent=replace(top.agent, actor_terms=()))
    return replace(params, levels=(top, replace(low, goal_space=features)))


def with_a_curriculum():
    """Two levels whose sub-goals are reached more strictly as they train."""
    params = guided_hierarchy()
    top, low = params.levels
    stricter = Curriculum(threshold=LinearSchedule(start=2.0, end=1.0))
    schedule = replace(params.schedule, progress_interval=EnvironmentSteps(32))
    levels = (top, replace(low, changes=(stricter,)))
    return replace(params, levels=levels, schedule=schedule)


def guided_hierarchy():
    """Two levels, of which the upper one has whatever guides sub-goals."""
    places = GoalSpace(key="achieved_goal", low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.1, 0.1))
    agent = TD3AgentParameters(
        learning=LearningParameters(batch=4, learning_starts=4, report_every=4)
    )
    guide = SubGoalGuideParameters(landmarks=LandmarkParameters(novelty=None))
    return graph(
        LevelParameters(name="top", agent=replace(agent, actor_terms=(guide,))),
        LevelParameters(name="low", agent=agent, goal_space=places, horizon=4),
        environment=GoalPointMassParameters(),
        num_envs=4,
        training=96,
    )


def infos_of(environment):
    return ("is_success",) if isinstance(environment, GoalPointMassParameters) else ()


def names_of_what_is_wrong():
    """The names of the numbers by which inspections say that something is wrong."""
    params = InspectParameters(
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


def metrics_of_a_selector():
    """The names of the scalars of a level that selects others."""
    names = set()
    with load_preset(find_preset("Workshop_PPO_Selector")).build(
        {"steps": 10_000, "preempt": True}
    ) as graph_manager:
        params = graph_manager.parameters
    selector, *parts = params.levels
    levels = (selector, *(replace(part, frozen=True) for part in parts))
    schedule = replace(params.schedule, evaluation_interval=None)
    selecting = replace(params, levels=levels, schedule=schedule)
    with GraphManager(selecting) as graph_manager:
        for record in graph_manager.improve():
            names |= {*record.scalars}
    return names


def metrics_of_runs():
    """The names of every scalar and array of small runs."""
    names = set()
    for agent, environment in experiments_with_metrics():
        parameters = flat(
            agent,
            environment,
            training=128,
            evaluation_interval=64,
            progress_interval=64,
            num_envs=4,
            signals=SignalParameters(infos=infos_of(environment)),
            callbacks=parse_inspections("batch:stats"),
        )
        with BasicRLGraphManager(parameters) as graph_manager:
            for record in graph_manager.improve():
                names |= {*record.scalars, *record.arrays}
    planner = LevelParameters(
        name="graph",
        agent=GraphAgentParameters(places=GridPlaces(spacing=1.0), prune_after=2),
        goal_space=GoalWorldParameters(level="point_maze_u").task.goal_space,
        changes=(LevelTimes(frozen_from=EnvironmentSteps(200)),),
    )
    walker = LevelParameters(
        name="low",
        agent=ScriptedAgentParameters(policy="still"),
        goal_space=GoalWorldParameters(level="point_maze_u").task.subgoal_space,
        horizon=5,
    )
    with GraphManager(
        graph(
            planner,
            walker,
            environment=GoalWorldParameters(level="point_maze_u"),
            training=240,
            evaluation_interval=120,
            evaluation_episodes=1,
            progress_interval=60,
        )
    ) as graph_manager:
        for record in graph_manager.improve():
            names |= {*record.scalars}
    with strict_hac() as graph_manager:
        for record in graph_manager.improve():
            names |= {*record.scalars}
    names |= metrics_of_a_selector()
    for preset, changes in SKILLS.items():
        with skills(preset, changes) as graph_manager:
            for record in graph_manager.improve():
                names |= {*record.scalars}
    with HRLGraphManager(guided_hierarchy()) as graph_manager:
        for record in graph_manager.improve():
            names |= {*record.scalars}
    for params in (slow_features(), with_a_curriculum()):
        with HRLGraphManager(params) as graph_manager:
            for record in graph_manager.improve():
                names |= {*record.scalars}
    return names | metrics_of_a_bonus() | metrics_of_data() | names_of_what_is_wrong()


def metrics_of_data():
    """What agents log that learn from a data set."""
    names = set()
    learning = LearningParameters(batch=4, learning_starts=1, report_every=2)
    memory = ReplayMemoryParameters(capacity=11_000)
    for data, level, kinds in (
        ("hopper", "Hopper-v5", (BCAgentParameters, IQLAgentParameters)),
        ("cartpole", "CartPole-v1", (DiscreteCQLAgentParameters,)),
    ):
        for kind in kinds:
            params = BatchGraphParameters(
                data=f"data:{data}-expert",
                agent=kind(learning=learning, memory=memory),
                environment=GymnasiumParameters(level=level),
                schedule=batch_schedule(4),
            )
            with BatchGraphManager(params) as graph_manager:
                names |= {name for record in graph_manager.improve() for name in record.scalars}
    return names


def metrics_of_a_bonus():
    """What a bonus logs that has networks and counts visits."""
    params = (
        load_preset(find_preset("Chain_PPO")).build({"steps": 600, "bonus": "noveld"}).parameters
    )
    every = EnvironmentSteps(100)
    schedule = replace(params.schedule, evaluation_interval=None, progress_interval=every)
    bonus = replace(params.agent.bonus, warmup=50, batch=32)
    algorithm = replace(params.agent.algorithm, rollout=EnvironmentSteps(300))
    agent = replace(params.agent, bonus=bonus, algorithm=algorithm)
    with BasicRLGraphManager(
        replace(
            params,
            agent=agent,
            schedule=schedule,
            num_envs=2,
            environment=replace(params.environment, length=5),
        )
    ) as graph_manager:
        return {name for record in graph_manager.improve() for name in record.scalars}


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
