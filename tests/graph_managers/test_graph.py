"""What a graph manager runs: agents by level, two stacks, nothing left open on failure."""

import warnings
from dataclasses import dataclass, replace

import pytest

import coach_rl as rl
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.run_warnings import warn_of_idle_learners
from tests.builders import graph
from tests.graph_managers.small_runs import parameters, ppo

TASK = rl.Runtime(seed=1, device="cpu")
SLOW = ppo(rollout=rl.EnvironmentSteps(401))
PLACES = rl.GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.1, 0.1), elements=(0, 1))


def stacked(top=None, low=None, **more):
    return graph(
        rl.LevelParameters(name="top", agent=top or ppo()),
        rl.LevelParameters(name="low", agent=low or ppo(), goal_space=PLACES, horizon=5, **more),
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
            raise rl.ConfigurationError("there is no such world")
        environment = rl.PointMassParameters().build(num_envs=num_envs)
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
        {"evaluation_environment": rl.MujocoParameters(level="hopper")},
        {
            "agent": rl.DDPGAgentParameters(
                name="x", learning=rl.LearningParameters(learning_starts=10**9)
            )
        },
    ],
    ids=["evaluation environment", "its spaces", "agent"],
)
def test_graph_failed_build_closes_environments(wrong):
    opened = []
    manager = rl.BasicRLGraphManager(replace(parameters(), environment=Watched(opened), **wrong))
    with pytest.raises(rl.ConfigurationError):
        manager.create_graph(TASK)
    assert opened == []


def test_graph_without_training_builds_evaluation_alone():
    opened = []
    graph = Graph(replace(parameters(), environment=Watched(opened)), TASK, training=False)
    assert opened == [3]
    graph.close()


def off_policy(starts, batch=64, **more):
    learning = rl.LearningParameters(learning_starts=starts, batch=batch)
    return rl.DDPGAgentParameters(learning=learning, **more)


def test_run_that_cannot_learn_warns_at_the_start():
    check_idle_run_warns(rl.PPOAgentParameters())


def check_idle_run_warns(agent):
    with rl.BasicRLGraphManager(replace(parameters(), agent=agent)) as manager:
        records = manager.improve()
        with pytest.warns(rl.CoachWarning, match="would learn nothing"):
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
