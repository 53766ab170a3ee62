"""Masks of Gymnasium environments: wherever they come from, each state shows its own."""

import masked_environments
import numpy as np
import pytest
from gymnasium import spaces
from little_environments import Gadget
from masked_environments import Doors, ShownDoors

from coach_rl.core.discrete_actions import FORBIDDEN, forbidden
from coach_rl.core.errors import ConfigurationError, EnvironmentFault, ParameterError
from coach_rl.core.random_actions import actions_from_uniform, allowed_choice, uniform_size
from coach_rl.environments.faults import FaultParameters
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.gymnasium.masks import ShownMasks, shown_mask
from coach_rl.extensions.testing import check_environment
from coach_rl.extensions.testing.allowed_actions import has_masks, with_allowed_actions
from tests.environments.walks import answer_to

HERE = "masked_environments"
STRICT = FaultParameters(on_crash="stop")


def parameters(level="Doors", **settings):
    return GymnasiumParameters(level=f"{HERE}:{level}", max_episode_steps=9, **settings)


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("source", ["info:action_mask", "method:action_masks"])
@pytest.mark.parametrize("sizes", [(4,), (2, 3)])
@pytest.mark.parametrize("vectorization", ["sync", "subprocess"])
def test_masked_environment_shows_the_mask_of_each_state(source, sizes, vectorization):
    rows, rng = 3, np.random.default_rng(0)
    environment = parameters(
        kwargs={"sizes": sizes, "start": 2, "final_mask": True},
        action_mask=source,
        vectorization=vectorization,
        faults=STRICT,
    ).build(num_envs=rows)
    space = environment.spaces
    assert space.observation["action_mask"] == spaces.MultiBinary(sum(sizes))
    assert space.observation["observation"] == Doors().observation_space
    singles = [Doors(sizes=sizes, start=2) for _ in range(rows)]
    for row, single in enumerate(singles):
        single.reset(seed=5 + row)
    answer, ends = environment.reset(seed=5), 0
    elapsed = np.zeros(rows, int)
    for _ in range(60):
        mask = answer.first_observation["action_mask"]
        expected = [single.action_masks() for single in singles]
        np.testing.assert_array_equal(mask, expected)
        uniform = rng.random((rows, uniform_size(space.action)))
        action = actions_from_uniform(space.action, uniform, mask > 0)
        answer = answer_to(environment, action)
        for row, single in enumerate(singles):
            *_, terminated, _, _ = single.step(action[row])
            elapsed[row] += 1
            final = answer.observation["action_mask"][row]
            np.testing.assert_array_equal(final, single.action_masks())
            if terminated or elapsed[row] == 9:
                single.reset()
                elapsed[row], ends = 0, ends + 1
    assert ends > 10
    environment.close()


def test_terminated_step_without_a_mask_shows_none_allowed():
    environment = parameters(action_mask="info:action_mask").build(num_envs=1)
    answer = environment.reset(seed=0)
    while not answer.terminated.any():
        mask = answer.first_observation["action_mask"] > 0
        answer = answer_to(environment, allowed_choice(mask, np.zeros(1)))
    assert not answer.observation["action_mask"].any()
    assert answer.first_observation["action_mask"].any()


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("sizes", [(4,), (2, 3)])
def test_environment_with_masks_keeps_the_contract(sizes):
    given = parameters(kwargs={"sizes": sizes}, action_mask="method:action_masks")
    check_environment(lambda rows: given.build(num_envs=rows), steps=30)


def test_masked_environment_can_be_probed():
    assert parameters(action_mask="info:action_mask").obstacle_to_restoring() is None


REFUSED = [  # level, settings, kind of error, message
    ("Doors", {"action_mask": "mask"}, ParameterError, "'info:KEY' or 'method:NAME'"),
    ("Doors", {"action_mask": "info:"}, ParameterError, "got 'info:'"),
    ("Doors", {"action_mask": "method:masks"}, ConfigurationError, "has no such method"),
    ("Doors", {"action_mask": "info:legal"}, EnvironmentFault, "no 'legal'.*it has action_mask"),
    ("TooFewDoors", {"action_mask": "info:action_mask"}, EnvironmentFault, "must have 4 entries"),
    ("Silent", {"action_mask": "info:action_mask"}, EnvironmentFault, "it has nothing"),
]


@pytest.mark.parametrize(("level", "settings", "kind", "message"), REFUSED)
def test_wrong_source_of_masks_is_refused(level, settings, kind, message):
    with pytest.raises(kind, match=message):
        play(level, settings)


def play(level, settings):
    environment = parameters(level, faults=STRICT, **settings).build(num_envs=1)
    answer = environment.reset(seed=0)
    for _ in range(20):
        mask = answer.first_observation["action_mask"] > 0
        answer = answer_to(environment, allowed_choice(mask, np.zeros(1)))


def test_mask_of_a_box_or_of_a_ready_vector_environment_is_refused():
    with pytest.raises(ConfigurationError, match="discrete actions to mask"):
        GymnasiumParameters(level="Pendulum-v1", action_mask="info:action_mask").build(num_envs=1)
    with pytest.raises(ParameterError, match="ready vector environment"):
        parameters(action_mask="info:action_mask", vectorization="vector")
    with pytest.raises(ParameterError, match="may forbid then"):
        parameters(action_mask="info:action_mask", action_repeat=2)


def test_environment_that_shows_its_masks_under_another_key_has_none_by_default():
    environment = parameters("ShownDoors").build(num_envs=1)
    assert not has_masks(environment)
    assert with_allowed_actions(environment) is environment
    assert ShownDoors().observation_space["doors"].shape == (4,)


