"""Frozen levels, levels that do not fit, and the picture of a stack."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

import coach_rl as rl
from coach_rl.agents.ppo_agent import PPOAgent
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.telemetry import description
from tests import builders
from tests.builders import graph
from tests.levels.testing_part import DrawnTests

PLACES = rl.GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.2, 0.2), elements=(0, 1))
NORMALISED = rl.InputFilter(observation={"observation": (rl.ObservationNormalizationFilter(),)})


ppo = partial(builders.ppo, 16, epochs=1, minibatch=8, input_filter=NORMALISED)
ddpg = partial(builders.ddpg, learning_starts=10, updates_per_step=0.1, normalise_observations=5.0)


def stack(*levels, environment=None, **more):
    given = {"environment": environment or rl.PointMassParameters(), "num_envs": 4, **more}
    given |= {"training": 240, "heatup": 60, "evaluation_interval": 120}
    return rl.GraphManager(graph(*levels, **given))


TOP = rl.LevelParameters(name="top", agent=ppo())
LOW = rl.LevelParameters(name="low", agent=ppo(), goal_space=PLACES, horizon=4)


class EndingAgent(PPOAgent):
    def ends(self, row_state, rows, observation, clock):
        return np.ones(len(rows), np.bool_)


@parameter_class
class EndingParameters(rl.PPOAgentParameters):
    def build(self, context):
        return EndingAgent(self, context)


def tensors(state):
    """Every number in a tree, as one list of arrays."""
    if isinstance(state, dict):
        return [each for part in state.values() for each in tensors(part)]
    if isinstance(state, list | tuple):
        return [each for part in state for each in tensors(part)]
    return [np.asarray(state)] if isinstance(state, torch.Tensor | np.ndarray | int | float) else []


@pytest.mark.parametrize("agent", [ppo, ddpg])
@pytest.mark.parametrize("frozen", ["top", "low"])
def test_no_number_of_a_frozen_agent_changes_while_the_other_learns(agent, frozen):
    levels = [
        replace(TOP, agent=agent(), frozen=frozen == "top"),
        replace(LOW, agent=agent(), frozen=frozen == "low"),
    ]
    graph_manager = stack(*levels)
    graph_manager.create_graph(rl.Runtime(device="cpu"))
    before = graph_manager.state_dict()["agents"]
    records = list(graph_manager.improve())
    after = graph_manager.state_dict()["agents"]
    for name in ("top", "low"):
        same = [
            np.array_equal(one, other)
            for one, other in zip(tensors(before[name]), tensors(after[name]), strict=False)
        ]
        assert len(same) > 5
        assert all(same) == (name == frozen), name
        if name == frozen:
            assert len(tensors(before[name])) == len(tensors(after[name]))
    learned = {record.level for record in records if record.kind == "train"}
    assert frozen not in learned
    graph_manager.close()


def test_a_frozen_agent_acts_greedily_also_in_heatup():
    graph_manager = stack(TOP, replace(LOW, frozen=True))
    graph_manager.create_graph(rl.Runtime(device="cpu"))
    low = graph_manager.graph.agents["low"]
    act, seen = low.act, []

    def spied(row_state, request, clock):
        action = act(row_state, request, clock)
        pending = {key: values[request.rows] for key, values in row_state.pending.items()}
        seen.append((low.policy(pending), action))
        return action

    low.act = spied
    list(graph_manager.heatup(rl.EnvironmentSteps(60)))
    list(graph_manager.train_and_act(rl.EnvironmentSteps(60)))
    assert len(seen) == 30
    for parameters, action in seen:
        greedy, _ = low.sampler.greedy(parameters)
        np.testing.assert_array_equal(action, np.clip(greedy, -1, 1))
    graph_manager.close()


def test_the_description_draws_the_stack_as_a_tree():
    goals = replace(PLACES, key="achieved_goal", elements=None, angles=(1,))
    environment = rl.GoalPointMassParameters()
    middle = replace(
        LOW, name="middle", parts=(DrawnTests(rate=0.25),), goal_space=replace(goals, relative=True)
    )
    low = replace(
        LOW,
        agent=rl.ScriptedAgentParameters(policy="still"),
        goal_space=rl.OptionSpace(count=3),
        frozen=True,
        load="runs/1",
    )
    top = replace(TOP, goal_space=goals, horizon=9, parts=(rl.StopOnFailure(),))
    graph_manager = stack(top, middle, low, environment=environment)
    graph_manager.create_graph(rl.Runtime(device="cpu"))
    lines = description.described(graph_manager).splitlines()
    graph_manager.close()
    told = (
        "goals: achieved_goal[0] in [-1, 1] within 0.2; "
        "achieved_goal[1] in [-1, 1] within 0.2 (an angle)"
    )
    place = -1
    for line in (
        "level top: agent",
        f"  has the environment's {told}",
        "  horizon 9 decisions",
        "  stops in training where the level below misses its goal",
        "  acts in Box(-2.0, 2.0, (2,), float32)",
        f"  acts through level middle: {told}; relative to the state, by at most 2, 2",
        "└─ level middle: agent",
        "     horizon 4 decisions",
        "     tests 0.25 of its decisions",
        "     updates: eager",
        "     acts through level low: one of 3 options",
        "   └─ level low: script",
        "        horizon 4 decisions",
        "        frozen: neither explores nor learns",
        "        to be loaded from runs/1",
        "        script: 'still'",
        "      └─ environment goal_point_mass x 4",
    ):
        assert line in lines[place + 1 :], f"{line!r} is not below line {place} of {lines}"
        place = lines.index(line, place + 1)
    assert place == len(lines) - 1
