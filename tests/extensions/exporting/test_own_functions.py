"""Exported functions and classes of users decide as `load(...)` does, or are refused."""

from functools import partial

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.agents import PPOAgent
from coach_rl.agents.stages import Stage, StageKind
from coach_rl.agents.stages.stage import OUTSIDE
from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.random_actions import actions_from_uniform, uniform_size
from coach_rl.extensions.exporting.decisions import Request
from coach_rl.extensions.exporting.numpy_functions import UntraceableError, traced
from coach_rl.extensions.scripts.exported import RandomDecision
from tests.builders import graph
from tests.extensions.exporting.test_export import exported, play_both, run_of, without_chance
from tests.refusals import check_refused
from tests.small_runs import experiment, ppo

pytestmark = pytest.mark.filterwarnings("ignore:.*would learn nothing")
CHOICES = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], np.float32)


class Turned:
    """A function with a table, which is a method."""

    table = CHOICES * 2

    def __call__(self, values):
        number = np.argmax(values[:, :3], axis=1)
        return self.table[number] * np.cos(values[:, :1])


def filled(values):
    made = np.zeros((len(values), 2), np.float32)
    made[:, 0] = values[:, 0] * 2
    made[np.arange(len(values)), 1] += 1
    return made


def by_key(values):
    return {"same": values, "double": values * 2}


def bearing(values):
    return np.arctan2(values[:, 0].astype(np.float64), values[:, 1])


TRACED = {
    "a table and a cosine": Turned(),
    "elements that are set": filled,
    "arrays by key, one of them an argument": by_key,
    "the same for all rows": lambda values: np.full((len(values), 1), 3, np.int64),
    "an angle": bearing,
}


def numbers(rows):
    return (torch.rand((rows, 4), generator=torch.Generator().manual_seed(rows)),)


@pytest.mark.parametrize("name", TRACED)
def test_traced_function_returns_what_the_function_does(name):
    function = TRACED[name]
    made = traced(function, numbers)(*numbers(7))
    wanted = function(numbers(7)[0].numpy())
    for key in wanted if isinstance(wanted, dict) else (None,):
        own, found = (each if key is None else each[key] for each in (wanted, made))
        np.testing.assert_allclose(found.numpy(), own, rtol=0, atol=1e-6)
        assert found.numpy().dtype == own.dtype


REFUSED_FUNCTIONS = {
    "a branch": (lambda values: values if values.sum() > 1 else -values, "branching"),
    "a loop over rows": (lambda values: np.array([each.sum() for each in values]), "."),
    "chance": (lambda values: np.random.random(len(values)), "computes other values"),  # noqa: NPY002
}


@pytest.mark.parametrize("name", REFUSED_FUNCTIONS)
def test_function_that_is_no_graph_is_refused(name):
    function, reason = REFUSED_FUNCTIONS[name]
    with pytest.raises(UntraceableError, match=reason):
        traced(function, numbers)


SPACES = {
    "Discrete": spaces.Discrete(4, start=2),
    "MultiDiscrete": spaces.MultiDiscrete([3, 4], start=[1, 0]),
    "MultiBinary": spaces.MultiBinary(3),
    "Box": spaces.Box(-1, 2, (2, 2)),
    "Box of whole numbers": spaces.Box(-3, 9, (2,), np.int64),
    "Box without some bounds": spaces.Box(
        np.array([-1, -np.inf, 0, -np.inf], np.float32),
        np.array([1, np.inf, np.inf, 5], np.float32),
    ),
    "Dict": spaces.Dict({"kind": spaces.Discrete(3), "move": spaces.Box(-1, 1, (2,))}),
}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", SPACES)
def test_exported_random_actions_are_those_of_the_agent(name, masked):
    space, rng = SPACES[name], np.random.default_rng(0)
    count = sum(sum(choice_sizes(part)) for part in getattr(space, "spaces", {"": space}).values())
    uniform = rng.random((500, uniform_size(space)), np.float32)
    mask = (rng.random((500, count)) < 0.7).astype(np.int8)
    mask[:, ::2] = 1
    has_mask = masked and count > 0
    nothing = torch.zeros(500, dtype=torch.bool)
    made, _ = RandomDecision(space, "mask" if has_mask else None)(
        Request(
            seen={"mask": torch.from_numpy(mask)}, state={}, starts=nothing, episodes=nothing,
            below=nothing, normal=None, uniform=None, random=torch.from_numpy(uniform), over=None,
        )
    )  # fmt: skip
    wanted = actions_from_uniform(space, uniform, mask > 0 if has_mask else None)
    for key in wanted if isinstance(wanted, dict) else (None,):
        own, found = (each if key is None else each[key] for each in (wanted, made))
        np.testing.assert_allclose(found.numpy(), own, rtol=1e-5, atol=1e-5)


