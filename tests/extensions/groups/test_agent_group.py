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
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import trajectories_of
from coach_rl.core.records import End, Outcome
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments import WorldEnvironment, WorldStep
from coach_rl.extensions.members.action_parts import ActionPart
from coach_rl.extensions.members.members import AgentView, MemberIndex
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
    """An environment that keeps what it was sent."""

    def __init__(self, environment):
        self.environment, self.sent = environment, []

    def __getattr__(self, name):
        return getattr(self.environment, name)

    def send(self, directive, rows=None):
        self.sent.append((rows.copy(), {k: v.copy() for k, v in directive.action.items()}))
        self.environment.send(directive, rows)


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


def seeds_of(rows, seed=5):
    first = integer_seed(seed, "training", "environment")
    return [first + row for row in range(rows)]


def slow_lives(seed, actions):
    """One row, step by step in plain Python: each agent's transitions, and when it idles.

    Args:
        actions: What the row was sent, a dict a step.
    """
    rng = np.random.default_rng(seed)
    kept = {"left": [], "right": []}
    idle = {"left": [], "right": []}
    episode = None
    for number, action in enumerate(actions):
        if episode is None:
            a, b = rng.random(2)
            episode = {"left": 0.2 * (a - 0.5), "right": np.zeros(2), "steps": 0}
            span, playing = 2 + int(b * 7), {"left", "right"}
        before = dict(episode)
        gust = rng.random(1)[0]
        episode["steps"] += 1
        ends = {}
        if "left" in playing:
            pushed = before["left"] + 0.1 * (action["left"] - 2)
            episode["left"] = pushed + 0.2 * (gust - 0.5)
            ends["left"] = (bool(abs(episode["left"]) > 0.25), False)
        if "right" in playing:
            lifted = before["right"] + 0.1 * action["right/lift"]
            episode["right"] = lifted + 0.05 * action["right/turn"]
            ends["right"] = (False, episode["steps"] >= span)
        left_over = {name for name in playing if not any(ends[name])}
        terminated = not left_over and episode["steps"] >= LAST
        truncated = episode["steps"] >= LIMIT
        for name in ("left", "right"):
            if name not in playing:
                idle[name].append(number)
                continue
            own = ends[name] if any(ends[name]) else (terminated, truncated)
            reward = episode["left"] if name == "left" else episode["right"].sum()
            kept[name].append((number, before, action, reward, dict(episode), *own))
        playing = left_over
        if terminated or truncated:
            episode = None
    return kept, idle


def sent_by_row(environment, num_envs):
    actions = [[] for _ in range(num_envs)]
    for rows, action in environment.sent:
        for position, row in enumerate(rows):
            actions[row].append({key: values[position] for key, values in action.items()})
    return actions


def seen(name, state):
    place = [state["left"]] if name == "left" else state["right"]
    return np.float32(place), np.float32([state["steps"]])


@pytest.mark.filterwarnings("ignore:.*would learn nothing")
def test_each_member_gets_exactly_its_own_transitions():
    """Heat-up, training, evaluations in between; nobody learns, so that all is still there."""
    params = experiment(
        replace(LEFT, agent=ppo(rollout=5_000)), replace(RIGHT, agent=ddpg(learning_starts=3_000))
    )
    manager = created(params)
    list(manager.improve())
    training = BUILT[0]
    rows = params.num_envs
    shown = trajectories_of(group_of(manager))
    random_steps = params.schedule.heatup.count // rows
    sent = sent_by_row(training, rows)
    assert [len(actions) for actions in sent] == [200] * rows
    key = {"left": "left", "right": "right/place"}
    ways = set()
    for row, seed in enumerate(seeds_of(rows)):
        kept, idle = slow_lives(seed, sent[row])
        for name, transitions in kept.items():
            if name == "left":  # on-policy: what was done at random is not kept
                transitions = [each for each in transitions if each[0] >= random_steps]
            at = {p.removeprefix(f"/agents/{name}"): v[row] for p, v in shown.items() if name in p}
            assert at["/mask"].sum() == len(transitions)
            for time, (_, before, action, reward, then, ended, cut) in enumerate(transitions):
                place, clock = seen(name, before)
                np.testing.assert_array_equal(at[f"/observations/{key[name]}"][time], place)
                np.testing.assert_array_equal(at["/observations/clock"][time], clock)
                place, clock = seen(name, then)
                np.testing.assert_array_equal(at[f"/next_observations/{key[name]}"][time], place)
                np.testing.assert_array_equal(at["/next_observations/clock"][time], clock)
                done = [action["left"]]
                if name == "right":
                    done = [*action["right/lift"], *action["right/turn"]]
                np.testing.assert_array_equal(np.ravel(at["/actions"][time]), done)
                assert at["/rewards"][time] == np.asarray(reward, at["/rewards"].dtype)
                assert (at["/terminated"][time], at["/truncated"][time]) == (ended, cut)
                ways.add((name, ended, cut))
        for name, times in idle.items():
            assert times
            for part in ("left",) if name == "left" else ("right/lift", "right/turn"):
                told = np.stack([sent[row][time][part] for time in times])
                assert (told == told[0]).all()
    # Each went on, came to its own end, and was cut off by the limit or ended with the episode.
    assert {("left", True, False), ("left", False, True), ("right", False, True)} <= ways
    manager.close()


