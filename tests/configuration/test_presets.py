"""Presets are found by name or file, loaded with their panel; their faults fit in one line."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coach_rl.configuration.preset_file import REQUIRED, Preset, load_preset
from coach_rl.configuration.presets import describe_presets, find_preset, shipped_presets
from coach_rl.core.errors import ConfigurationError, ParameterError, UnknownNameError
from coach_rl.core.steps import EnvironmentSteps

FAKE = Path(__file__).parent.parent / "fake_preset.py"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def write(source: str) -> Path:
        path = tmp_path / "mine.py"
        path.write_text(source)
        return path

    return write


def load(text: str | Path) -> Preset:
    return load_preset(find_preset(str(text)))


def test_shipped_presets_are_found_in_any_case() -> None:
    for name, preset in shipped_presets().items():
        assert preset.name == name
        assert find_preset(name.upper()) == find_preset(name.lower()) == preset


def test_shipped_presets_describe_themselves() -> None:
    for name, description in describe_presets():
        assert description, f"preset {name} has no docstring"


def test_find_preset_file_and_function_name() -> None:
    assert find_preset(str(FAKE)).name == "fake_preset"
    assert find_preset(f"{FAKE}:needs").name == "fake_preset_needs"


@pytest.mark.parametrize(
    ("name", "values", "kind", "parts"),
    [
        ("CartPole_PPx", {}, UnknownNameError, ["did you mean 'CartPole_PPO'"]),
        ("no/such.py", {}, ConfigurationError, ["no/such.py"]),
        (FAKE.parents[1] / "pyproject.toml", {}, ConfigurationError, ["pyproject.toml", "Python"]),
        (f"{FAKE}:need", {}, UnknownNameError, ["'need'", "did you mean 'needs'"]),
        (f"{FAKE}:needs", {}, ConfigurationError, ['-cp "level=..."']),
        (FAKE, {"step": 1}, UnknownNameError, ["'step'", "did you mean 'steps'"]),
    ],
)
def test_load_and_build_error(
    name: str | Path, values: dict[str, object], kind: type[Exception], parts: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        load(name).build(values)
    assert all(part in str(caught.value) for part in parts)


def test_the_panel_has_types_and_defaults() -> None:
    panel = load(FAKE).panel
    assert panel["learning_rate"].annotation is float
    assert panel["learning_rate"].default == 0.1
    assert panel["signal_at"].annotation == int | None
    assert load(f"{FAKE}:needs").panel["level"].default is REQUIRED


PANEL = """
from dataclasses import dataclass, field
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers import GraphManager

@dataclass({frozen})
class Base:
    LEVELS = ("sea", "moon")
    level: str
    \"\"\"Where.\"\"\"
    steps: int = 10
    \"\"\"How long.\"\"\"

@dataclass({frozen})
class Panel(Base):
    steps: int = 20
    sizes: tuple[int, ...] = field(default_factory=lambda: (1, 2))

def graph_manager(panel: Panel):
    raise RuntimeError(f"{{panel.level}} {{panel.steps}} {{panel.sizes}}")

def plain(panel: EnvironmentSteps = EnvironmentSteps(1), more: int = 2): ...
"""


def test_a_panel_is_the_fields_of_a_dataclass(write: Callable[[str], Path]) -> None:
    path = write(PANEL.format(frozen="frozen=True, kw_only=True"))
    preset = load(path)
    assert {name: argument.default for name, argument in preset.panel.items()} == {
        "level": REQUIRED,
        "steps": 20,
        "sizes": (1, 2),
    }
    assert preset.panel["steps"].annotation is int
    assert [argument.meaning for argument in preset.panel.values()] == ["Where.", "How long.", ""]
    assert preset.levels == ("sea", "moon")
    values = {"level": "sea", "steps": 20, "sizes": (1, 2)}
    assert preset.panel_values({"level": "sea"}) == values
    with pytest.raises(ConfigurationError, match=r"RuntimeError: moon 5 \(8,\)"):
        preset.build({"level": "moon", "steps": 5e0, "sizes": [8]})
    with pytest.raises(ConfigurationError, match=r'needs level; give it with -cp "level=\.\.\."'):
        preset.build()
    assert list(load(f"{path}:plain").panel) == ["panel", "more"]


PARTS = """
import gymnasium
import numpy as np
from coach_rl import *

