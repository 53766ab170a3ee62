"""Environments of packages that need not be there: Gymnasium-Robotics, Box2D and POPGym."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.core.records import End
from coach_rl.environments import make
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.extensions.testing import ENVIRONMENT_CHECKS, Trial

FETCH_REACH = "gymnasium_robotics:FetchReach-v4"


def needs(module, extra):
    # Looked for, not imported: Box2D crashes where warnings are errors, see `recipe`.
    return pytest.mark.skipif(
        importlib.util.find_spec(module) is None,
        reason=f"{module} is not installed; it comes with the extra {extra}",
    )


needs_robotics = needs("gymnasium_robotics", "robotics")
needs_box2d = needs("Box2D", "box2d")
needs_popgym = needs("popgym", "popgym")


@needs_robotics
def test_fetch_reach_observes_goals():
    environment = make(FETCH_REACH, num_envs=2)
    shown = environment.spaces.observation
    assert {key: space.shape for key, space in shown.spaces.items()} == {
        "achieved_goal": (3,),
        "desired_goal": (3,),
        "observation": (10,),
    }
    assert environment.spaces.action == spaces.Box(-1, 1, (4,), np.float32)
    seen = environment.reset(seed=0).observation
    successes, rng = [], np.random.default_rng(0)
    for step in range(1, 51):
        # Steer the gripper of row 0 to its goal, and row 1 anywhere.
        push = np.zeros((2, 4))
        push[0, :3] = 10 * (seen["desired_goal"] - seen["achieved_goal"])[0]
        push[1] = rng.uniform(-1, 1, 4)
        environment.send(np.clip(push, -1, 1).astype(np.float32))
        answer = environment.recv()
        seen = answer.observation
        distance = np.linalg.norm(seen["achieved_goal"] - seen["desired_goal"], axis=1)
        np.testing.assert_array_equal(answer.info["is_success"], distance <= 0.05)
        np.testing.assert_array_equal(answer.reward, np.where(distance <= 0.05, 0, -1))
        assert (answer.end == (End.TRUNCATED if step == 50 else 0)).all()
        successes.append(answer.info["is_success"].tolist())
    assert successes[-1] == [1, 0]
    environment.close()


@needs_box2d
def test_lunar_lander_lands_or_crashes():
    environment = make("LunarLander-v3", num_envs=2)
    assert environment.spaces.action == spaces.Discrete(4)
    assert environment.reset(seed=0).observation["observation"].shape == (2, 8)
    ends = np.zeros(2, np.int64)
    for _ in range(150):  # nobody burns fuel
        environment.send(np.zeros(2, np.int64))
        ends |= environment.recv().end
    assert ends.tolist() == [End.TERMINATED] * 2
    environment.close()


@needs_popgym
@pytest.mark.parametrize(
    ("level", "remembered"),
    [("popgym:popgym-RepeatFirstEasy-v0", 0), ("popgym:popgym-RepeatPreviousEasy-v0", -4)],
)
def test_popgym_repeating_the_right_card_returns_one(level, remembered):
    environment = make(level, num_envs=2)
    shown = [environment.reset(seed=0).observation["observation"]]
    total = np.zeros(2)
    for step in range(1, 52):
        environment.send(shown[remembered if step >= 4 else 0])
        answer = environment.recv()
        shown.append(answer.observation["observation"])
        total += answer.reward
    assert (answer.end == End.TERMINATED).all()
    np.testing.assert_allclose(total, 1)
    environment.close()


@needs_popgym
def test_popgym_cart_pole_shows_positions_alone():
    shown, full = (
        make(level, num_envs=3)
        for level in ("popgym:popgym-PositionOnlyCartPoleEasy-v0", "CartPole-v1")
    )
    one, other = shown.reset(seed=0), full.reset(seed=0)
    for _ in range(5):
        np.testing.assert_array_equal(
            one.observation["observation"], other.observation["observation"][:, [0, 2]]
        )
        for environment in (shown, full):
            environment.send(np.array([0, 1, 0]))
        one, other = shown.recv(), full.recv()
    np.testing.assert_allclose(one.reward, 1 / 200)


@pytest.mark.drawn(one_of=3, each="check")
@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "level",
    [
        pytest.param(FETCH_REACH, marks=needs_robotics),
        pytest.param("LunarLander-v3", marks=needs_box2d),
        pytest.param("popgym:popgym-RepeatPreviousEasy-v0", marks=needs_popgym),
    ],
)
def test_contract(level, check):
    description = GymnasiumParameters(level=level, max_episode_steps=6)
    check(Trial(build=lambda num_envs: description.build(num_envs=num_envs), steps=14))


@needs_box2d
def test_box2d_import_with_warnings_as_errors():
    program = (
        "from coach_rl.environments import make; "
        "make('LunarLander-v3').reset(seed=0); print('made')"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True
    )
    assert ran.stdout == "made\n", ran.stderr


@pytest.fixture
def without(monkeypatch):
    """Make modules look absent."""

    def hide(*hidden):
        for module in hidden:
            for loaded in [name for name in sys.modules if name.startswith(module)]:
                monkeypatch.delitem(sys.modules, loaded)
            monkeypatch.setitem(sys.modules, module, None)

    return hide


@pytest.mark.parametrize(
    "build", [make, lambda level: GymnasiumParameters(level=level).build(num_envs=1)]
)
def test_missing_robotics_error_names_extra(without, build):
    without("gymnasium_robotics")
    with pytest.raises(ConfigurationError) as caught:
        build(FETCH_REACH)
    assert str(caught.value) == (
        "the environment's module 'gymnasium_robotics' cannot be imported: gymnasium_robotics is "
        'not installed; `pip install -e ".[robotics]"` in the checkout installs it'
    )


@pytest.mark.parametrize("level", ["LunarLander-v3", "BipedalWalker-v3"])
def test_missing_box2d_error_names_extra(without, monkeypatch, level):
    for loaded in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, loaded)
    without("Box2D")
    with pytest.raises(ConfigurationError) as caught:
        make(level)
    assert str(caught.value) == (
        f"'{level}' cannot be made: Box2D is not installed; "
        '`pip install -e ".[box2d]"` in the checkout installs it'
    )


def test_other_missing_package_error_names_it():
    with pytest.raises(ConfigurationError) as caught:
        make("no_such_module:Env-v0")
    assert "in the checkout" not in str(caught.value)


@pytest.mark.parametrize(
    "build", [make, lambda level: GymnasiumParameters(level=level).build(num_envs=1)]
)
def test_robotics_bare_name_error_names_module(build):
    with pytest.raises(UnknownNameError):
        build("FetchReech-v4")
