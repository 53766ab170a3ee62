"""Presets are found by name or file, loaded with their panel; their faults fit in one line."""

from pathlib import Path

import pytest

import coach_rl as rl
from coach_rl.configuration.preset_file import REQUIRED, Preset
from coach_rl.configuration.presets import any_task_presets, describe_presets, shipped_presets

FAKE = Path(__file__).parent.parent / "fake_preset.py"


@pytest.fixture
def write(tmp_path):
    def write(source: str) -> Path:
        path = tmp_path / "mine.py"
        path.write_text(source)
        return path

    return write


def load(text: str | Path) -> Preset:
    return rl.load_preset(rl.find_preset(str(text)))


def test_find_preset_name_in_any_case_is_found():
    for name, preset in shipped_presets().items():
        assert preset.name == name
        assert rl.find_preset(name.upper()) == rl.find_preset(name.lower()) == preset


def test_describe_presets_all_have_a_docstring():
    for name, description in describe_presets():
        assert description, f"preset {name} has no docstring"


def test_find_preset_file_and_function_name():
    assert rl.find_preset(str(FAKE)).name == "fake_preset"
    assert rl.find_preset(f"{FAKE}:needs").name == "fake_preset_needs"


def test_panel_has_types_and_defaults():
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


def test_panel_of_a_dataclass_has_its_fields(write):
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


def test_configure_unused_steps_of_their_default_are_accepted(write):
    source = PARTS.format(line="", schedule="training=500", algorithm="")
    preset = load(write(source.replace("graph_manager()", "graph_manager(steps: int = 500)")))
    assert preset.configure({"steps": 500}).parameters.schedule.training == rl.EnvironmentSteps(500)


@pytest.mark.parametrize(
    ("algorithm", "level", "usual"),
    [
        ("PPO", "MountainCar-v0", 100_000),
        ("DQN", "MountainCar-v0", 100_000),
        ("SAC", "MountainCarContinuous-v0", 100_000),
        ("PPO", "CartPole-v1", 100_000),
        ("PPO", "half_cheetah", 1_000_000),
    ],
)
def test_configure_the_length_that_none_stands_for_is_accepted(algorithm, level, usual):
    preset = rl.load_preset(any_task_presets()[algorithm])
    given = preset.configure({"level": level, "steps": usual})
    assert given.parameters == preset.configure({"level": level}).parameters
    assert given.parameters.schedule.training == rl.EnvironmentSteps(usual)


@pytest.mark.parametrize("default", ["int", "int | None = None", "int = 500"])
def test_configure_unused_steps_are_refused_whatever_their_default(write, default):
    source = PARTS.format(line="", schedule="training=500", algorithm="")
    preset = load(write(source.replace("graph_manager()", f"graph_manager(*, steps: {default})")))
    with pytest.raises(rl.ConfigurationError, match="does not use its argument 'steps'"):
        preset.configure({"steps": 600})


@pytest.mark.parametrize(
    "used", ["steps // 2048 * 2048", "min(steps, 50_000)", "max(steps, 150_000)", "int(steps)"]
)
def test_configure_steps_that_are_rounded_or_bounded_are_accepted(write, used):
    source = PARTS.format(line="", schedule=f"training={used}", algorithm="")
    preset = load(write(source.replace("graph_manager()", "graph_manager(*, steps: int = 10)")))
    training = preset.configure({"steps": 100_000}).parameters.schedule.training
    assert training == rl.EnvironmentSteps(eval(used, {"steps": 100_000}))


def test_configure_panel_name_that_begins_a_path_is_a_setting_of_its_own(write):
    source = PARTS.format(line="", schedule="", algorithm="")
    preset = load(write(source.replace("graph_manager()", "graph_manager(*, agent: str = 'a')")))
    built = preset.configure({"agent": "b", "agent.algorithm.clip": 0.1})
    assert built.parameters.levels[0].agent.algorithm.clip == 0.1


def test_build_lossless_values_are_converted(write):
    given = "epochs=np.int64(3), rollout=256, normalise_advantage=np.bool_(True)"
    algorithm = load(write(PARTS.format(algorithm=given, line="", schedule=""))).build()
    algorithm = algorithm.parameters.agent.algorithm
    assert type(algorithm.epochs) is int
    assert algorithm.normalise_advantage is True
    assert algorithm.rollout == rl.EnvironmentSteps(256)


def test_configure_sets_panel_and_parameters():
    preset = load(FAKE)
    manager = preset.configure(
        {"learning_rate": 1, "steps": 1e3, "agent.layers": [8], "num_envs": 2, "schedule.heatup": 5}
    )
    assert manager.parameters.agent.learning_rate == 1.0
    assert manager.parameters.agent.layers == (8,)
    assert manager.parameters.schedule.training == rl.EnvironmentSteps(1000)
    assert manager.parameters.schedule.heatup == rl.EnvironmentSteps(5)
    assert manager.parameters.num_envs == 2


def test_build_ready_made_graph_manager_is_new_each_time():
    preset = load(f"{FAKE}:ready_made")
    assert preset.panel == {}
    first, second = preset.build(), preset.build()
    assert first is not second
    assert first.parameters == second.parameters
    assert preset.configure({"agent.learning_rate": 1}).parameters.agent.learning_rate == 1.0


def test_panel_untyped_argument_has_the_type_of_its_default(write):
    path = write("def graph_manager(a=1, b=None, c: 'int | None' = None): ...\n")
    panel = load(path).panel
    assert [argument.annotation for argument in panel.values()][::2] == [int, int | None]


def test_load_preset_same_content_is_the_same_module(tmp_path):
    copy = tmp_path / "fake_preset.py"
    copy.write_text(FAKE.read_text())
    one, other = load(copy).build().parameters, load(FAKE).build().parameters
    assert type(one) is type(other)
    assert [path.name for path in tmp_path.iterdir()] == ["fake_preset.py"]
