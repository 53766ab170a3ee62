"""Actions repeated within a step: rewards, ends, time limits, workers, saving and frames."""

from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.errors import EnvironmentFault
from coach_rl.environments.faults import FaultParameters
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.extensions.testing.allowed_actions import has_masks, with_allowed_actions
from tests.environments.walks import answer_to, assert_continues, assert_same_walks, walk

STRICT = FaultParameters(on_crash="stop")


def build(level="Pendulum-v1", repeat=3, num_envs=2, **options):
    return GymnasiumParameters(level=level, action_repeat=repeat, **options).build(
        num_envs=num_envs
    )


def test_step_sums_rewards_of_the_same_action():
    repeated, single = build(num_envs=1), gymnasium.make("Pendulum-v1")
    repeated.reset(seed=4)
    single.reset(seed=4)
    for value in (0.5, -1.5, 2.0):
        action = np.float32([value])
        answer = answer_to(repeated, action[None])
        steps = [single.step(action) for _ in range(3)]
        assert answer.reward[0] == pytest.approx(sum(step[1] for step in steps))
        np.testing.assert_allclose(answer.observation["observation"][0], steps[-1][0])
        assert answer.duration.tolist() == [1]


@pytest.mark.parametrize(("repeat", "decisions"), [(1, 20), (3, 7), (4, 5), (30, 1)])
def test_time_limit_counts_steps_of_the_environment(repeat, decisions):
    environment = build(repeat=repeat, num_envs=1, max_episode_steps=20)
    environment.reset(seed=0)
    answers = walk(environment, decisions)
    assert [answer.truncated[0] for answer in answers] == [False] * (decisions - 1) + [True]


def test_episode_that_ends_stops_the_repetition():
    environment = build("CartPole-v1", repeat=100, num_envs=1)
    environment.reset(seed=0)
    (answer,) = walk(environment, 1)
    assert answer.terminated[0]
    assert 1 < answer.reward[0] < 100  # one per step of the environment


def test_wrappers_see_one_observation_per_step():
    stack = ("gymnasium.wrappers:FrameStackObservation", {"stack_size": 2})
    environment = build(num_envs=1, wrappers=(stack,))
    start = environment.reset(seed=0).observation["observation"][0, -1]
    (answer,) = walk(environment, 1)
    np.testing.assert_array_equal(answer.observation["observation"][0, 0], start)


def test_workers_give_the_same_answers():
    here, there = (
        build("CartPole-v1", vectorization=kind, **more)
        for kind, more in (("sync", {}), ("subprocess", {"processes": 2, "start_method": "fork"}))
    )
    for environment in (here, there):
        environment.reset(seed=5)
    assert_same_walks(here, there, 40)
    there.close()


def test_saved_environment_continues_identically():
    assert_continues(build("CartPole-v1"), build("CartPole-v1"), before=37, after=30)
    assert GymnasiumParameters(level="CartPole-v1", action_repeat=3).obstacle_to_restoring() is None


def test_frames_show_the_end_of_a_step():
    pytest.importorskip("pygame")
    environment = build("CartPole-v1", num_envs=1, kwargs={"render_mode": "rgb_array"})
    environment.reset(seed=0)
    before = environment.render(0)
    walk(environment, 1)
    assert (environment.render(0) != before).any()


