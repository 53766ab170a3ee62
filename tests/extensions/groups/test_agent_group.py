"""Several agents on one level: each gets exactly its own transitions, and nothing else."""

from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
import pytest
import small_agents
import torch
from decisions import context
from gymnasium import spaces
from resuming import after, assert_resumes

import coach_rl as rl
from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.configuration.trust import OURS_ALONE
from coach_rl.core.records import Outcome
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments import WorldEnvironment, WorldStep
from coach_rl.extensions.members.action_parts import ActionPart
from coach_rl.extensions.testing.states import assert_same_state, flat_state
from coach_rl.telemetry import description
from coach_rl.telemetry.log_files import CsvSink
from tests import builders
from tests.builders import flat

LIMIT, LAST = 7, 5
NEVER_SEEN = 99.0  # the reward of an agent whose episode is over


class TwoLives:
    """Left lives until it strays, right for as long as its start says; neither knows the other.

    The real episode is terminated once both are over and `LAST` steps are made, and truncated after
    `LIMIT`. So there are episodes in which one outlives the other, that go on without an agent, in
    which both end at once, and in which one is cut off by the limit.
    """

    start_numbers, step_numbers = 2, 1
    spaces = EnvironmentSpaces(
        observation=spaces.Dict(
            {
                "clock": spaces.Box(0, 99, (1,), np.float32),
                "left": spaces.Box(-9, 9, (1,), np.float32),
                "right/place": spaces.Box(-9, 9, (2,), np.float32),
            }
        ),
        action=spaces.Dict(
            {
                "left": spaces.Discrete(3, start=1),
                "right/lift": spaces.Box(-1, 1, (2,), np.float32),
                "right/turn": spaces.Box(-2, 2, (1,), np.float32),
            }
        ),
    )

    def start(self, uniform):
        rows = len(uniform)
        return {
            "steps": np.zeros(rows, np.int64),
            "left": 0.2 * (uniform[:, 0] - 0.5),
            "right": np.zeros((rows, 2)),
            "span": 2 + (uniform[:, 1] * 7).astype(np.int64),
            "strayed": np.zeros(rows, np.bool_),
            "done": np.zeros(rows, np.bool_),
        }

    def observe(self, state):
        return {
            "clock": state["steps"][:, None].astype(np.float32),
            "left": state["left"][:, None].astype(np.float32),
            "right/place": state["right"].astype(np.float32),
        }

    def step(self, state, action, uniform):
        steps = state["steps"] + 1
        strayed, done = state["strayed"], state["done"]
        left = state["left"] + 0.1 * (action["left"] - 2) + 0.2 * (uniform[:, 0] - 0.5)
        right = state["right"] + 0.1 * action["right/lift"] + 0.05 * action["right/turn"]
        left = np.where(strayed, state["left"], left)
        right = np.where(done[:, None], state["right"], right)
        own = {
            "left": np.where(strayed, NEVER_SEEN, left),
            "right": np.where(done, NEVER_SEEN, right.sum(axis=1)),
        }
        new = {
            "steps": steps,
            "left": left,
            "right": right,
            "span": state["span"],
            "strayed": strayed | (np.abs(left) > 0.25),
            "done": done | (steps >= state["span"]),
        }
        info = {
            "agents/left/reward": own["left"],
            "agents/right/reward": own["right"],
            "agents/left/terminated": new["strayed"],
            "agents/right/truncated": new["done"],
        }
        over = new["strayed"] & new["done"] & (steps >= LAST)
        return WorldStep(new, left + right.sum(axis=1), over, info)


class Spied:
    """An environment that keeps its answers."""

    def __init__(self, environment):
        self.environment, self.answers = environment, []

    def __getattr__(self, name):
        return getattr(self.environment, name)

    def recv(self):
        self.answers.append(self.environment.recv())
        return self.answers[-1]


BUILT = []


@dataclass(frozen=True, kw_only=True)
class TwoLivesParameters:
    level: str = "two_lives"
    world: type = TwoLives

    def build(self, *, num_envs):
        BUILT.append(
            Spied(WorldEnvironment(self.world(), num_envs=num_envs, max_episode_steps=LIMIT))
        )
        return BUILT[-1]


@pytest.fixture(autouse=True)
def _nothing_built():
    BUILT.clear()


def ppo(name="left", rollout=32):
    return builders.ppo(rollout, name=name, epochs=2)


def ddpg(name="right", learning_starts=30):
    return small_agents.ddpg(name, learning_starts, capacity=4_000)