@pytest.mark.filterwarnings("ignore:.*would learn nothing")
def test_a_member_without_ends_of_its_own_plays_to_the_real_end():
    """And gets the level's reward and ends as they are."""
    shared = replace(RIGHT, reward=None, truncated=None, agent=ddpg(learning_starts=3_000))
    manager = created(experiment(replace(LEFT, agent=ppo(rollout=5_000)), shared))
    list(manager.improve())
    shown = trajectories_of(group_of(manager))
    assert shown["/agents/right/mask"].all()
    assert shown["/agents/right/mask"].shape == (3, 200)
    assert not (shown["/agents/right/rewards"] == NEVER_SEEN).any()
    clock = shown["/agents/right/next_observations/clock"][..., 0]
    ended, cut = shown["/agents/right/terminated"], shown["/agents/right/truncated"]
    assert ended.any()
    np.testing.assert_array_equal(cut, (clock == LIMIT) & ~ended)
    np.testing.assert_array_equal(
        np.where(ended | cut, 1, clock + 1)[:, :-1],
        shown["/agents/right/next_observations/clock"][:, 1:, 0],
    )
    manager.close()


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
    manager.close()
    assert {path.name for path in tmp_path.glob("main.*")} == {"main.left.csv", "main.right.csv"}
    assert min(counted.values()) > 0
    assert last.training_steps >= sum(counted.values())
    assert "clip_fraction" in (tmp_path / "main.left.csv").read_text().splitlines()[0]
    assert "critic_loss" in (tmp_path / "main.right.csv").read_text().splitlines()[0]


def test_training_steps_are_those_of_all_members():
    manager = created(experiment())
    list(manager.improve())
    members = group_of(manager).members
    assert members["left"].training_steps > 0
    assert members["right"].training_steps > 0
    total = sum(member.training_steps for member in members.values())
    assert manager.graph.clock.training_steps == total
    manager.close()


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
    expected = {"left": [], "right": []}
    actions = sent_by_row(BUILT[0], 3)
    for seed, sent in zip(seeds_of(3), actions, strict=True):
        kept, _ = slow_lives(seed, sent)
        for name, transitions in kept.items():
            sums, number = {}, 0
            for time, before, _, reward, *_ in transitions:
                start = time - before["steps"]  # tells episodes apart
                sums[start] = sums.get(start, 0.0) + reward
                number = start
            sums.pop(number)  # may be unfinished
            expected[name] += list(sums.values())
    for name, returns in expected.items():
        told = [r.scalars[f"episode/reward/{name}"] for r in records if r.kind == "episode"]
        assert len(told) - len(returns) in range(4)
        assert not set(np.round(returns, 9)) - set(np.round(told, 9))
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


REACH = rl.GoalSpace(low=(-1.0,), high=(1.0,), threshold=(0.05,), key="left")


