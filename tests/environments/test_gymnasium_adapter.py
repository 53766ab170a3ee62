"""The Gymnasium adapter equals gymnasium.make, whatever the spaces, wrappers and processes."""

import os
import subprocess
import sys

import gymnasium
import little_environments
import numpy as np
import pytest
from little_environments import TAXI

import coach_rl as rl
from coach_rl.core.errors import RunError
from coach_rl.core.records import End
from coach_rl.environments.gymnasium.layout import batched_infos, flat_info
from tests.environments.walks import answer_to, random_actions


def build(level, num_envs=1, **options):
    return rl.GymnasiumParameters(level=level, **options).build(num_envs=num_envs)


@pytest.mark.parametrize(
    ("level", "options"),
    [
        ("CartPole-v1", {}),
        ("Pendulum-v1", {"max_episode_steps": 17}),
        ("Acrobot-v1", {"max_episode_steps": 23}),
        (TAXI, {"max_episode_steps": 19}),
        ("FrozenLake-v1", {}),
        ("MountainCarContinuous-v0", {"max_episode_steps": 9}),
    ],
)
def test_adapter_equals_gymnasium(level, options):
    rows, steps = 3, 60
    environment = build(level, rows, **options)
    singles = [gymnasium.make(level, **options) for _ in range(rows)]
    response = environment.reset(seed=11)
    for row, single in enumerate(singles):
        np.testing.assert_array_equal(
            response.observation["observation"][row], single.reset(seed=11 + row)[0]
        )
    ends = 0
    for action in random_actions(environment, steps):
        answer = answer_to(environment, action)
        for row, single in enumerate(singles):
            seen, reward, terminated, truncated, info = single.step(action[row])
            np.testing.assert_array_equal(answer.observation["observation"][row], seen)
            assert answer.reward[row] == reward
            assert answer.terminated[row] == terminated
            assert answer.truncated[row] == truncated
            bits = terminated * End.TERMINATED | truncated * End.TRUNCATED
            assert answer.end[row] == bits
            for name, value in info.items():
                np.testing.assert_array_equal(answer.info[name][row], value)
            if terminated or truncated:
                ends += 1
                seen = single.reset()[0]
            np.testing.assert_array_equal(answer.first_observation["observation"][row], seen)
    assert ends > 2


def test_nested_dict_keys_become_paths():
    environment = build("little_environments:Walk", 2)
    shown = environment.spaces.observation
    assert {key: (space.shape, space.dtype) for key, space in shown.spaces.items()} == {
        "camera/left": ((2, 2), np.uint8),
        "camera/on": ((2,), np.int8),
        "counts": ((2,), np.int64),
        "mode": ((), np.int64),
        "place": ((2,), np.float32),
    }
    taken = environment.spaces.action
    assert list(taken.spaces) == ["arm/grip", "arm/joints", "wheel"]
    single = little_environments.Walk()
    environment.reset(seed=4)
    single.reset(seed=5)
    for action in random_actions(environment, 8):
        answer = answer_to(environment, action)
        seen, reward, terminated, truncated, info = single.step(
            {
                "wheel": action["wheel"][1],
                "arm": {"grip": action["arm/grip"][1], "joints": action["arm/joints"][1]},
            }
        )
        observation = answer.observation
        np.testing.assert_array_equal(observation["camera/left"][1], seen["camera"]["left"])
        np.testing.assert_array_equal(observation["camera/on"][1], seen["camera"]["on"])
        np.testing.assert_array_equal(observation["counts"][1], seen["counts"])
        np.testing.assert_array_equal(observation["place"][1], seen["place"].astype(np.float32))
        assert observation["mode"][1] == seen["mode"]
        assert answer.reward[1] == reward
        assert answer.info["time"][1] == info["time"]
        assert answer.info["name"][1] == "walk"
        np.testing.assert_array_equal(answer.info["deep/push"][1], info["deep"]["push"])
        assert "object" not in answer.info
        if terminated or truncated:
            single.reset()


def test_reset_returns_its_info():
    answer = build("little_environments:Walk", 2).reset(seed=0)
    np.testing.assert_allclose(answer.info["start"], answer.observation["place"][:, 0])


