"""Input that the core refuses, the tree of errors, and how several problems become one."""

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.agents import require_whole_policies
from coach_rl.core.clock import Phase
from coach_rl.core.errors import (
    ActionError,
    CheckpointError,
    EnvironmentFault,
    NonFiniteError,
    ProblemsError,
    RunError,
    SpaceError,
    problems_of,
    require,
    require_no_problems,
    suggestion,
)
from coach_rl.core.random_actions import actions_from_uniform, uniform_size
from coach_rl.core.ranges import Positive
from coach_rl.core.running_statistics import RunningStatistics
from coach_rl.core.saved import Saved
from coach_rl.core.seeding import generator
from coach_rl.core.spaces import check_actions
from coach_rl.core.steps import RunLength, StepUnit, require_unit
from coach_rl.core.typed_values import declared_types, fit
from tests.core.test_goals import TURNED, Farther
from tests.core.test_options import height, is_high, one_too_many
from tests.core.test_parameter_classes import Hike, Stroll, Walk
from tests.core.test_parts import Plain
from tests.core.test_row_noise import noise
from tests.core.test_saved import Box, Inline, Optional
from tests.core.test_spaces import DICT
from tests.refusals import check_refused

C, P, S, U = rl.ConfigurationError, rl.ParameterError, SpaceError, rl.UnknownNameError
PLANE = partial(
    rl.GoalSpace, low=(-1.0, -2.0), high=(1.0, 2.0), threshold=(0.1, 0.1), elements=(0, 1)
)
FIRST = rl.GoalSpace(low=(0.0,), high=(1.0,), threshold=(0.1,))
SEEN = spaces.Dict({"observation": spaces.Box(-9, 9, (3,), np.float32)})
PLACE = spaces.Dict({"position": spaces.Box(0, 1, (3,))})
SHORT = spaces.Dict({"observation": spaces.Box(0, 1, (2,))})
CHOSEN = spaces.Dict({"option": spaces.Box(0, 1, (3,))})
MOVES = np.zeros((2, 2), np.float32)
RAMP = rl.LinearSchedule(start=1, end=0)
STEPS = rl.EnvironmentSteps(1)


def typed(value: "Missing") -> None: ...  # noqa: F821


class Nameless:
    """Builds, as parameters of agents do, and lacks their name."""

    def build(self, context): ...


def rewarded():
    options, place = rl.OptionSpace(count=1, rewards=(one_too_many,)), {"x": np.zeros(2)}
    options.reward(np.ones((2, 1), np.float32), place, place, np.zeros(2))


def observe_not_finite():
    RunningStatistics((2,)).update(np.array([[0.0, 0.0], [0.0, 0.0], [0.0, np.nan]]))


def load_statistics():
    RunningStatistics((3,)).load_state_dict(RunningStatistics((2,)).state_dict())


def load_noise():
    noise(2).load_state_dict(noise(3).state_dict())


def save(state, now):
    now.load_state_dict(state)


def saved_agent():
    require_whole_policies({"main": type("Mine", (Plain,), {"SAVED": ("shift",)})("one")})