def test_a_group_can_be_the_lower_level():
    """Its members share the goal reward; the one that sees the goal can pursue it."""
    params = experiment()
    graph = rl.GraphParameters(
        levels=(
            rl.LevelParameters(name="high", agent=ppo("high")),
            rl.LevelParameters(
                name="low",
                agent=rl.AgentGroupParameters(
                    members=(
                        rl.GroupMember(
                            agent=ppo("left"), actions="left", observations=("left", "desired_goal")
                        ),
                        rl.GroupMember(agent=ddpg(), actions="right"),
                    )
                ),
                goal_space=REACH,
                horizon=3,
            ),
        ),
        environment=params.environment,
        num_envs=2,
        schedule=params.schedule,
    )
    manager = rl.HRLGraphManager(graph)
    manager.create_graph(rl.Runtime(device="cpu"))
    records = list(manager.improve())
    learned = {(record.level, record.agent) for record in records if record.kind == "train"}
    assert learned == {("high", "high"), ("low", "left"), ("low", "right")}
    shown = trajectories_of(manager.graph.agents["low"])
    rewards = shown["/agents/right/rewards"][shown["/agents/right/mask"]]
    assert set(rewards) == {-1.0, 0.0}
    assert any("episode/reward/left" in record.scalars for record in records)
    manager.close()


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


def _view(member):
    bound = member.bound(observations={"x": "x"}, part=None)
    return AgentView([MemberIndex(0, bound, np.arange(2))], 2)


def test_an_end_that_is_both_is_final():
    flags = np.array([True, False])
    outcome = replace(
        _outcome_with(np.zeros(2)),
        info={"over": flags, "cut": np.array([True, True])},
        terminated=np.zeros(2, np.bool_),
        truncated=np.zeros(2, np.bool_),
        end=np.zeros(2, np.uint8),
    )
    member = rl.GroupMember(agent=ppo(), actions="left", terminated="over", truncated="cut")
    own, ended = _view(member).outcome(outcome)
    assert own.terminated.tolist() == [True, False]
    assert own.truncated.tolist() == [False, True]
    assert own.end.tolist() == [End.TERMINATED | End.TRUNCATED, End.TRUNCATED]
    assert ended.all()


def test_long_decision_takes_the_ends_and_rewards_that_levels_report():
    outcome = replace(_outcome_with(np.zeros(2)), duration=np.array([1, 3]))
    reported = {
        "agents/left/terminated": np.array([True, False]),
        "agents/left/reward": np.array([1.0, 5.0]),
    }
    own, ended = _view(LEFT).outcome(replace(outcome, info=reported))
    assert ended.tolist() == [True, False]
    assert own.reward.tolist() == [1.0, 5.0]


class OneStepEnd:
    """A world of 12 steps in which member `one` ends at its second, and says so then alone."""

    start_numbers, step_numbers = 1, 1
    spaces = EnvironmentSpaces(
        observation=spaces.Dict({"observation": spaces.Box(-9, 9, (2,), np.float32)}),
        action=spaces.Box(-1, 1, (2,), np.float32),
    )

    def start(self, uniform):
        return {"time": np.zeros((len(uniform), 1), np.float32)}

    def observe(self, state):
        return {"observation": np.repeat(state["time"] / 10, 2, axis=1)}

    def step(self, state, action, uniform):
        time = state["time"] + 1
        count, ends = len(time), time[:, 0] == 2
        infos = {"agents/one/terminated": ends, "agents/two/truncated": ends}
        return WorldStep({"time": time}, np.zeros(count), np.zeros(count, np.bool_), infos)


@parameter_class
class OneStepEndParameters:
    level: str = "one_step_end"

    def build(self, *, num_envs):
        return WorldEnvironment(OneStepEnd(), num_envs=num_envs, max_episode_steps=12)


def test_an_end_in_the_middle_of_a_decision_is_the_end_of_the_member():
    """Each decision of the top lasts 4 steps, so each member makes one an episode."""
    group = rl.AgentGroupParameters(
        members=(
            rl.GroupMember(agent=ddpg("one", 9), actions="0", terminated="agents/one/terminated"),
            rl.GroupMember(agent=ddpg("two", 9), actions="1", truncated="agents/two/truncated"),
        )
    )
    goals = rl.GoalSpace(low=(2.0, 2.0), high=(3.0, 3.0), threshold=(0.1, 0.1))
    params = builders.graph(
        rl.LevelParameters(name="top", agent=group),
        rl.LevelParameters(name="low", agent=ddpg("low"), goal_space=goals, horizon=4),
        environment=OneStepEndParameters(),
        num_envs=2,
        training=2 * 48,
    )
    with created(params) as manager:
        manager.run()
        for name, kind in (("one", "terminated"), ("two", "truncated")):
            kept = trajectories_of(manager.graph.agents["top"].members[name])
            ends = kept[f"/{kind}"]
            assert ends.shape == (2, 4), "one decision in each of 4 episodes"
            assert ends.all()
