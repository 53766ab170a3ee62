"""What TensorBoard is told about a run: its command, settings, and what differs from defaults."""

import pytest

import coach_rl as rl
from coach_rl.runs.folder import read_manifest
from coach_rl.runs.manifest import Origin, differences, introduction
from tests.small_runs import preset

QUICK = rl.RunSettings(final_episodes=rl.EnvironmentEpisodes(1))


@pytest.fixture
def about(tmp_path):
    fake, overrides = preset(), {"steps": 20, "agent.layers": (8,)}
    folder = rl.run_experiment(
        fake.configure(overrides),
        rl.Runtime(seed=3),
        name="walk",
        root=tmp_path,
        origin=Origin(
            preset=fake,
            panel=fake.panel_values({"steps": 20}),
            command=("coach", "-p", "a preset"),
        ),
        settings=QUICK,
    ).folder
    return introduction(read_manifest(folder), folder.preset.read_text(), "level main")


def test_texts_name_what_differs_from_the_defaults(about):
    rows = about.texts["differences"].splitlines()[2:]
    assert rows == ["| `steps` | `100` | `20` |", "| `agent.layers` | `[4, 4]` | `[8]` |"]


def test_texts_show_command_levels_parameters_and_preset(about):
    assert "coach -p 'a preset'" in about.texts["command"]
    assert "level main" in about.texts["levels"]
    assert "| `schedule.training` | `20` |" in about.texts["parameters"]
    assert "A random walk that pretends to learn." in about.texts["preset"]


def test_hyper_parameters_are_panel_changed_parameters_and_seed(about):
    assert about.settings.items() >= {"steps": 20, "learning_rate": 0.1, "seed": 3}.items()
    assert about.settings["agent.layers"] == "[8]"
    assert "fail_at" not in about.settings  # None


def test_run_of_a_program_has_settings_as_well(tmp_path):
    graph_manager = preset().build({"steps": 10})
    result = rl.run_experiment(graph_manager, name="walk", root=tmp_path, settings=QUICK)
    about = introduction(read_manifest(result.folder), "", "level main")
    assert "without a preset" in about.texts["differences"]
    assert about.settings == {"task": "line", "num_envs": 1, "seed": 0}


def test_differences_of_nested_parameters():
    old = {"$type": "a:A", "b": {"$type": "a:B", "c": 1}, "d": {"$type": "a:Steps", "count": 5}}
    new = {"$type": "a:A", "b": {"$type": "a:E", "f": 1}, "d": {"$type": "a:Steps", "count": 6}}
    assert differences(old, new) == {
        "b": ["(B)", "(E)"],
        "b.c": [1, None],
        "b.f": [None, 1],
        "d": [5, 6],
    }
