"""What a graph manager runs: agents by level, two stacks, nothing left open on failure."""

import warnings
from dataclasses import dataclass, replace

import pytest

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.ppo_agent import PPOAgentParameters
from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.environments.mujoco import MujocoParameters
from coach_rl.environments.toy import PointMassParameters
from coach_rl.graph_managers import (
    BasicRLGraphManager,
    LevelParameters,
)
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.run_warnings import warn_of_idle_learners
from tests.builders import graph
from tests.graph_managers.small_runs import parameters, ppo

TASK = Runtime(seed=1, device="cpu")
SLOW = ppo(rollout=EnvironmentSteps(401))
PLACES = GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.1, 0.1), elements=(0, 1))


def stacked(top=None, low=None, **more):
    return graph(
        LevelParameters(name="top", agent=top or ppo()),
        LevelParameters(name="low", agent=low or ppo(), goal_space=PLACES, horizon=5, **more),
        training=400,
        evaluation_interval=10_000,
    )


@dataclass(frozen=True)
class Watched:
    """A point mass that notes what is opened and closed."""

    opened: list
    max_episode_steps: int = 50
    level: str = "watched"

    def build(self, *, num_envs):
        if self.max_episode_steps == 0:
            raise ConfigurationError("there is no such world")
        environment = PointMassParameters().build(num_envs=num_envs)
        self.opened.append(num_envs)
        environment.close = lambda: self.opened.remove(
            num_envs
        )  # an error where it is closed twice
        return environment


def test_agents_are_known_by_the_name_of_their_level_top_first():
    graph = Graph(stacked(), TASK)
    assert list(graph.agents) == ["top", "low"] == [level.name for level in graph.training.levels]
    for stack in (graph.training, graph.evaluation):
        for level in stack.levels:
            assert level.agent is graph.agents[level.name]
    graph.close()
    graph.close()


def test_training_and_evaluation_environments_are_closed_with_the_graph():
    opened = []
    graph = Graph(replace(parameters(), environment=Watched(opened)), TASK)
    assert opened == [4, 3]
    graph.close()
    assert opened == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"evaluation_environment": Watched([], max_episode_steps=0)},
        {"evaluation_environment": MujocoParameters(level="hopper")},
        {
            "agent": DDPGAgentParameters(
                name="x", learning=LearningParameters(learning_starts=10**9)
            )
        },
    ],
    ids=["evaluation environment", "its spaces", "agent"],
)
def test_graph_failed_build_closes_environments(wrong):
    opened = []
    manager = BasicRLGraphManager(replace(parameters(), environment=Watched(opened), **wrong))
    with pytest.raises(ConfigurationError):
        manager.create_graph(TASK)
    assert opened == []


def test_graph_without_training_builds_evaluation_alone():
    opened = []
    graph = Graph(replace(parameters(), environment=Watched(opened)), TASK, training=False)
    assert opened == [3]
    graph.close()


def off_policy(starts, batch=64, **more):
    learning = LearningParameters(learning_starts=starts, batch=batch)
    return DDPGAgentParameters(learning=learning, **more)


def test_run_that_cannot_learn_warns_at_the_start():
    check_idle_run_warns(PPOAgentParameters())


def check_idle_run_warns(agent):
    with BasicRLGraphManager(replace(parameters(), agent=agent)) as manager:
        records = manager.improve()
        with pytest.warns(CoachWarning, match="would learn nothing"):
            next(records)


@pytest.mark.parametrize(
    "described",
    [
        parameters(),
        replace(parameters(), num_envs=64),
        replace(parameters(), agent=off_policy(399)),
        stacked(low=SLOW, frozen=True),
    ],
)
def test_a_run_that_can_learn_does_not_warn(described):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_idle_learners(described)
