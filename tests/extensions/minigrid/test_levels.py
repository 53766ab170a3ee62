"""Names of levels: all that MiniGrid registers, short names, and their list in the extension."""

import gymnasium
import pytest

import coach_rl as rl
from coach_rl.configuration.extensions import own_extensions
from coach_rl.core.errors import UnknownNameError
from coach_rl.environments import by_name
from coach_rl.environments.minigrid.levels import IDS, SHORT_NAMES, level_id
from coach_rl.environments.minigrid.world import package

WITHOUT_PATTERNS = "WFC"
"""Part of the names of levels whose patterns are not in MiniGrid's package."""


def test_ids_are_those_that_minigrid_registers():
    package()
    registered = {
        name
        for name, spec in gymnasium.registry.items()
        if str(spec.entry_point).startswith("minigrid") and WITHOUT_PATTERNS not in name
    }
    assert set(IDS) == registered
    assert len(IDS) == len(set(IDS))


def test_tasks_of_the_extension_are_all_names():
    (extension,) = (each for each in own_extensions() if each.name == "minigrid")
    ((_, names),) = extension.tasks.items()
    assert set(names) == {*SHORT_NAMES, *IDS}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MultiRoom-N4-S5", "MiniGrid-MultiRoom-N4-S5-v1"),
        ("MultiRoom-N4-S5-v0", "MiniGrid-MultiRoom-N4-S5-v0"),
        ("minigrid:MultiRoom-N4-S5-v0", "MiniGrid-MultiRoom-N4-S5-v0"),
        ("MiniGrid-MultiRoom-N4-S5-v0", "MiniGrid-MultiRoom-N4-S5-v0"),
        ("MiniGrid-DoorKey-8x8", "MiniGrid-DoorKey-8x8-v0"),
        ("BabyAI-GoToObjS6", "BabyAI-GoToObjS6-v1"),
        ("minigrid:BabyAI-BossLevel-v0", "BabyAI-BossLevel-v0"),
    ],
)
def test_level_has_several_names(name, expected):
    assert level_id(name) == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("DoorKey-9x9", r"DoorKey-9x9.*did you mean.*DoorKey"),
        ("MiniGrid-WFC-MazeSimple-v0", "lack their patterns in the package"),
        ("DoorKey-8x8-v7", "DoorKey-8x8-v7"),
    ],
)
def test_unknown_level_is_refused_in_one_line(name, message):
    with pytest.raises(UnknownNameError, match=message) as refused:
        rl.MiniGridParameters(level=name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["DoorKey-8x8", "MiniGrid-DoorKey-8x8-v0"])
def test_task_by_name_is_a_level(name):
    assert by_name.parameters(name) == rl.MiniGridParameters(level=name)


def test_prefix_is_left_out_of_descriptions():
    """A name with a colon would count as code of another package."""
    described = rl.MiniGridParameters(level="minigrid:DoorKey-8x8-v0")
    assert described.level == "DoorKey-8x8-v0"
    assert described.code_names() == ()
