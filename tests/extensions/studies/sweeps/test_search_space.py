"""A search space is read without being executed, and fits the preset before anything runs."""

import pytest

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset, shipped_presets
from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.studies.sweeps.search_space import (
    check_search,
    drawn_overrides,
    format_space,
    grid_of,
    parse_search,
    rounded,
)

PRESET = """
from coach_rl import *

def graph_manager(
    learning_rate: float = 0.1,
    rollout: int = 256,
    minibatch: int = 64,
    untyped=None,
) -> GraphManager:
    return BasicRLGraphManager(BasicGraphParameters(
        agent=PPOAgentParameters(
            algorithm=PPOAlgorithmParameters(
                rollout=EnvironmentSteps(rollout), minibatch=minibatch
            ),
            optimizer=AdamParameters(learning_rate=learning_rate),
        ),
        environment=GymnasiumParameters(level="CartPole-v1"),
    ))
"""


@pytest.fixture
def preset(tmp_path):
    file = tmp_path / "ranges.py"
    file.write_text(PRESET)
    return load_preset(find_preset(str(file)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a=log(1e-4, 3e-3)", "a=log(0.0001, 0.003)"),
        ("a=uniform(0, 1, step=0.25)", "a=uniform(0.0, 1.0, step=0.25)"),
        ("a=int(1e2, 1e3)", "a=int(100, 1000)"),
        ("a.b.0.c = int(1, 8, log=True) ;", "a.b.0.c=int(1, 8, log=True)"),
        (
            "a=choice(relu, 'tanh', None); b=choice((128,128), (256,256))",
            "a=choice('relu', 'tanh', None); b=choice((128, 128), (256, 256))",
        ),
        (
            "a=choice(GaussianNoise(sigma=0.2), 0.5)",
            "a=choice(GaussianNoise(sigma=0.2), 0.5)",
        ),
    ],
)
def test_parse_search_ranges(text, said):
    assert format_space(parse_search(text)) == said
    assert parse_search(said) == parse_search(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", r"'a' needs a range: write a=log\(low, high\), or uniform, int or choice"),
        ("a; b=log(1, 2)", "write name=value"),
        ("a=1e-3", "cannot read the range 'a=1e-3'; write log"),
        ("a=__import__('os').getcwd()", "cannot read the range"),
        ("a=log(open('x'), 1)", "unknown component 'open'"),
        ("a=log(1e-4, 1); a=log(1, 2)", "given twice"),
        ("a=lgo(1e-4, 1)", "did you mean 'log'"),
        ("a=log(1, 1e-4)", r"lower bound stands first, write log\(0.0001, 1\)"),
        ("a=uniform(1, 1)", "lower bound stands first"),
        ("a=log(0, 1)", "`low > 0` must hold"),
        ("a=log(1)", r"two bounds, log\(low, high\)"),
        ("a=log(small, 1)", "bounds and step must be numbers, got 'small'"),
        ("a=uniform(0, 1e999)", "must be numbers, got inf"),
        ("a=uniform(0, True)", "must be numbers, got True"),
        ("a=int(1, 2.5)", "must be whole numbers, got 2.5"),
        ("a=uniform(0, 1, step=0.3)", "step must divide"),
        ("a=uniform(0, 1, setp=0.5)", "did you mean 'step'"),
        ("a=uniform(0, 1, step=0)", "`step > 0` must hold"),
        ("a=int(1, 8, step=7, log=True)", "step is 1 when `log`"),
        ("a=int(1, 8, log=yes)", "log must be True or False, got 'yes'"),
        ("a=choice(1)", "two values or more"),
        ("a=choice(1, 1)", "each value of a choice stands once"),
    ],
)
def test_parse_search_invalid_range_error(text, message):
    with pytest.raises(ConfigurationError, match=message) as error:
        parse_search(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rte=log(1e-4, 1)", "did you mean 'learning_rate'"),
        ("agent.optimiser.epsilon=log(1e-8, 1e-5)", "did you mean 'optimizer'|agent.optimizer"),
        ("untyped=uniform(0, 1)", "no type to check values against"),
        ("minibatch=uniform(16, 64)", r"minibatch must be int, .*; write int\(low, high\) for"),
        ("minibatch=log(16, 64)", r"write int\(low, high\) for whole numbers"),
        ("learning_rate=choice(0.1, fast)", "learning_rate must be float, got 'fast'"),
        ("agent.algorithm.discount=uniform(0.9, 1.1)", "discount must be float in .*1.1"),
        ("rollout=int(0, 64)", "rollout"),
        ("agent.network=choice(1, 2)", "network"),
    ],
)
def test_check_search_unfit_space_error(preset, text, message):
    with pytest.raises(ConfigurationError, match=message):
        check_search(parse_search(text), preset, {})


def test_check_search_two_names_of_one_setting_error():
    preset = load_preset(find_preset("CartPole_PPO"))
    space = parse_search("steps=int(100, 200); schedule.training=int(100, 200)")
    with pytest.raises(ConfigurationError, match="same parameter, which is given twice in the sea"):
        check_search(space, preset, {})


def test_check_search_dependent_values(preset):
    """A minibatch of 512 needs a larger rollout than the default one."""
    check_search(parse_search("rollout=choice(256, 1024); minibatch=choice(64, 512)"), preset, {})
    check_search(parse_search("agent.algorithm.rollout=int(64, 256)"), preset, {})


def test_rounded_stays_inside():
    space = parse_search(
        "a=log(1.23446e-4, 3e-3); b=uniform(0.95, 0.999); c=uniform(0, 1, step=0.25)"
    )
    drawn = rounded(space, {"a": 0.00076543219, "b": 0.97654321, "c": 0.75})
    assert drawn == {"a": 0.0007654, "b": 0.97654, "c": 0.75}
    ends = rounded(space, {"a": 1.23446e-4, "b": 0.9989999999, "c": 1.0})
    assert ends == {"a": 1.23446e-4, "b": 0.999, "c": 1.0}


def test_grid_has_every_value():
    space = parse_search(
        "a=int(2, 4); b=uniform(0, 1, step=0.25); c=choice(x, y); d=int(1, 5, step=2)"
    )
    assert grid_of(space) == {
        "a": [2, 3, 4],
        "b": [0.0, 0.25, 0.5, 0.75, 1.0],
        "c": ["'x'", "'y'"],
        "d": [1, 3, 5],
    }


@pytest.mark.parametrize("endless", ["d=log(1, 2)", "d=uniform(1, 2)", "d=int(1, 2, log=True)"])
def test_grid_of_uncountable_range_error(endless):
    with pytest.raises(ConfigurationError, match=r"values that can be counted, not d="):
        grid_of(parse_search(endless))


def test_overrides_of_drawn_values():
    """A choice is kept as text, with quotes and semicolons of its own."""
    space = parse_search("a=choice('x; b=1', GaussianNoise(sigma=0.2)); c=log(1e-5, 1e-3)")
    drawn = {"a": space["a"].choices[0], "c": 1e-05}
    assert drawn_overrides(drawn) == {"a": "x; b=1", "c": 1e-05}
    assert str(drawn_overrides({"a": space["a"].choices[1]})["a"]) == "GaussianNoise(sigma=0.2)"


def test_check_search_shipped_presets():
    shipped = [load_preset(reference) for reference in shipped_presets().values()]
    searched = [preset for preset in shipped if preset.search]
    assert "Pendulum_SAC" in [preset.reference.name for preset in searched]
    for each in searched:
        check_search(parse_search(each.search), each, {})