class Reports(gymnasium.Env):
    """Eight steps that report what happens in them, and change their action in place."""

    observation_space = spaces.Box(-9, 9, (1,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.place = 0, np.zeros(1, np.float32)
        return self.place, {}

    def step(self, action):
        self.time += 1
        reward = float(action[0])
        action *= 0
        self.place += 1
        infos = {
            2: {"is_success": True, "gate": 7.0, "deep": {"place": self.place}},
            3: {"is_success": False, "gate": 8.0},
        }
        own = {"reward": float(self.time), "terminated": self.time == 6}
        info = {**infos.get(self.time, {}), "agents": {"a": own}, "time": self.time}
        return self.place, reward, False, self.time == 8, info


@pytest.mark.parametrize("repeat", [1, 2, 4, 8])
def test_infos_of_repeated_steps_are_joined(repeat):
    environment = build("test_action_repeat:Reports", repeat=repeat, num_envs=1)
    environment.reset(seed=0)
    infos = []
    for step in range(8 // repeat):
        answer = answer_to(environment, np.full((1, 1), 0.5, np.float32))
        assert answer.reward[0] == 0.5 * repeat, "the action was changed within"
        last = range(1 + step * repeat, 1 + (step + 1) * repeat)
        infos.append({name: values[0] for name, values in answer.info.items()})
        assert infos[-1]["time"] == last[-1]
        assert infos[-1]["agents/a/reward"] == sum(last)
        assert infos[-1]["agents/a/terminated"] == (6 in last)
    assert [bool(info.get("is_success")) for info in infos].count(True) == 1
    gates = [info["gate"] for info in infos if "gate" in info]
    assert gates == ([7.0, 8.0] if repeat < 3 else [8.0])
    assert [info["deep/place"][0] for info in infos if "deep/place" in info] == [2.0]


class Rooms(gymnasium.Env):
    """Closes a door that is passed twice; raises where a closed one is taken."""

    spaces_of_actions: ClassVar = {
        "one": spaces.Discrete(3, start=5),
        "two": spaces.MultiDiscrete([2, 3]),
        "nested": spaces.Dict(
            {"door": spaces.Tuple([spaces.Discrete(3)]), "lamp": spaces.MultiBinary(1)}
        ),
        "numbers": spaces.Box(-1, 1, (2,), np.float32),
    }

    def __init__(self, kind):
        self.kind, self.action_space = kind, self.spaces_of_actions[kind]
        self.sizes = choice_sizes(self.action_space)
        mask = spaces.Box(0, 1, (sum(self.sizes) or 3,), np.int8)
        self.observation_space = spaces.Dict({"action_mask": mask, "time": spaces.Discrete(99)})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.mask = 0, np.ones(sum(self.sizes) or 3, np.int8)
        return {"action_mask": self.mask, "time": 0}, {}

    def step(self, action):
        self.time += 1
        entries = {
            "one": lambda: [action - 5],
            "two": lambda: [action[0], 2 + action[1]],
            "nested": lambda: [action["door"][0], 3 + action["lamp"][0]],
            "numbers": lambda: [],
        }[self.kind]()
        assert all(self.mask[entry] for entry in entries), "a closed door"
        if entries and self.time % 2 == 0:
            self.mask[:] = 1
            self.mask[entries[-1]] = 0
        return {"action_mask": self.mask, "time": self.time}, 1.0, False, self.time >= 30, {}


@pytest.mark.parametrize("kind", Rooms.spaces_of_actions)
@pytest.mark.parametrize("repeat", [2, 3, 9])
def test_repetition_ends_where_the_mask_forbids_the_action(kind, repeat):
    environment = build(
        "test_action_repeat:Rooms", repeat=repeat, kwargs={"kind": kind}, faults=STRICT
    )
    assert (kind == "numbers") or has_masks(environment)
    answer = environment.reset(seed=0)
    times = []
    for answer in walk(with_allowed_actions(environment), 6):
        times.append(int(answer.observation["time"][0]))
    assert np.diff(times).max() <= (repeat if kind == "numbers" else 2)


class Malformed(Reports):
    """Gives another value at a place of the five-tuple."""

    def __init__(self, place, value):
        self.changed = place, value

    def step(self, action):
        answer = [np.zeros(1, np.float32), 1.0, False, False, {}]
        answer[self.changed[0]] = self.changed[1]
        return tuple(answer)


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, None), (1, "1"), (1, None), (1, 10**400), (2, "no"), (3, 2), (4, None)],
)
def test_malformed_inner_step_is_malformed(place, value):
    environment = build(
        "test_action_repeat:Malformed", num_envs=1, kwargs={"place": place, "value": value}
    )
    environment.reset(seed=0)
    with pytest.raises(EnvironmentFault, match=r"failed in step: .* must be"):
        walk(environment, 1)