GOALS = [
    (partial(PLANE, low=(0.0,)), P, "got 1, 2 and 2"),
    (partial(PLANE, elements=(1, 2, 3)), P, "names 3 elements, its bounds have 2"),
    (partial(PLANE, low=(1.0, -2.0)), P, "low must lie below high"),
    (partial(PLANE, threshold=(0.1, 0.0), reached_within="ball"), P, "more than 0 in every"),
    (partial(replace, TURNED, angles=(2,)), P, "angles names elements of the goal, 0 to 1, got"),
    (partial(replace, TURNED, reach=(1.0, 1.0)), P, "reach is the largest displacement"),
    (partial(replace, TURNED, reach=(1.0,), relative=True), P, "reach is the largest"),
    (partial(PLANE().check, PLACE), S, "key 'observation' is not observed; ... position"),
    (partial(PLANE(elements=(2, 0)).check, SHORT), S, "do not all lie in ... of 2 elements"),
    (partial(FIRST.check, SEEN), S, "has 1 elements, observation 'observation' has 3"),
    (
        partial(Farther(low=(-5.0,), high=(5.0,), threshold=(1.0,), elements=(0,)).check, SEEN),
        S,
        "Farther overrides difference( ... difference_of(",
    ),
    (partial(rl.OptionSpace(count=3).check, CHOSEN), S, "shows a 'option' of its own"),
    (partial(rl.OptionSpace, count=2, rewards=(height,)), P, "for each of 2 options, got 1"),
    (
        partial(rl.OptionSpace, count=2, ends=(None, height)),
        P,
        "ends[1] ... 1 argument, got height",
    ),
    (
        partial(rl.OptionSpace, count=2, rewards=(is_high, None)),
        P,
        "rewards[0] ... 3 arguments, got is_",
    ),
    (partial(rl.OptionSpace, count=2, rewards=(3, None)), P, "rewards must be tuple"),
    (rewarded, RunError, "rewards[0] (one_too_many) returned an array of shape (3"),
]
FIELDS = [
    *(
        (call, P, message)
        for given, message in [
            ({"stride": "1e-3"}, "Walk.stride of 'w' must be float > 0, got '1e-3'"),
            ({"stride": True}, "Walk.stride of 'w' must be float > 0, got True"),
            ({"limit": 0.5}, "got 0.5; write a whole number, or EnvironmentSteps(3000)"),
            ({"gait": "hop"}, "Walk.gait of 'w' must be 'walk' or 'run', got 'hop'"),
            ({"pace": 0.5}, "Walk.pace of 'w' must be Schedule | None, got 0.5"),
            (
                {"pace": rl.ConstantSchedule},
                "the class ConstantSchedule; write ConstantSchedule(...",
            ),
            ({"stride": -1}, "Walk.stride of 'w' must be float > 0, got -1"),
            ({"legs": (2, 0)}, "Walk.legs of 'w' must be tuple[int > 0, ...], got (2, 0)"),
            ({"gait": "run"}, "only two legs can run"),
        ]
        for call in (partial(Walk, name="w", **given), partial(replace, Walk(name="w"), **given))
    ),
    (partial(Stroll, name="w", stride=0), P, "Stroll.stride of 'w' must be float > 0, got 0"),
    (partial(Stroll, name="w", legs=(0,)), P, "Stroll.legs of 'w' must be tuple"),
    (partial(Stroll, name="w", stops=0), P, "Stroll.stops of 'w' must be int > 0, got 0"),
    (partial(Stroll, name="w", gait="run"), P, "only two legs can run"),
    (partial(Hike, name="w", strid=0.4), U, "'strid' of Hike; did you mean 'stride'?"),
    (partial(Hike, height=3), P, "Hike lacks name; write Hike(name=...)"),
    (partial(Walk, name=3), P, "Walk.name must be str, got 3"),
    (partial(Walk, "w"), P, "Walk takes keyword arguments ... , got 'w'"),
    (partial(rl.PiecewiseSchedule, points=()), P, "strictly rising steps, got []"),
    (partial(rl.PiecewiseSchedule, points=((5, 1.0), (5, 2.0))), P, "got [5, 5]"),
    (partial(rl.PiecewiseSchedule, points=((9, 1.0), (5, 2.0))), P, "got [9, 5]"),
    *(
        (partial(rl.EnvironmentSteps, count), P, "EnvironmentSteps.count must be a whole number")
        for count in (-1, 1.5, True, "3", None, np.int64(-3), np.True_, float("inf"), float("nan"))
    ),
    (lambda: rl.TrainingSteps(1) - rl.TrainingSteps(2), P, "got -1"),
    (partial(require_unit, 5, StepUnit, "length"), P, "got 5; write EnvironmentSteps(3000)"),
    (partial(require_unit, STEPS, rl.EnvironmentEpisodes, "episodes"), P, "episodes must be Env"),
    *(
        (partial(operation, other), TypeError, "EnvironmentSteps and ... are different kinds")
        for other in (rl.TrainingSteps(1), 1)
        for operation in (
            *(STEPS.__add__, STEPS.__sub__),
            *(STEPS.__lt__, STEPS.__le__, STEPS.__gt__, STEPS.__ge__),
        )
    ),
    (partial(generator, -1, "x"), ValueError, "non-negative"),
]
VALUES = [
    (partial(fit, value, annotation, current, "rate"), C, message)
    for value, annotation, current, message in [
        ("fast", float, 0.5, "rate must be float, got 'fast'"),
        (True, float, 0.5, "rate must be float, got True"),
        (True, int, 5, "rate must be int, got True"),
        (1.5, int, 5, "rate must be int, got 1.5"),
        (float("inf"), int, 5, "rate must be int, got inf"),
        (None, float, 0.5, "rate must be float, got None"),
        ("true", bool, False, "rate must be bool, got 'true'; write True"),
        ("none", int | None, 1, "rate must be int | None, got 'none'; write None"),
        (-1, rl.EnvironmentSteps, STEPS, "rate must be EnvironmentSteps, got -1"),
        (1.5, rl.EnvironmentSteps, STEPS, "rate must be EnvironmentSteps, got 1.5"),
        (1.5, RunLength, STEPS, "write a whole number, or EnvironmentSteps(3000)"),
        (-1.5, rl.Hours, rl.Hours(1), "rate must be Hours, got -1.5; write a number of hours"),
        ((1, "a"), tuple[int, ...], (), "rate must be tuple[int, ...], got (1, 'a')"),
        ((1,), tuple[int, int], (), "rate must be tuple[int, int], got (1,)"),
        (64, tuple[int, ...] | None, None, "got 64; write a tuple, (64,)"),
        ((RAMP, 2.0), tuple[int, ...], (), "got (LinearSchedule(...), 2.0)"),
        ("dance", Literal["sparse", "dense"], "sparse", "must be 'sparse' or 'dense'"),
        ("play", Phase, Phase.TRAIN, "must be Phase, got 'play'; allowed: HEATUP, TRAIN, TEST"),
        (0.1, rl.LinearSchedule, RAMP, "got 0.1; set its own parameters, e.g. rate.start"),
        (Nameless(), rl.AgentParameters, None, "rate must be AgentParameters, got"),
        (-1.0, Positive[float] | tuple[float, ...], 2.0, "tuple[float, ...], got -1.0"),
    ]
]
ACTIONS = [
    *(
        (partial(check_actions, space, np.array(actions)), ActionError, message)
        for space, actions, message in [
            (spaces.Discrete(3, start=2), [2, 4, 5], "action 5 of row 2 lies outside"),
            (spaces.Discrete(3, start=2), [2, 1, 5], "action 1 of row 1"),
            (spaces.Discrete(3), [0.0, 1.0], "action 0.0 of row 0"),
            (spaces.MultiDiscrete([2, 3]), [[1, 2], [1, 3]], "of row 1"),
            (spaces.MultiDiscrete([2, 3], start=[1, 1]), [[0, 1]], "of row 0"),
            (spaces.MultiDiscrete([2, 3]), [[0.0, 1.0]], "of row 0"),
            (spaces.MultiBinary(2), [[0, 1], [0, 2]], "of row 1"),
            (spaces.Box(-1, 1, (2,)), [[0.0, 1.0], [0.0, 1.5]], "of row 1"),
            (spaces.Box(-1, 1, (2,)), [[0.0, np.nan]], "of row 0"),
            (spaces.Box(-1, 1, (2,)), [[0.0]], "has shape (2,) per row, got (1,)"),
            (spaces.Discrete(3), [[0]], "has shape () per row, got (1,)"),
        ]
    ),
    *(
        (partial(check_actions, space, actions), ActionError, message)
        for space, actions, message in [
            (DICT, {"move": MOVES}, "needs the keys ['grip', 'move'], got ['move']"),
            (DICT, MOVES, "got ndarray"),
            (DICT, {"move": MOVES, "grip": np.array([0, 3])}, "action 3 of row 1"),
            (spaces.Discrete(2), {"move": MOVES}, "must be one array"),
        ]
    ),
    *(
        (call, S, f"cannot act in a {type(space).__name__} space")
        for space in (spaces.Text(3), spaces.Tuple([spaces.Discrete(2)]))
        for call in (
            partial(uniform_size, space),
            partial(actions_from_uniform, space, np.zeros((1, 1))),
        )
    ),
    (
        partial(actions_from_uniform, spaces.Dict({"hand": DICT}), np.zeros((1, 3))),
        S,
        "'hand' is a Dict inside a Dict",
    ),
]
STATES = [
    (partial(save, state, now), CheckpointError, message)
    for now, state, message in [
        (Box(1), {}, "Box has no 'value'"),
        (Box(Box(1)), {"value": {}}, "Box has no 'value'"),
        (Box(np.zeros(3)), {"value": np.zeros(2)}, "Box.value ... (2,) ... (3,)"),
        (Box(np.zeros(3)), {"value": np.zeros(1)}, "(1,) ... (3,)"),
        (Box(np.zeros(3)), {"value": 1.0}, "Box.value ... float ... (3,)"),
        (Box(1), {"value": np.zeros(3)}, "Box.value ... an array ... plain"),
        (Box(np.zeros(3, np.int64)), {"value": np.zeros(3)}, "Box.value ... float64 ... int64"),
        (Box(torch.zeros(3)), {"value": torch.zeros(1)}, "Box.value ... (1,) ... (3,)"),
        (Box([0]), {"value": [0, 1]}, "Box.value ... list of 2 ... list of 1"),
        (Box(Box(1)), {"value": [0]}, "Box.value ... list ... dict"),
        (Box(Box(1)), {"value": None}, "Box.value ... dict"),
        (Box({"a": 0}), {"value": {}}, "Box.value ... 'a'"),
        (Box({}), {"value": {"b": 0}}, "Box.value ... 'b'"),
        (Optional(Box(1)), {}, "Optional has no 'part'"),
        (Inline({"a": 0}), {"steps": 1}, "Inline.part ... 'a'"),
    ]
]
OTHERS = [
    (partial(type, "Wrong", (Saved,), {"SAVED": "value"}), C, "Wrong.SAVED ... write ('value',)"),
    (load_noise, CheckpointError, "list of 3 and has a list of 2"),
    (load_statistics, CheckpointError, "shape (2,)"),
    (observe_not_finite, NonFiniteError, "element (1,) of row 2"),
    (saved_agent, C, "Mine saves state of its own (SAVED: shift)"),
    (partial(declared_types, typed), C, "types of typed cannot be resolved"),
    (partial(require, False, "x must be 1, got 2"), P, "x must be 1, got 2"),
    (partial(require_no_problems, ["too few"]), P, "too few"),
    (partial(require_no_problems, [U("flag", "x", [])]), U, "unknown flag 'x'"),
    (
        lambda: require_no_problems(["a", *problems_of(require_no_problems, ["b", "c"])]),
        ProblemsError,
        "3 problems: (1) a; (2) b; (3) c",
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [*GOALS, *FIELDS, *VALUES, *ACTIONS, *STATES, *OTHERS],
)
def test_core_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)


