"""Loaded and exported groups are given whose own episode is over."""

import zipfile
from copy import copy

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils import seeding

import coach_rl as rl
from coach_rl.extensions.exporting.policy_folder import write_policy
from tests.extensions.exporting.test_export import exported, run_of
from tests.random_graphs import ppo
from tests.refusals import check_refused
from tests.small_runs import experiment

pettingzoo = pytest.importorskip("pettingzoo")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra `export`")
pytestmark = pytest.mark.filterwarnings("ignore:.*would learn nothing")

SEEN = {"observation": np.float32([0.5, -0.5, 0.1])}


def group(arbiter, *, ends=True):
    return rl.AgentGroupParameters(
        members=tuple(
            rl.GroupMember(
                agent=ppo(name),
                actions=("0",) if name == "a" else ("1",),
                terminated=f"agents/{name}/terminated" if ends else None,
            )
            for name in "ab"
        ),
        arbiter=arbiter,
    )


AGENTS = {
    "turns": group(rl.Turns()),
    "selected": group(rl.SelectedTurns(agent=ppo("chooser"), every=9)),
    "shown": group(rl.EnvironmentTurns()),
    "all": group(None),
    "no ends": group(rl.Turns(), ends=False),
    "alone": ppo(),
}


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """A function from an agent's name to its run, and the loaded and the exported policy of it."""
    runs = {}

    def made(name):
        if name not in runs:
            folder = tmp_path_factory.mktemp("runs")
            world = rl.GymnasiumParameters(
                level="tests.extensions.exporting.composed_world:Composed",
                kwargs={"kind": "Box", "members": 2, "turns": name == "shown"},
            )
            runs[name] = run_of(experiment(AGENTS[name], world, training=40), folder)
            runs[name, "archive"] = exported(runs[name], folder / "policy.zip")
        runs[name, "archive"].reset()
        return {"load": rl.load(runs[name]), "archive": copy(runs[name, "archive"])}

    return made


def is_idle(action):
    """Which of the two parts hold the placeholder, 0."""
    return (np.asarray(action) == 0).tolist()


@pytest.mark.parametrize("way", ["load", "archive"])
@pytest.mark.parametrize("name", ["turns", "selected"])
def test_act_of_an_arbiter_that_was_never_given_ends_is_refused_at_the_first_call(
    name, way, policies
):
    policy = policies(name)[way]
    kind = rl.ConfigurationError if way == "load" else ValueError
    message = "level 'main' ... over={'a': False, 'b': False}"
    check_refused(lambda: policy.act(SEEN), kind, message)
    policy.act(SEEN, over={})
    policy.act(SEEN)
    policy.reset()
    policy.act(SEEN)


@pytest.mark.parametrize("way", ["load", "archive"])
@pytest.mark.parametrize("name", ["shown", "all", "no ends", "alone"])
def test_act_of_groups_whose_turns_need_no_ends_is_not_refused(name, way, policies):
    policy = policies(name)[way]
    turns = {"turn/a": 1, "turn/b": 0} if name == "shown" else {}
    policy.act({**SEEN, **turns})
    policy.act({**SEEN, **turns}, over={})


@pytest.mark.parametrize("way", ["load", "archive"])
def test_members_stay_over_until_reset(way, policies):
    policy, (a, b) = policies("turns")[way], ([False, True], [True, False])
    given = [{}, {"a": True}, None, {"a": False}, {"b": False}, {"b": True}, None]
    acted = [is_idle(policy.act(SEEN, over=over)) for over in given]
    assert acted == [a, b, b, b, b, [True, True], [True, True]]
    policy.reset()
    assert [is_idle(policy.act(SEEN)) for _ in range(3)] == [a, b, a]


@pytest.mark.parametrize("way", ["load", "archive"])
def test_members_that_all_act_leave_placeholders_where_they_are_over(way, policies):
    policy = policies("all")[way]
    seen = {"observation": np.stack([SEEN["observation"]] * 3)}
    assert not any(map(any, is_idle(policy.act(seen))))
    found = is_idle(policy.act(seen, over={"b": np.array([False, True, False])}))
    assert found == [[False, False], [False, True], [False, False]]
    policy.reset(np.array([1]))
    assert not any(map(any, is_idle(policy.act(seen))))