LEFT = rl.GroupMember(
    agent=ppo(),
    actions="left",
    observations=("left", "clock"),
    reward="agents/left/reward",
    terminated="agents/left/terminated",
)
RIGHT = rl.GroupMember(
    agent=ddpg(),
    actions="right",
    observations=("right", "clock"),
    reward="agents/right/reward",
    truncated="agents/right/truncated",
)


def experiment(*members, num_envs=3, steps=600, heatup=60, world=TwoLives):
    return flat(
        rl.AgentGroupParameters(members=members or (LEFT, RIGHT)),
        TwoLivesParameters(world=world),
        num_envs=num_envs,
        training=steps,
        heatup=heatup,
        evaluation_interval=200,
        progress_interval=200,
    )


created = partial(builders.created, seed=5)


def group_of(manager):
    (group,) = manager.graph.agents.values()
    return group


def one_member_is_over(manager):
    """Whether a row is in an episode that one of its members has left."""
    top = manager.state_dict()["training"]["top"]
    playing = top["agent_rows"]["playing"]
    halves = (playing["left"] != playing["right"]) & ~top["rows"]["episode_start"]
    return halves.any()


def test_group_stopped_where_one_member_is_over_resumes_bit_for_bit(tmp_path):
    assert_resumes(partial(created, experiment()), tmp_path, after(250, one_member_is_over))


def test_a_group_starts_from_what_its_members_knew_elsewhere():
    params = experiment(
        rl.GroupMember(agent=ppo(), actions="left"), rl.GroupMember(agent=ddpg(), actions="right")
    )
    learned, new = created(params), created(params, seed=6)
    learned.run()
    state = group_of(learned).state_dict()
    group_of(new).load_policy(state)
    found = group_of(new).state_dict()
    assert_same_state(state["left"]["network"], found["left"]["network"])
    assert_same_state(state["right"]["networks"], found["right"]["networks"])
    assert found["right"]["training_steps"] == 0 < state["right"]["training_steps"]
    for manager in (learned, new):
        manager.close()


def test_train_records_name_the_member_that_learned(tmp_path):
    params = experiment()
    manager = created(params)
    sink = CsvSink(tmp_path)
    counted = {"left": 0.0, "right": 0.0}
    for record in manager.improve():
        sink.write(record)
        if record.kind == "train":
            assert record.level == "main"
            counted[record.agent] += record.scalars["train/training_steps"]
            last = record
    sink.close()
    members = group_of(manager).members.values()
    assert manager.graph.clock.training_steps == sum(each.training_steps for each in members)
    manager.close()
    assert {path.name for path in tmp_path.glob("main.*")} == {"main.left.csv", "main.right.csv"}
    assert min(counted.values()) > 0
    assert last.training_steps >= sum(counted.values())
    assert "clip_fraction" in (tmp_path / "main.left.csv").read_text().splitlines()[0]
    assert "critic_loss" in (tmp_path / "main.right.csv").read_text().splitlines()[0]


class TwoShortLives(TwoLives):
    """Rewards are told only until an agent's end, as most environments would."""

    def step(self, state, action, uniform):
        step = super().step(state, action, uniform)
        for name in ("left", "right"):
            own = step.info[f"agents/{name}/reward"]
            step.info[f"agents/{name}/reward"] = np.where(own == NEVER_SEEN, 0.0, own)
        return step


def test_episode_records_have_each_agents_own_return():
    manager = created(experiment(world=TwoShortLives))
    records = list(manager.improve())
    manager.close()
    for name in ("left", "right"):
        returns, sums = [], np.zeros(3)
        for answer in BUILT[0].answers:
            sums += answer.info[f"agents/{name}/reward"]
            returns += sums[answer.end > 0].tolist()
            sums[answer.end > 0] = 0.0
        told = [r.scalars[f"episode/reward/{name}"] for r in records if r.kind == "episode"]
        assert len(told) > 50
        np.testing.assert_allclose(told, returns)
    evaluation = [record for record in records if record.kind == "evaluation"][-1]
    for name in ("left", "right"):
        own = evaluation.arrays[f"episode/reward/{name}"]
        assert own.shape == (2,)
        assert evaluation.scalars[f"evaluation/reward_mean/{name}"] == own.mean()