def test_require_true_condition_nothing_is_raised():
    require(True, "fine")
    require_no_problems([])


@pytest.mark.parametrize(
    ("error", "of", "code"),
    [
        *((each, rl.ConfigurationError, 2) for each in (P, S, U)),
        *((each, RunError, 1) for each in (EnvironmentFault, NonFiniteError, ActionError)),
        (CheckpointError, RunError, 1),
    ],
)
def test_exit_code_is_2_for_settings_and_1_for_what_fails_while_running(error, of, code):
    assert issubclass(error, of)
    assert issubclass(error, rl.CoachError)
    assert error.exit_code == code


def test_unknown_name_error_lists_the_nearest_names_or_all_where_they_are_few():
    error = rl.UnknownNameError("preset", "Mujoco_PPo", ["Mujoco_PPO", "Atari_DQN"], "see coach -l")
    assert str(error) == ("unknown preset 'Mujoco_PPo'; did you mean 'Mujoco_PPO'? (see coach -l)")
    assert error.allowed == ["Atari_DQN", "Mujoco_PPO"]
    assert str(rl.UnknownNameError("activation", "xyz", ["tanh", "relu"])) == (
        "unknown activation 'xyz'; allowed: relu, tanh"
    )
    names = [f"name{number}" for number in range(13)]
    assert suggestion("qqq", names) == ""
    assert suggestion("qqq", names[:12]).startswith("; allowed: name0, name1")
    assert suggestion("qqq", []) == ""