@pytest.mark.parametrize("way", ["load", "archive"])
@pytest.mark.parametrize(
    ("name", "over", "message"),
    [
        ("turns", {"c": True}, "'c'"),
        ("turns", {1: True}, "'1'"),
        ("turns", {"a": np.zeros(2, np.bool_)}, "'a' ... bool (2,)"),
        ("turns", {"a": 0.5}, "'a' ... float64 ()"),
        ("turns", [True, False], "over is a dict by members' names, got list"),
        ("alone", {"a": True}, "'a'"),
    ],
)
def test_over_that_names_no_member_or_is_no_bool_is_refused(name, over, message, way, policies):
    policy, kind = policies(name)[way], rl.CoachError if way == "load" else ValueError
    check_refused(lambda: policy.act(SEEN, over=over), kind, message)


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(("name", "needs"), [("turns", True), ("shown", False), ("alone", False)])
def test_pages_show_over_where_a_policy_needs_it(name, needs, tmp_path, policies):
    run = policies(name)["load"].run
    write_policy(run, tmp_path / "card", episodes=rl.EnvironmentEpisodes(1))
    with zipfile.ZipFile(rl.export(run, tmp_path / "policy.zip")) as archive:
        pages = [archive.read("README.md").decode(), (tmp_path / "card/README.md").read_text()]
    for page, policy in zip(pages, ("policy", "agent"), strict=True):
        assert ("over = {'a': False, 'b': False}  # True where" in page) is needs
        assert (f"action = {policy}.act(observation, over=over)\n" in page) is needs
        assert (f"action = {policy}.act(observation)\n" in page) is not needs


def test_single_graph_has_an_input_of_whose_episode_is_over(tmp_path, policies):
    run = policies("turns")["load"].run
    session = onnxruntime.InferenceSession(rl.export(run, tmp_path / "policy.onnx"))
    inputs = {each.name: each.shape[1:] for each in session.get_inputs()}
    assert inputs["members_over"] == [2]
    rows = 2
    given = {
        "observation": np.stack([SEEN["observation"]] * rows),
        "members_over": np.array([[False, False], [True, False]]),
        "episodes": np.ones(rows, np.bool_),
        "starts": np.ones(rows, np.bool_),
    }
    states = {name: shape for name, shape in inputs.items() if name.startswith("state/")}
    given |= {name: np.zeros((rows, *shape), np.int64) for name, shape in states.items()}
    (action,) = session.run(["action"], {name: given[name] for name in inputs})
    assert is_idle(action) == [[False, True], [True, False]]


class Players(pettingzoo.ParallelEnv):
    """Two agents of which the first leaves after three steps, with given names."""

    def __init__(self, names=("0", "1")):
        self.metadata = {"name": "players"}
        self.possible_agents, self.np_random = list(names), seeding.np_random(0)[0]

    def observation_space(self, agent):
        return spaces.Box(-1, 1, (2,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(3, start=1, dtype=np.int32)

    def reset(self, seed=None, options=None):
        self.agents, self.time = list(self.possible_agents), 0
        seen = {name: np.zeros(2, np.float32) for name in self.agents}
        return seen, {name: {} for name in self.agents}

    def step(self, actions):
        self.time += 1
        acted, first = self.agents, self.possible_agents[0]
        ends = {name: self.time >= (3 if name == first else 9) for name in acted}
        self.agents = [name for name in acted if not ends[name]]
        seen = {name: np.full(2, self.time / 9, np.float32) for name in acted}
        rewards, cut = dict.fromkeys(acted, 0.0), dict.fromkeys(acted, False)
        return seen, rewards, ends, cut, {name: {} for name in acted}


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("names", [("0", "1"), ("red/0", "red/1"), ("red", "blue/0")])
def test_actions_of_a_pettingzoo_group_are_by_the_names_of_its_agents(names, tmp_path):
    world = rl.PettingZooParameters(level=f"{__name__}:Players", kwargs={"names": names})
    members = tuple(rl.GroupMember.of(ppo(name)) for name in names)
    agent = rl.AgentGroupParameters(members=members)
    run = run_of(experiment(agent, world, training=40), tmp_path)
    env, actions = Players(names), []
    whole = spaces.Dict({name: env.action_space(name) for name in names})
    for policy in (rl.load(run), exported(run, tmp_path / "policy.zip")):
        observations, _ = env.reset()
        for _ in range(5):
            over = {name: name not in env.agents for name in names}
            action = policy.act(observations, over=over)
            assert whole.contains(action), action
            actions.append(action)
            found = env.step({name: action[name] for name in env.agents})[0]
            observations = observations | found
    assert actions[:5] == actions[5:]
    assert all(action[names[0]] == 2 for action in actions[3:5])  # the placeholder