def test_two_equal_members_draw_different_noise():
    two = spaces.Discrete(50)
    group = rl.AgentGroupParameters(
        members=(
            rl.GroupMember(agent=ppo("one"), actions="one"),
            rl.GroupMember(agent=ppo("two"), actions="two"),
        )
    ).build(context(TwoLives.spaces.observation, spaces.Dict({"one": two, "two": two}), num_envs=1))
    one, two = (dict(flat_state(member.network.state_dict())) for member in group.members.values())
    assert any(not torch.equal(one[path], two[path]) for path in one)
    rows = group.new_rows(20, 3).members
    draws = [rows[name].exploration.draw(np.arange(20)) for name in ("one", "two")]
    assert not np.isclose(*draws).any()


def test_parameters_survive_json():
    params = experiment()
    assert decode(encode(params), trust=OURS_ALONE.plus(__name__)) == params


def test_the_member_of_an_agent_by_name():
    member = rl.GroupMember.of(ppo("left"))
    assert member == replace(
        LEFT, observations=("left",), truncated="agents/left/truncated", agent=ppo("left")
    )


def test_description_names_members_and_their_parts():
    manager = created(experiment())
    text = description.described(manager)
    assert "member left" in text
    assert "acts under right/lift, right/turn in Box(" in text
    assert "reward: agents/right/reward" in text
    manager.close()


class TwoForgetfulLives(TwoLives):
    def step(self, state, action, uniform):
        step = super().step(state, action, uniform)
        step.info["_agents/left/reward"] = step.state["steps"] < 3
        return step


class TwoCrowdedLives(TwoLives):
    def step(self, state, action, uniform):
        step = super().step(state, action, uniform)
        step.info["agents/left/reward"] = np.zeros((len(uniform), 2))
        return step


def test_several_keys_of_one_kind_are_one_action():
    whole = spaces.Dict(
        {
            "box": spaces.Box(np.float32([[-1, -2]]), np.float32([[1, 3]])),
            "wide": spaces.Box(-5, 5, (1,), np.float64),
            "one": spaces.Discrete(3, start=-1),
            "many": spaces.MultiDiscrete([[2, 4]], start=[[0, 7]]),
            "bits": spaces.MultiBinary((2, 1)),
        }
    )
    boxes = ActionPart(("wide", "box"), whole)
    assert boxes.space == spaces.Box(
        np.array([-5.0, -1.0, -2.0]), np.array([5.0, 1.0, 3.0]), dtype=np.float64
    )
    parts = boxes.split(np.array([[4.0, 0.5, 2.5], [1.0, 0.0, -2.0]]))
    np.testing.assert_array_equal(parts["wide"], [[4.0], [1.0]])
    np.testing.assert_array_equal(parts["box"], np.float32([[[0.5, 2.5]], [[0.0, -2.0]]]))
    assert parts["box"].dtype == np.float32
    choices = ActionPart(("bits", "one", "many"), whole)
    assert choices.space == spaces.MultiDiscrete([2, 2, 3, 2, 4], start=[0, 0, -1, 0, 7])
    parts = choices.split(np.array([[1, 0, -1, 1, 10]]))
    assert {key: value[0].tolist() for key, value in parts.items()} == {
        "bits": [[1], [0]],
        "one": -1,
        "many": [[1, 10]],
    }
    for key, value in parts.items():
        assert whole[key].contains(value[0]), key
    mixed = ActionPart(("one", "wide"), whole)
    assert mixed.space == spaces.Dict({"one": whole["one"], "wide": whole["wide"]})
    action = {"one": np.array([1]), "wide": np.array([[2.0]])}
    assert mixed.split(action) == action
    assert ActionPart(("box",), whole).space == whole["box"]


def test_outcomes_of_some_rows_keep_every_field():
    kept = _outcome_with(np.array([1.0, 2.0])).rows_of(np.array([False, True]))
    assert all(len(getattr(kept, each.name)) == 1 for each in fields(kept))
    assert kept.reward.tolist() == [2.0]
    assert kept.rows.tolist() == [7]
    assert kept.observation["x"].tolist() == [[4.0]]
    assert kept.next_goal["x"].tolist() == [[3.0]]
    assert kept.info["y"].tolist() == [6]


def _outcome_with(reward):
    flags = np.zeros(2, np.bool_)
    values = {
        "rows": np.array([3, 7]),
        "observation": {"x": np.array([[2.0], [4.0]])},
        "reward": reward,
        "next_goal": {"x": np.array([[1.0], [3.0]])},
        "info": {"y": np.array([5, 6])},
    }
    rest = {each.name: flags for each in fields(Outcome) if each.name not in values}
    return Outcome(**values, **rest)