class Own: ...

def graph_manager():
    environment = GymnasiumParameters(level="CartPole-v1")
    agent = PPOAgentParameters(algorithm=PPOAlgorithmParameters({algorithm}))
    schedule = dict({schedule})
    {line}
    return BasicRLGraphManager(BasicGraphParameters(
        agent=agent, environment=environment, schedule=ScheduleParameters(**schedule)))
"""


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"line": "environment = 'CartPole-v1'"}, "write parameters('CartPole-v1')"),
        (
            {"line": "environment = gymnasium.make('CartPole-v1')"},
            "describe it instead of making it, e.g. GymnasiumParameters(level='CartPole-v1')",
        ),
        ({"line": "agent = PPOAgentParameters"}, "; write PPOAgentParameters(...)"),
        ({"schedule": "training=2.5"}, "ScheduleParameters.training must be EnvironmentSteps"),
        ({"algorithm": "clip='0.1'"}, "PPOAlgorithmParameters.clip must be float > 0, got '0.1'"),
        (
            {"algorithm": "roll_out=5"},
            "'roll_out' of PPOAlgorithmParameters; did you mean 'rollout'?",
        ),
        ({"algorithm": "learning_rate=0.1"}, "(AdamParameters has a parameter of that name)"),
        ({"line": "from coach_rl import Adam"}, "cannot import name 'Adam' from 'coach_rl'"),
    ],
)
def test_wrong_types_and_names_in_a_preset_are_reported_in_one_line(
    write: Callable[[str], Path], part: dict[str, str], message: str
) -> None:
    nothing = {"line": "", "schedule": "", "algorithm": ""}
    path = write(PARTS.format(**(nothing | part)))
    with pytest.raises(ConfigurationError) as caught:
        load(path).build()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_steps_that_a_preset_does_not_use_are_refused(write: Callable[[str], Path]) -> None:
    source = PARTS.format(line="", schedule="training=500", algorithm="")
    preset = load(write(source.replace("graph_manager()", "graph_manager(steps: int = 500)")))
    assert preset.configure({"steps": 500}).parameters.schedule.training == EnvironmentSteps(500)
    with pytest.raises(ConfigurationError, match="does not use its argument 'steps'"):
        preset.configure({"steps": 600})


def test_a_class_of_the_preset_is_named_by_its_module(write: Callable[[str], Path]) -> None:
    line = "environment = GymnasiumParameters(level=Own)"
    path = write(PARTS.format(line=line, schedule="", algorithm=""))
    with pytest.raises(ParameterError, match=r"; write f'\{__name__\}:Own'$"):
        load(path).build()


def test_values_of_other_types_that_lose_nothing_are_converted(
    write: Callable[[str], Path],
) -> None:
    given = "epochs=np.int64(3), rollout=256, normalise_advantage=np.bool_(True)"
    algorithm = load(write(PARTS.format(algorithm=given, line="", schedule=""))).build()
    algorithm = algorithm.parameters.agent.algorithm
    assert type(algorithm.epochs) is int
    assert algorithm.normalise_advantage is True
    assert algorithm.rollout == EnvironmentSteps(256)


def test_panel_and_parameters_are_overridden() -> None:
    preset = load(FAKE)
    manager = preset.configure(
        {"learning_rate": 1, "steps": 1e3, "agent.layers": [8], "num_envs": 2, "schedule.heatup": 5}
    )
    assert manager.parameters.agent.learning_rate == 1.0
    assert manager.parameters.agent.layers == (8,)
    assert manager.parameters.schedule.training == EnvironmentSteps(1000)
    assert manager.parameters.schedule.heatup == EnvironmentSteps(5)
    assert manager.parameters.num_envs == 2


def test_a_ready_made_graph_manager_gives_a_new_one_each_time() -> None:
    preset = load(f"{FAKE}:ready_made")
    assert preset.panel == {}
    first, second = preset.build(), preset.build()
    assert first is not second
    assert first.parameters == second.parameters
    assert preset.configure({"agent.learning_rate": 1}).parameters.agent.learning_rate == 1.0
    with pytest.raises(UnknownNameError, match="did you mean 'agent"):
        preset.configure({"agnt.learning_rate": 1})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"learning_rat": 1}, "unknown parameter 'learning_rat'; did you mean 'learning_rate'"),
        ({"learning_rate": "fast"}, "learning_rate must be float, got 'fast'"),
        ({"signal_at": 1.5}, "signal_at must be int | None, got 1.5"),
        ({"agent.learning_rat": 1}, "unknown parameter 'learning_rat' of 'agent'"),
        ({"learning_rate": -1}, "learning_rate must be above 0, got -1.0"),
    ],
)
def test_wrong_overrides(overrides: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(FAKE).configure(overrides)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\ndef graph_manager(:\n    pass\n", "mine.py:2: SyntaxError: "),
        (
            "\nimport no_such_module\n",
            "mine.py:2: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("def f():\n    return 1 / 0\n\nf()\n", "mine.py:2: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)\n", "mine.py:1: SystemExit: 3"),
        ("import json\njson.loads('{')\n", "mine.py:2: JSONDecodeError: "),
        ("x = 1\n", "mine.py defines no graph_manager: a function that returns a GraphManager"),
        ("", "mine.py defines no graph_manager"),
        (
            "def ppo(): ...\n",
            "defines no graph_manager: a function that returns a GraphManager, or a "
            "GraphManager of that name; did you mean mine.py:ppo?",
        ),
        (
            "def graph_manager(*steps): ...\n",
            "must take keyword arguments only, 'steps' is positional",
        ),
        (
            "def graph_manager():\n    return 5\n",
            "graph_manager() must return a GraphManager, got int",
        ),
        ("def graph_manager():\n    return {}['a']\n", "mine.py:2: KeyError: 'a'"),
        (PANEL.format(frozen="kw_only=True"), "Panel must be frozen; write @dataclass(frozen"),
    ],
)
def test_faulty_files_are_reported_in_one_line(
    write: Callable[[str], Path], source: str, message: str
) -> None:
    modules = set(sys.modules)
    path = write(source)
    with pytest.raises(ConfigurationError) as caught:
        load(path).build()
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    if "def " not in source and source not in ("", "x = 1\n"):  # it failed while it was loaded
        assert not [name for name in set(sys.modules) - modules if name.startswith("coach_preset")]


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="cannot read the preset"):
        load(path)


def test_errors_of_parameters_are_passed_on(write: Callable[[str], Path]) -> None:
    path = write(
        "from coach_rl.core.errors import ParameterError\n"
        "def graph_manager(x: int = 1):\n    raise ParameterError('x must be 2')\n"
    )
    with pytest.raises(ParameterError, match=r"^x must be 2$"):
        load(path).build()


def test_untyped_arguments_take_their_defaults_type(write: Callable[[str], Path]) -> None:
    path = write("def graph_manager(a=1, b=None, c: 'int | None' = None): ...\n")
    panel = load(path).panel
    assert [argument.annotation for argument in panel.values()][::2] == [int, int | None]


def test_the_same_content_is_the_same_module_and_no_cache_is_written(tmp_path: Path) -> None:
    copy = tmp_path / "fake_preset.py"
    copy.write_text(FAKE.read_text())
    one, other = load(copy).build().parameters, load(FAKE).build().parameters
    assert type(one) is type(other)
    assert [path.name for path in tmp_path.iterdir()] == ["fake_preset.py"]