def test_wrappers_apply_in_order():
    add = ("little_environments:AddToReward", {"amount": 0.5})
    rewards = []
    for wrappers in ([add, "little_environments:Double"], ["little_environments:Double", add]):
        environment = build("little_environments:Plain", wrappers=tuple(wrappers))
        environment.reset(seed=0)
        rewards.append(answer_to(environment, np.array([0])).reward[0])
    assert rewards == [(1 + 0.5) * 2, 1 * 2 + 0.5]


def test_infos_with_an_array_form():
    flat = flat_info({"a": {"b": 1, "c": {"d": np.ones(2)}}, "e": object(), "f": [1], "g": "x"})
    assert list(flat) == ["a/b", "a/c/d", "g"]
    assert batched_infos([{}, {}]) == {}
    assert batched_infos([{"x": np.ones(2)}, {"x": np.ones(3)}]) == {}
    batch = batched_infos([{"x": 1.5}, {}, {"x": 2}])
    assert batch["x"].tolist() == [1.5, 0, 2]
    assert batch["_x"].tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("level", "limit", "length"),
    [
        ("LittlePlain-v0", None, 10),  # its own
        ("little_environments:LittlePlain-v0", None, 10),
        ("LittlePlain-v0", 4, 4),
        ("little_environments:Plain", 4, 4),
        ("gymnasium.envs.classic_control:PendulumEnv", None, None),
        ("Pendulum-v1", None, 200),
        ("Pendulum-v1", -1, None),
    ],
)
def test_time_limits(level, limit, length):
    environment = build(level, max_episode_steps=limit)
    environment.reset(seed=0)
    space, found = environment.spaces.action, None
    for step in range(1, 260):
        if answer_to(environment, np.zeros((1, *space.shape), space.dtype)).end[0]:
            found = step
            break
    assert found == length


@pytest.mark.parametrize("vectorization", ["sync", "subprocess"])
def test_render_needs_rgb_array(vectorization):
    options = {"vectorization": vectorization, "start_method": "fork"}
    environment = build(
        "little_environments:Plain", 2, kwargs={"render_mode": "rgb_array"}, **options
    )
    environment.reset(seed=0)
    answer_to(environment, np.array([0]), np.array([1]))
    assert environment.render(1).tolist() == np.full((4, 5, 3), 1).tolist()
    assert environment.render().max() == 0
    environment.close()
    blind = build("little_environments:Plain", **options)
    blind.reset(seed=0)
    with pytest.raises(rl.ConfigurationError):
        blind.render()
    blind.close()


def test_closed_environment_error():
    environment = build("CartPole-v1")
    environment.close()
    for call in (
        environment.reset,
        environment.state_dict,
        environment.render,
        lambda: environment.send(np.array([0])),
        lambda: environment.load_state_dict({}),
    ):
        with pytest.raises(RunError):
            call()


def test_parameters_copy_their_arguments():
    size = {"stack_size": 2}
    description = rl.GymnasiumParameters(
        level="FrozenLake-v1",
        kwargs={"desc": ["SF", "FG"], "is_slippery": False},
        wrappers=[("gymnasium.wrappers:FrameStackObservation", size)],
    )
    same = rl.GymnasiumParameters(
        level="FrozenLake-v1",
        kwargs=dict(description.kwargs),
        wrappers=description.wrappers,
    )
    size["stack_size"] = 3
    description.kwargs["desc"].append("HH")
    with pytest.raises(TypeError):
        description.kwargs["is_slippery"] = True
    with pytest.raises(TypeError):
        description.wrappers[0][1]["stack_size"] = 4
    assert description == same
    assert hash(description) == hash(same)
    assert description.build(num_envs=1).reset(seed=0).observation["observation"].shape == (1, 2)


@pytest.mark.parametrize("level", ["LittleSettings-v0", "little_environments:KeepsSettings"])
def test_environments_get_plain_dicts_and_lists(level):
    build(level, kwargs={"settings": {"sizes": [1, {"deep": (2,)}]}}).close()
    made_with = little_environments.KeepsSettings.last
    assert made_with == {"sizes": [1, {"deep": (2,)}]}
    assert [type(part) for part in (made_with, made_with["sizes"][1])] == [dict, dict]


def test_render_without_display_prints_nothing(tmp_path):
    program = """
from coach_rl.environments.gymnasium import GymnasiumParameters
environment = GymnasiumParameters(level="CartPole-v1").drawable().build(num_envs=1)
environment.reset(0)
assert environment.render(0).shape == (400, 600, 3)
"""
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},  # no display, no runtime folder
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stderr == ""
