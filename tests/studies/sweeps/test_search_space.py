"""A search space is read without being executed, and fits the preset before anything runs."""

import pytest

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset, shipped_presets
from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.studies.sweeps.search_space import check_search, format_space, parse_search

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
        ("", "empty"),
        ("a", "write name=value"),
        ("a=1e-3", "cannot read the range 'a=1e-3'; write log"),
        ("a=__import__('os').getcwd()", "cannot read the range"),
        ("a=log(open('x'), 1)", "unknown component 'open'"),
        ("a=log(1e-4, 1); a=log(1, 2)", "given twice"),
        ("a=lgo(1e-4, 1)", "did you mean 'log'"),
        ("a=log(1, 1e-4)", r"lower bound stands first, write log\(0.0001, 1.0\)"),
        ("a=uniform(1, 1)", "lower bound stands first"),
        ("a=log(0, 1)", "begins above 0"),
        ("a=log(1)", r"two bounds, log\(low, high\)"),
        ("a=log(small, 1)", "bounds must be numbers, got 'small'"),
        ("a=uniform(0, 1e999)", "bounds must be numbers, got inf"),
        ("a=uniform(0, True)", "bounds must be numbers, got True"),
        ("a=int(1, 2.5)", "bounds must be whole numbers, got 2.5"),
        ("a=uniform(0, 1, step=0.3)", "step must divide"),
        ("a=uniform(0, 1, setp=0.5)", "did you mean 'step'"),
        ("a=int(1, 8, step=7, log=True)", "has no step"),
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
        ("minibatch=uniform(16, 64)", r"minibatch must be int, .*; write minibatch=int\(16, 64\)"),
        ("minibatch=log(16, 64)", r"write minibatch=int\(16, 64, log=True\)"),
        ("learning_rate=choice(0.1, fast)", "learning_rate must be float, got 'fast'"),
        ("agent.algorithm.discount=uniform(0.9, 1.1)", "discount must be float in .*1.1"),
        ("rollout=int(0, 64)", "rollout"),
        ("agent.network=choice(1, 2)", "network"),
    ],
)
def test_check_search_unfit_space_error(preset, text, message):
    with pytest.raises(ConfigurationError, match=message):
        check_search(parse_search(text), preset, {})


def test_check_search_unknown_name_suggestion(preset):
    with pytest.raises(UnknownNameError):
        check_search(parse_search("agent.algorithm.discont=uniform(0.9, 1)"), preset, {})


def test_check_search_fixed_setting_error(preset):
    with pytest.raises(ConfigurationError, match="learning_rate is given twice"):
        check_search(parse_search("learning_rate=log(1e-4, 1)"), preset, {"learning_rate": 0.1})


def test_check_search_two_names_of_one_setting_error():
    preset = load_preset(find_preset("CartPole_PPO"))
    space = parse_search("steps=int(100, 200); schedule.training=int(100, 200)")
    with pytest.raises(ConfigurationError, match="same parameter, which is given twice in the sea"):
        check_search(space, preset, {})


def test_check_search_dependent_values(preset):
    """A minibatch of 512 needs a larger rollout than the default one."""
    check_search(parse_search("rollout=choice(256, 1024); minibatch=choice(64, 512)"), preset, {})
    check_search(parse_search("agent.algorithm.rollout=int(64, 256)"), preset, {})


def test_dimension_rounded_stays_inside():
    space = parse_search(
        "a=log(1.23446e-4, 3e-3); b=uniform(0.95, 0.999); c=uniform(0, 1, step=0.25)"
    )
    assert space["a"].rounded(0.00076543219) == 0.0007654
    assert space["a"].rounded(1.23446e-4) == 1.23446e-4
    assert space["b"].rounded(0.97654321) == 0.97654
    assert space["b"].rounded(0.9989999999) == 0.999
    assert space["c"].rounded(0.75) == 0.75


def test_dimension_grid_has_every_value():
    space = parse_search("a=int(2, 4); b=uniform(0, 1, step=0.25); c=choice(x, y); d=log(1, 2)")
    assert space["a"].grid() == (2, 3, 4)
    assert space["b"].grid() == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert space["c"].grid() == ("'x'", "'y'")
    assert space["d"].grid() is None


def test_check_search_shipped_presets():
    shipped = [load_preset(reference) for reference in shipped_presets().values()]
    searched = [preset for preset in shipped if preset.search]
    assert "Pendulum_SAC" in [preset.reference.name for preset in searched]
    for each in searched:
        check_search(parse_search(each.search), each, {})
