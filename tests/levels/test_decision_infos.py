"""Infos of decisions of several steps: sums and maxima by parameter, and warnings without."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core import parameter_class
from coach_rl.core.errors import CoachWarning, SpaceError
from coach_rl.core.infos import add_infos
from coach_rl.core.parts import trajectories_of
from coach_rl.environments import WorldEnvironment
from coach_rl.environments.world import WorldStep, plain_spaces
from coach_rl.extensions.episode_filters.episode_filter import EpisodeFilter
from tests.agents.resuming import after, amid, assert_resumes
from tests.builders import created, graph

pytestmark = pytest.mark.filterwarnings("ignore:.*would learn nothing")
GOALS = rl.GoalSpace(low=(-1, -1), high=(1, 1), threshold=(0, 0))
OVER = {"cost": "sum", "height": "maximum", "was_safe": "maximum", "step": "last"}


class Costly:
    """Reports a cost of 1 a step, the negative step, whether it is the first, and the step."""

    start_numbers, step_numbers = 2, 0

    def __init__(self):
        box = spaces.Box(-1, 1, (2,), np.float32)
        self.spaces = plain_spaces(box, box)

    def start(self, uniform):
        return {"place": 2 * uniform - 1, "step": np.zeros(len(uniform))}

    def observe(self, state):
        return {"observation": state["place"].astype(np.float32)}

    def step(self, state, action, uniform):
        place = np.clip(state["place"] + 0.1 * np.asarray(action, np.float64), -1, 1)
        step = state["step"] + 1
        info = {"cost": np.ones(len(step)), "height": -step, "was_safe": step == 1, "step": step}
        none = np.zeros(len(step))
        return WorldStep({"place": place, "step": step}, none, none.astype(bool), info)


@parameter_class
class CostlyParameters:
    level: str = "costly"

    def build(self, *, num_envs):
        return WorldEnvironment(Costly(), num_envs=num_envs, max_episode_steps=20)


def minus_cost(before, action, outcome):
    return -outcome.info["cost"]


def cost_of(step):
    return -step.info["cost"]


class Cheap(EpisodeFilter):
    def over(self, outcome):
        return outcome.terminated | outcome.truncated

    def keeps(self, outcome):
        return outcome.info["cost"] > 0


@parameter_class
class CheapParameters:
    def build(self, context):
        return Cheap()


def agent(name="agent", **more):
    torso = rl.TorsoParameters(middleware=(8,))
    return rl.TD3AgentParameters(
        name=name,
        actor=rl.ActorParameters(torso=torso),
        critic=rl.CriticParameters(torso=torso),
        learning=rl.LearningParameters(batch=8, learning_starts=1_000),
        update_mode="eager",
        **more,
    )


def low(name="low", horizon=5, **more):
    return rl.LevelParameters(
        name=name, agent=agent(name), goal_space=GOALS, horizon=horizon, **more
    )


def top(own, *below, **more):
    return (rl.LevelParameters(name="top", agent=own, **more), *below)


OWN = {"bonus": minus_cost, "infos": tuple(OVER)}
STACKS = {
    "two levels": lambda own: top(own, low()),
    "three levels": lambda own: top(own, low("middle", 2), low(horizon=3)),
}


def built(levels, *, seed=0, **more):
    steps = {"training": 120, "evaluation_interval": 60, "evaluation_episodes": 1}
    given = {**steps, "progress_interval": 2, "environment": CostlyParameters(), **more}
    return created(graph(*levels, num_envs=2, **given), seed)


def run(levels, **more):
    manager = built(levels, **more)
    manager.run()
    return manager


def stored(manager, name="top"):
    """The transitions of a level, or of its member `a`, flat by name."""
    agent = manager.graph.agents[name]
    found = trajectories_of(getattr(agent, "members", {}).get("a", agent))
    return {key: values[found["/mask"]] for key, values in found.items()}


def ppo(**more):
    algorithm = rl.PPOAlgorithmParameters(rollout=rl.EnvironmentSteps(1_000), minibatch=10)
    return rl.PPOAgentParameters(algorithm=algorithm, update_mode="eager", **more)


@pytest.mark.parametrize("stack", STACKS)
def test_infos_of_long_decisions_are_what_the_parameter_says(stack):
    check_infos_of_long_decisions(STACKS[stack](agent(**OWN)))


def check_infos_of_long_decisions(levels, **experiment):
    found = stored(run(levels, decision_infos=OVER, **experiment))
    duration, last = found["/durations"], found["/infos/step"]
    assert duration.max() > 1
    np.testing.assert_array_equal(found["/rewards"], -duration.astype(np.float32))
    np.testing.assert_array_equal(found["/infos/cost"], duration)
    np.testing.assert_array_equal(found["/infos/height"], -(last - duration + 1))
    np.testing.assert_array_equal(found["/infos/was_safe"], last == duration)


def test_run_stopped_within_long_decisions_resumes_with_their_infos(tmp_path):
    check_resumes_with_infos(STACKS["three levels"](agent(**OWN)), tmp_path)


def check_resumes_with_infos(levels, tmp_path):
    assert_resumes(
        lambda seed: built(levels, seed=seed, decision_infos=OVER),
        tmp_path,
        after(64, amid),
        kinds=("evaluation",),
    )


def test_reward_function_of_a_middle_level_reads_sums():
    goals = rl.GoalSpace(low=(-1, -1), high=(1, 1), threshold=(0, 0), reward=cost_of)
    middle = replace(low("middle", 2), goal_space=goals)
    found = stored(run(top(agent(), middle, low(horizon=3)), decision_infos=OVER), "middle")
    assert found["/durations"].max() == 3
    np.testing.assert_array_equal(found["/rewards"], -found["/durations"].astype(np.float32))


READERS = {
    "bonus": top(agent(bonus=minus_cost), low()),
    "reward": top(
        agent(),
        replace(
            low("middle", 2),
            goal_space=rl.GoalSpace(low=(-1, -1), high=(1, 1), threshold=(0, 0), reward=cost_of),
        ),
        low(horizon=3),
    ),
    "filter": top(agent(stores=CheapParameters()), low()),
    "stored": top(agent(infos=("cost",)), low()),
}


@pytest.mark.parametrize("reader", READERS)
def test_info_of_a_last_step_that_is_learned_from_warns_once_with_its_name(reader):
    check_warns_once(READERS[reader], "level 'middle'" if reader == "reward" else "of level 'top'")


def check_warns_once(levels, name):
    with pytest.warns(CoachWarning, match="'cost' of decisions of several steps") as found:
        run(levels)
    (message,) = {str(each.message) for each in found if "'cost'" in str(each.message)}
    assert len([each for each in found if "'cost'" in str(each.message)]) == 1
    assert name in message
    assert "GraphParameters(decision_infos={'cost': 'sum'})" in message
    run(levels, decision_infos={"cost": "last"})  # says so, and does not warn


def test_info_of_decisions_of_one_step_does_not_warn():
    run(top(agent(), replace(low(), agent=agent("low", infos=("cost",)))))
    run(top(agent(bonus=minus_cost, infos=("cost",))))


def test_sums_and_maxima_count_the_steps_that_report_an_info():
    totals, rows = {}, np.arange(2)
    over = {"cost": "sum", "height": "maximum"}
    steps = [
        {"cost": np.array([1.0, 0.0]), "_cost": np.array([True, False])},
        {"height": np.array([-3.0, 0.0]), "_height": np.array([True, False])},
        {"cost": np.array([2.0, 4.0]), "height": np.array([-5.0, -7.0])},
        {},
    ]
    for info in steps:
        add_infos(totals, info, over, rows=rows, places=slice(None), count=2)
    assert {name: each.tolist() for name, each in totals.items()} == {
        "cost": [3.0, 4.0],
        "_cost": [True, True],
        "height": [-3.0, -7.0],
        "_height": [True, True],
    }
    with pytest.raises(SpaceError, match="names the info 'cost', which is no number"):
        add_infos({}, {"cost": np.array(["a", "b"])}, over, rows=rows, places=rows, count=2)
