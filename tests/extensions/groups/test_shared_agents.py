"""Members that share an agent by name, and groups on upper levels."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments import WorldEnvironment, WorldStep
from coach_rl.extensions.testing.states import flat_state
from tests.agents.resuming import after, assert_resumes
from tests.agents.small_agents import ddpg, ppo
from tests.builders import created, graph

PLACE = spaces.Box(-9, 9, (1,), np.float32)
PUSH = spaces.Box(-1, 1, (1,), np.float32)


class Twins:
    """Two walkers on a line of their own, each paid for its place, until it is beyond 0.25."""

    start_numbers, step_numbers = 2, 2
    spaces = EnvironmentSpaces(
        observation=spaces.Dict({"left": PLACE, "right": PLACE, "both": spaces.Box(-9, 9, (2,))}),
        action=spaces.Dict({"left": PUSH, "right": PUSH}),
    )

    def start(self, uniform):
        return {"place": 0.4 * uniform - 0.2, "over": np.zeros_like(uniform, np.bool_)}

    def observe(self, state):
        place = state["place"].astype(np.float32)
        return {"left": place[:, :1], "right": place[:, 1:], "both": place}

    def step(self, state, action, uniform):
        push = np.concatenate([action["left"], action["right"]], axis=1)
        place = np.where(state["over"], state["place"], state["place"] + 0.1 * push)
        place = place + 0.1 * (uniform - 0.5) * ~state["over"]
        over = state["over"] | (np.abs(place) > 0.25)
        info = {}
        for number, name in enumerate(("left", "right")):
            info[f"agents/{name}/reward"] = np.where(state["over"], 0, place)[:, number]
            info[f"agents/{name}/terminated"] = over[:, number]
        new = {"place": place, "over": over}
        return WorldStep(new, place.sum(axis=1), over.all(axis=1), info)


@dataclass(frozen=True, kw_only=True)
class TwinsParameters:
    level: str = "twins"

    def build(self, *, num_envs):
        return WorldEnvironment(Twins(), num_envs=num_envs, max_episode_steps=9)


def sharing(kind):
    return rl.AgentGroupParameters(
        members=tuple(
            replace(rl.GroupMember.of(kind(name)), truncated=None, shares="walker")
            for name in ("left", "right")
        )
    )


GOALS = rl.GoalSpace(low=(-0.5, -0.5), high=(0.5, 0.5), threshold=(0.05, 0.05), key="both")


def manager(agent, top=None, seed=2):
    low = rl.LevelParameters(name="low", agent=agent)
    levels = (low,)
    if top is not None:
        upper = rl.LevelParameters(name="top", agent=top)
        levels = (upper, replace(low, goal_space=GOALS, horizon=4))
    given = {"heatup": 30, "evaluation_interval": 150, "progress_interval": 5}
    params = graph(*levels, environment=TwinsParameters(), num_envs=3, training=300, **given)
    return created(params, seed)


def walker(name):
    return ppo(name, rollout=40)


def one_member_is_over(manager):
    playing = manager.state_dict()["training"]["top"]["agent_rows"]["playing"]
    return (playing["left"] != playing["right"]).any()


@pytest.mark.parametrize("kind", [walker, ddpg])
def test_shared_agent_is_saved_once_and_resumes_bit_for_bit(kind, tmp_path):
    def check(whole, _):
        paths = [path for path, _ in flat_state(whole.state_dict()["agents"]) if "online" in path]
        assert paths
        assert all("walker" in path for path in paths)

    build = partial(manager, sharing(kind))
    assert_resumes(build, tmp_path, after(101, one_member_is_over), check=check)


def test_schedules_of_a_shared_agent_begin_at_their_first_value():
    falling = rl.LinearSchedule(start=1.0, end=0.0)

    def scheduled(name):
        agent = walker(name)
        return replace(agent, algorithm=replace(agent.algorithm, learning_rate_schedule=falling))

    level = rl.LevelParameters(name="low", agent=sharing(scheduled))
    made = created(graph(level, environment=TwinsParameters(), num_envs=3, training=300))
    records = [each for each in made.improve() if "train/learning_rate" in each.scalars]
    rates = [each.scalars["train/learning_rate"] for each in records]
    assert rates[0] == walker("left").optimizer.learning_rate
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.5 * rates[0]


def test_decisions_of_a_shared_agent_are_followed_row_by_row():
    group = manager(sharing(walker)).graph.agents["low"]
    rows = group.new_rows(4, seed=0)
    made = np.arange(8, dtype=np.float32).reshape(8, 1)
    rows.members["walker"].choice["action"] = made
    told = rows.decisions()
    assert told["walker"]["action"].shape == (4, 2, 1)
    other = group.new_rows(4, seed=1)
    other.follow(told)
    np.testing.assert_array_equal(other.members["walker"].followed["action"], made)


# Groups on upper levels.


def above(kind):
    """Two agents, one of which chooses x of the sub-goals, the other y."""
    return rl.AgentGroupParameters(
        members=tuple(
            rl.GroupMember(agent=kind(name), actions=str(number))
            for number, name in enumerate(("x", "y"))
        )
    )
