"""An environment that moves its goal within an episode, below a top level that has a goal space."""

from dataclasses import dataclass

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.records import take
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.world import WorldEnvironment, WorldStep
from tests import builders
from tests.agents.decisions import stored_by

PLACES = rl.GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.3, 0.3))
NOWHERE = np.float64(9.0)


class Chase:
    """Move in a square towards a target that jumps at every third step.

    `target` says where it is as well, under a key that means nothing to a level: what an agent sees
    there was true when it decided.
    """

    start_numbers, step_numbers = 4, 2
    spaces = EnvironmentSpaces(
        observation=spaces.Dict(
            {
                "observation": spaces.Box(-1, 1, (2,), np.float32),
                rl.GOAL_KEY: spaces.Box(-1, 1, (2,), np.float64),
                "target": spaces.Box(-1, 1, (2,), np.float64),
            }
        ),
        action=spaces.Box(-1, 1, (2,), np.float32),
    )

    def start(self, uniform):
        place = 2 * uniform - 1
        return {
            "place": place[:, :2].astype(np.float32),
            "target": place[:, 2:],
            "age": np.zeros(len(place), np.int64),
        }

    def observe(self, state):
        target = state["target"]
        return {
            "observation": state["place"].copy(),
            rl.GOAL_KEY: target.copy(),
            "target": target.copy(),
        }

    def step(self, state, action, uniform):
        age = state["age"] + 1
        place = np.clip(state["place"] + 0.3 * action, -1, 1).astype(np.float32)
        target = np.where((age % 3 == 0)[:, None], 2 * uniform - 1, state["target"])
        after = {"place": place, "target": target, "age": age}
        nothing = np.zeros(len(age))
        return WorldStep(after, nothing + NOWHERE, nothing > 0, {})


@dataclass(frozen=True, kw_only=True)
class ChaseParameters:
    world: type = Chase

    @property
    def level(self):
        return "chase"

    def build(self, *, num_envs):
        return WorldEnvironment(self.world(), num_envs=num_envs, max_episode_steps=11)


def ddpg(name="agent", **memory):
    kept = rl.ReplayMemoryParameters(capacity=600, **memory)
    return builders.ddpg(name=name, memory=kept, updates_per_step=0.1, normalise_observations=5.0)


def ppo(name="agent"):
    return builders.ppo(24, name=name, epochs=1, minibatch=8)


def manager(agent, *, levels=1, num_envs=3, heatup=0, space=PLACES, world=Chase):
    top = rl.LevelParameters(name="top", agent=agent, goal_space=space)
    low = rl.LevelParameters(name="low", agent=ddpg(), goal_space=PLACES, horizon=4)
    params = builders.graph(
        *(top, low)[:levels],
        environment=ChaseParameters(world=world),
        num_envs=num_envs,
        training=300,
        heatup=heatup,
        evaluation_interval=300,
    )
    return builders.created(params, seed=3)


def check(stored, space=PLACES):
    """What was kept agrees with the goal that was there at each decision; how many goals moved."""
    moved = 0
    for one in stored:
        seen, after = one.observation, one.next_observation
        np.testing.assert_array_equal(seen[rl.GOAL_KEY], seen["target"].astype(np.float32))
        np.testing.assert_array_equal(after[rl.GOAL_KEY], seen[rl.GOAL_KEY])
        np.testing.assert_allclose(one.reward, space.verdict(seen[rl.GOAL_KEY], after).reward)
        reached = space.reached(seen[rl.GOAL_KEY], after)
        np.testing.assert_array_equal(one.terminated, reached)
        differs = (seen["target"] != after["target"]).any(axis=1)
        moved += int((differs & ~one.terminated & ~one.truncated).sum())
    return moved


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("agent", [ddpg(), ppo()])
def test_a_decision_sees_the_goal_it_is_rewarded_for(agent, levels):
    graph_manager = manager(agent, levels=levels)
    stored = stored_by(graph_manager.graph.agents["top"])
    list(graph_manager.train_and_act(rl.EnvironmentSteps(300)))
    assert check(stored) > 10


def test_evaluations_act_on_the_goal_that_is_there():
    graph_manager, seen = manager(ppo()), []
    agent = graph_manager.graph.agents["top"]
    choose = agent.choose

    def spied(row_state, request, clock):
        seen.append(take(request.observation, slice(None)))
        return choose(row_state, request, clock)

    agent.choose = spied
    graph_manager.evaluate(rl.EnvironmentEpisodes(4))
    assert len(seen) == 22
    for observation in seen:
        np.testing.assert_array_equal(
            observation[rl.GOAL_KEY], observation["target"].astype(np.float32)
        )


def test_the_ledger_of_hindsight_holds_what_the_level_said():
    graph_manager = manager(ddpg(relabelling=rl.HindsightParameters(goal_ends_episode=True)))
    agent = graph_manager.graph.agents["top"]
    stored = stored_by(agent)
    list(graph_manager.heatup(rl.EnvironmentSteps(300)))
    assert check(stored) > 10
    store = agent.memory.store
    kept = store.kept()
    assert store.ledger["/reached"][kept].any()
    np.testing.assert_array_equal(store.ledger["/reached"][kept], store.ledger["/terminated"][kept])


def test_transitions_do_not_depend_on_the_company_of_other_rows():
    def first_row(num_envs):
        graph_manager = manager(ddpg(), num_envs=num_envs)
        stored = stored_by(graph_manager.graph.agents["top"])
        list(graph_manager.heatup(rl.EnvironmentSteps(60 * num_envs)))
        return [
            {key: (one.observation[key][0].tolist(), one.next_observation[key][0].tolist())}
            for one in stored
            for key in one.observation
        ]

    assert first_row(1) == first_row(4)
