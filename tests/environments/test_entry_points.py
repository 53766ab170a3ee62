"""What levels and wrappers may name: nothing is called that doesn't say it makes environments."""

import sys

import pytest

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.environments.gymnasium import GymnasiumParameters, recipe

CODE = """
import gymnasium
from gymnasium.envs.classic_control import PendulumEnv

class Env:                                          # of that name, but not derived from it
    def __init__(self, path):
        open(path, "w").close()

def unsaid(path):
    open(path, "w").close()

def something_else(path) -> str:
    open(path, "w").close()

def unknown(path) -> "Nowhere":
    open(path, "w").close()

def said(g=10.0) -> gymnasium.Env:
    return PendulumEnv(g=g)

def said_in_quotes(env: "gymnasium.Env", by: float = 1.0) -> "gymnasium.Env[object, object]":
    return gymnasium.wrappers.TransformReward(env, lambda reward: by * reward)

maker = PendulumEnv().reset
"""


@pytest.fixture(autouse=True)
def module_of_mine(tmp_path, monkeypatch):
    (tmp_path / "makers_of_mine.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)


def refused(tmp_path, **options):
    """The message of a level that would write the file `told`, had it been called."""
    with pytest.raises(ConfigurationError) as caught:
        GymnasiumParameters(**options).build(num_envs=1)
    assert not (tmp_path / "told").exists()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["CliffWalking", "PendulumEnv", "CartPole-v1x"])
def test_unknown_name_in_own_module_suggests_own_names(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        GymnasiumParameters(level=f"makers_of_mine:{name}x").build(num_envs=1)
    assert caught.value.allowed == []
    with pytest.raises(UnknownNameError) as caught:
        GymnasiumParameters(level="CartPole-v1", wrappers=(f"makers_of_mine:{name}x",)).build(
            num_envs=1
        )
    assert set(caught.value.allowed) == {
        f"makers_of_mine:{own}"
        for own in ("Env", "unsaid", "something_else", "unknown", "said", "said_in_quotes")
    }


def test_import_error_names_reason_and_line(tmp_path):
    (tmp_path / "failing_of_mine.py").write_text("\nNone.upper\n")
    text = refused(tmp_path, level="failing_of_mine:Env")
    assert "AttributeError: 'NoneType' object has no attribute 'upper'" in text
    assert "failing_of_mine.py, line 2" in text


CALLABLES = [
    ("os:system", "command", "touch {}"),
    ("os:mkdir", "path", "{}"),
    ("subprocess:Popen", "args", ("touch", "{}")),
    ("subprocess:getoutput", "cmd", "touch {}"),
    ("pathlib:Path.touch", "self", "{}"),
    ("makers_of_mine:Env", "path", "{}"),
    ("makers_of_mine:unsaid", "path", "{}"),
    ("makers_of_mine:something_else", "path", "{}"),
    ("makers_of_mine:unknown", "path", "{}"),
    ("makers_of_mine:maker", "seed", "{}"),
]


@pytest.mark.parametrize("vectorization", ["sync", "subprocess", "vector"])
@pytest.mark.parametrize(("name", "argument", "value"), CALLABLES)
def test_level_without_environment_type_is_not_called(
    tmp_path, name, argument, value, vectorization
):
    told = str(tmp_path / "told")
    filled = tuple(part.format(told) for part in value) if isinstance(value, tuple) else None
    kwargs = {argument: filled or value.format(told)}
    message = refused(tmp_path, level=name, kwargs=kwargs, vectorization=vectorization)
    assert message.startswith((f"environment '{name}' ", f"unknown environment '{name}'"))


@pytest.mark.parametrize("name", ["os:system", "subprocess:Popen", "makers_of_mine:unsaid"])
def test_wrapper_without_environment_type_is_not_called(tmp_path, name):
    message = refused(tmp_path, level="CartPole-v1", wrappers=(name,))
    assert message.startswith(f"wrapper '{name}' ")
    assert "a class derived from gymnasium.Env" in message


def test_annotated_function_makes_environment():
    environment = GymnasiumParameters(
        level="makers_of_mine:said",
        kwargs={"g": 9.0},
        wrappers=(("makers_of_mine:said_in_quotes", {"by": 0.0}),),
    ).build(num_envs=2)
    environment.reset(seed=0)
    environment.close()


def test_refused_function_error_names_the_annotation(tmp_path):
    message = refused(
        tmp_path, level="makers_of_mine:unsaid", kwargs={"path": str(tmp_path / "told")}
    )
    assert message == (
        "environment 'makers_of_mine:unsaid' is not annotated as making a gymnasium.Env, and is "
        "not called; name a class derived from gymnasium.Env, or a function whose return type is "
        "annotated as one: def unsaid(...) -> gymnasium.Env (PettingZoo's are described by "
        "PettingZooParameters)"
    )


LAZY = """
def __getattr__(name):
    if name in ("Late", "parallel_env"):
        import a_package_that_is_missing
    if name == "Extra":
        import ogbench_missing
    if name == "Broken":
        raise RuntimeError("in its import")
    raise AttributeError(name)
"""


LATE = [
    ("Late", "No module named 'a_package_that_is_missing'; install the package"),
    ("Broken", "RuntimeError: in its import (lazy_of_mine.py, line 8)"),
]


@pytest.mark.parametrize(("name", "reason"), LATE)
@pytest.mark.parametrize("what", ["environment", "wrapper", "vector environment"])
def test_name_that_is_imported_late_error_names_what_is_missing(tmp_path, name, reason, what):
    (tmp_path / "lazy_of_mine.py").write_text(LAZY)
    level = f"lazy_of_mine:{name}"
    parameters = {
        "environment": lambda: GymnasiumParameters(level=level),
        "wrapper": lambda: GymnasiumParameters(level="CartPole-v1", wrappers=(level,)),
        "vector environment": lambda: GymnasiumParameters(level=level, vectorization="vector"),
    }[what]()
    kind = "wrapper" if what == "wrapper" else "environment"
    check_says_what_is_missing(parameters, f"{kind} '{level}'", reason)


def check_says_what_is_missing(parameters, what, reason):
    with pytest.raises(ConfigurationError) as caught:
        parameters.build(num_envs=1)
    assert f"the {what} cannot be imported: {reason}" in str(caught.value)
    sys.modules.pop("lazy_of_mine")


def test_missing_extra_behind_a_late_name_error_tells_how_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(recipe.EXTRAS, "ogbench_missing", "ogbench")
    (tmp_path / "lazy_of_mine.py").write_text(LAZY)
    message = refused(tmp_path, level="lazy_of_mine:Extra")
    assert "cannot be imported: ogbench_missing is not installed; `pip install" in message
    sys.modules.pop("lazy_of_mine")


@pytest.mark.parametrize(
    ("level", "message"),
    [
        (":Said", "environment ':Said' lacks its module; write my_module:MyEnv"),
        ("makers_of_mine:Env(size=3)", "its arguments are given by -cp"),
        ("gym_of_old:CartPole-v1", "did you mean 'CartPole-v1'?"),
    ],
)
def test_near_miss_of_a_class_is_answered(tmp_path, level: str, message: str) -> None:
    assert message in refused(tmp_path, level=level)