def push(observation, space):
    """Towards the middle, along the longer axis, for a while."""
    place = observation["observation"][:, :2]
    along = np.abs(place[:, :1]) > np.abs(place[:, 1:])
    return np.where(along, [[1.0, 0.0]], [[0.0, 1.0]]) * -np.sign(place) * space.high


def leap(observation, space):
    if observation["observation"][0, 0] > 0:
        return np.ones((len(observation["observation"]), 2), np.float32)
    return np.zeros((len(observation["observation"]), 2), np.float32)


def at_the_left(after):
    return after["observation"][:, 0] < 0


def drawn(observation, goal, uniform):
    return 1 + (5 * uniform + goal.argmax(axis=1)).astype(int) % 7


def options(low=push, **given):
    """A level that chooses among three scripted options."""
    ends = given.pop("ends", ())
    levels = (
        rl.LevelParameters(name="top", agent=ppo(rollout=16)),
        rl.LevelParameters(
            name="low",
            agent=rl.ScriptedAgentParameters(policy=low),
            goal_space=rl.OptionSpace(count=3, ends=ends),
            horizon=7,
            **given,
        ),
    )
    return rl.GraphManager(graph(*levels, num_envs=3, training=120))


OPTIONS = {
    "a script": {},
    "ends of their own": {"ends": (None, at_the_left, at_the_left)},
    "a horizon that is drawn": {"horizon_of": drawn},
}


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", OPTIONS)
def test_exported_options_decide_as_load_does(name, tmp_path, monkeypatch):
    run = run_of(options(**OPTIONS[name]), tmp_path)
    policy = exported(run, tmp_path / "policy.zip")
    without_chance(policy, monkeypatch)
    play_both(run, policy)


def by_the_first(observation, goal, uniform):
    return np.full(len(goal), 3 if goal[0, 0] > 0 else 4)


def test_exported_random_policy_repeats_with_its_seed(tmp_path):
    run = run_of(experiment(rl.UniformAgentParameters()), tmp_path)
    policy = exported(run, tmp_path / "policy.zip")
    seen = {
        key: np.zeros((4, *each["shape"]), each["dtype"])
        for key, each in policy.spaces["observation"].items()
    }
    policy.reset(seed=3)
    first, second = policy.act(seen), policy.act(seen)
    policy.reset(seed=3)
    assert np.array_equal(policy.act(seen), first)
    assert not np.array_equal(first, second)
    assert np.unique(first).size == first.size  # rows draw for themselves


class Pictured(PPOAgent):
    """Changes nothing of acting."""

    def __init__(self, params, context):
        super().__init__(params, context)
        self.shade = 3

    def picture(self, row_state, row, observation):
        return np.full((8, 8, 3), self.shade, np.uint8)

    def train(self, clock):
        return super().train(clock)


class Bold(PPOAgent):
    def choose(self, row_state, request, clock):
        return super().choose(row_state, request, clock)


class Replaced(PPOAgent):
    def __init__(self, params, context):
        super().__init__(params, context)
        policy = self.policy
        self.policy = lambda observation: policy(observation) + 0.5


class Halved(Stage):
    def leave(self, row_state, rows, action, observation):
        return action / 2


class Staged(PPOAgent):
    STAGES = (StageKind(order=OUTSIDE, build=lambda _: Halved()),)


KINDS = {"Pictured": Pictured, "Bold": Bold, "Replaced": Replaced, "Staged": Staged}


@parameter_class
class OwnParameters(rl.PPOAgentParameters):
    """PPO by a class of a user's."""

    kind: str

    def build(self, context):
        return KINDS[self.kind](self, context)


def own(kind):
    return experiment(OwnParameters(kind=kind, **{k: v for k, v in vars(ppo()).items()}))


def test_exported_class_that_acts_as_its_base_decides_as_load_does(tmp_path):
    run = run_of(own("Pictured"), tmp_path)
    play_both(run, exported(run, tmp_path / "policy.zip"), steps=40)


REFUSED = {
    "a script that branches": (
        partial(options, low=leap),
        "agent 'script' cannot be exported: its script",
    ),
    "a horizon that branches": (
        partial(options, horizon_of=by_the_first),
        "level 'low' cannot be exported: its horizon_of, by_the_first, is no graph (",
    ),
    **{
        kind: (partial(own, kind), f"agent 'agent' cannot be exported: {what}")
        for kind, what in (
            ("Bold", "its Bold has a choose of its own"),
            ("Replaced", "its Replaced acts in another way than its base"),
            ("Staged", "its stage Halved is not known"),
        )
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_exported_code_that_is_no_graph_or_acts_otherwise_is_named(name, tmp_path):
    make, message = REFUSED[name]
    run = run_of(make(), tmp_path)
    check_refused(lambda: rl.export(run, tmp_path / "a.zip"), rl.ConfigurationError, message)
