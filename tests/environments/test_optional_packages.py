"""Environments of packages that need not be there: Gymnasium-Robotics, Box2D and POPGym."""

import importlib.util
import subprocess
import sys

import pytest

from coach_rl.core.errors import ConfigurationError, UnknownNameError
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


@pytest.mark.parametrize(
    "build", [make, lambda level: GymnasiumParameters(level=level).build(num_envs=1)]
)
def test_robotics_bare_name_error_names_module(build):
    with pytest.raises(UnknownNameError):
        build("FetchReech-v4")
