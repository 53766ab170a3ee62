"""The symmetry of ants as a graph computes what the symmetry itself does."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from coach_rl.environments.goal_worlds.ant import AntSymmetry
from coach_rl.environments.goal_worlds.ant_workshop import WORKSHOP_OBSERVED, WorkshopSymmetry
from coach_rl.extensions.exporting.decisions import Place, symmetry_of
from coach_rl.extensions.goal_worlds import exported as _exported  # noqa: F401 - registers its own
from tests.extensions.goal_worlds.test_ant_symmetry import MOTORS, ants, context

ROWS = 400


def of_ants(**given):
    return AntSymmetry(**given).build(context()), ants(np.random.default_rng(1), ROWS)


def of_a_workshop(task):
    size = len(WORKSHOP_OBSERVED)
    seen = np.random.default_rng(2).normal(size=(ROWS, size))
    box = spaces.Box(-np.inf, np.inf, (size,), np.float64)
    space = spaces.Dict({"observation": box})
    where = SimpleNamespace(spaces=SimpleNamespace(observation=space, action=MOTORS))
    return WorkshopSymmetry(task=task).build(where), {"observation": seen}


SYMMETRIES = {
    "turned and mirrored": lambda: of_ants(),
    "turned": lambda: of_ants(mirrored=False),
    "with its axes": lambda: of_ants(shows_axes=True),
    "workshop, the task that is due": lambda: of_a_workshop("due"),
    "workshop, pushing": lambda: of_a_workshop("push"),
}


@pytest.mark.parametrize("name", SYMMETRIES)
def test_exported_symmetry_turns_as_the_symmetry_does(name):
    symmetry, seen = SYMMETRIES[name]()
    seen["observation"][0, [3, 6]] = 0  # upside down, without a heading
    view = symmetry_of(symmetry, None, Place(acts_in=MOTORS))
    given = {key: torch.from_numpy(values) for key, values in seen.items()}
    action = np.random.default_rng(3).uniform(-1, 1, (ROWS, 8)).astype(np.float32)
    made = view.canonical(given)
    for key, wanted in symmetry.canonical(seen).items():
        assert made[key].numpy().dtype == wanted.dtype
        np.testing.assert_allclose(made[key].numpy(), wanted, rtol=1e-6, atol=1e-6)
    found = view.restored(torch.from_numpy(action), given).numpy()
    assert np.array_equal(found, symmetry.restored(action, seen))