SPACES = [
    spaces.Discrete(3, start=-1),
    spaces.MultiDiscrete([2, 3], start=[4, 0]),
    spaces.MultiBinary(2),
    spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(0, 1, (2,)), "c": spaces.MultiBinary(1)}),
]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_random_actions_are_allowed_and_reach_all_that_are(space):
    rng = np.random.default_rng(1)
    sizes = {"Discrete": (3,), "MultiDiscrete": (2, 3), "MultiBinary": (2, 2), "Dict": (3, 2)}
    sizes = sizes[type(space).__name__]
    masks = [np.eye(size, dtype=bool)[rng.integers(size, size=4_000)] for size in sizes]
    masks = [mask | (rng.random(mask.shape) < 0.3) for mask in masks]
    mask = np.concatenate(masks, axis=1)
    actions = actions_from_uniform(space, rng.random((4_000, uniform_size(space))), mask)
    assert not forbidden(space, actions, mask).any()
    every = actions_from_uniform(space, rng.random((4_000, uniform_size(space))))
    assert forbidden(space, every, mask).any()
    if isinstance(space, spaces.Discrete):
        counts = [np.bincount(actions[(mask == seen).all(axis=1)] + 1) for seen in np.eye(3) > 0]
        assert [(each > 0).tolist()[-1] for each in counts] == [True] * 3
        all_three = np.bincount(actions[mask.all(axis=1)] + 1) / mask.all(axis=1).sum()
        np.testing.assert_allclose(all_three, 1 / 3, atol=0.06)


def test_allowed_choice_stays_allowed_at_the_edges():
    mask = np.array([[False, True, True, False]] * 2)
    edges = np.array([0.0, np.nextafter(1.0, 0.0)])
    assert allowed_choice(mask, edges).tolist() == [1, 2]
    assert allowed_choice(mask, np.float32([0.5, 1.0])).tolist() == [2, 2]
    assert np.float32(FORBIDDEN) > -np.inf


class MaskedGadget(Gadget):
    def action_masks(self):
        return [np.ones(3), np.ones(5), np.ones(8)]


def test_masks_of_nested_actions_have_entries_of_all_discrete_parts():
    """A Discrete(3) in a tuple, gears of 2 and 3, four lamps."""
    masked = ShownMasks(MaskedGadget(), source="method:action_masks")
    assert masked.observation_space["action_mask"] == spaces.MultiBinary(3 + 5 + 2 * 4)
    observation, _ = masked.reset(seed=0)
    assert observation["action_mask"].tolist() == [1] * 16


ONE, TWO, NESTED = (4,), (2, 3), (3, 2, 2)


@pytest.mark.parametrize(
    ("sizes", "given"),
    [
        (ONE, [1, 0, 2, 0.5]),
        (ONE, np.array([True, False, True, True])),
        (ONE, [np.array([1, 0, 1, 1])]),
        (TWO, [1, 0, 1, 1, 1]),
        (TWO, (np.array([1, 0]), [1, 1, 1])),
        (TWO, [[1, 0], [1, 1, 1]]),
        ((2, 2), np.array([[1, 0], [1, 1]])),
        (NESTED, [[1, 0, 1], [1, 1, 1, 1]]),
    ],
)
def test_mask_is_one_array_or_one_for_each_part(sizes, given):
    mask = shown_mask(given, sizes, "info:legal")
    assert mask.dtype == np.bool_
    assert mask.shape == (sum(sizes),)
    assert not mask[1]
    assert mask.sum() == {ONE: 3, TWO: 4, (2, 2): 3, NESTED: 6}[sizes]


@pytest.mark.parametrize(
    ("sizes", "given"),
    [
        (ONE, [1, 0, np.nan, 1]),
        (ONE, np.array([1, 0, 1j, 1])),
        (ONE, [[1], [0], [1], [1]]),
        (ONE, [[1, 0], [1, 1]]),
        (ONE, [[[1, 0, 1, 1]]]),
        (ONE, np.ones((4, 1))),
        (ONE, ["1", "0", "1", "1"]),
        (ONE, [1, None, 1, 1]),
        (ONE, [1, 10**400, 1, 1]),
        (ONE, {0: 1, 1: 0, 2: 1, 3: 1}),
        (ONE, "1011"),
        (ONE, np.ones(())),
        (ONE, np.ones(5)),
        (TWO, [[1, 0, 1], [1, 1]]),
        (TWO, [[1, 0], [1, np.nan, 1]]),
        (TWO, [[1], [0], [1], [1], [1]]),
    ],
)
def test_mask_of_another_form_is_malformed(sizes, given):
    with pytest.raises(EnvironmentFault, match=f"'info:legal' must have {sum(sizes)} entries"):
        shown_mask(given, sizes, "info:legal")


@pytest.mark.parametrize("source", ["info:action_mask", "method:action_masks"])
@pytest.mark.parametrize("how", ["step", "reset", "info", "flag"])
def test_masked_environment_that_answers_wrong_is_malformed(monkeypatch, source, how):
    wrong = {
        "step": lambda *_, **__: None,
        "reset": lambda *_, **__: np.zeros(2, np.float32),
        "info": lambda *_, **__: (np.zeros(2, np.float32), 1.0, False, False, None),
        "flag": lambda *_, **__: (np.zeros(2, np.float32), 1.0, "no", False, {}),
    }
    level = f"{how}_of_a_test"

    class Wrong(Doors):
        pass

    setattr(Wrong, how if how in ("step", "reset") else "step", wrong[how])
    monkeypatch.setattr(masked_environments, level, Wrong, raising=False)
    environment = GymnasiumParameters(level=f"{HERE}:{level}", action_mask=source).build(num_envs=1)

    def begin():
        environment.reset(seed=0)
        answer_to(environment, np.zeros(1, np.int64))

    with pytest.raises(EnvironmentFault, match=r"must be|must return|gave no pair"):
        begin()
