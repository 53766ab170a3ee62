"""Input that filters refuse: a call, the kind of error, and what its one line contains."""

from dataclasses import dataclass

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.errors import ActionError, CheckpointError, NonFiniteError, SpaceError
from coach_rl.filters import StatelessInputStage
from tests.refusals import check_refused

A, P, S, U = ActionError, rl.ParameterError, SpaceError, rl.UnknownNameError
ARM = spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([3.0, 0.5], np.float32))
STACK_DIFFERENCES = rl.ObservationStackingFilter(differences=True)
BOX = spaces.Box(-np.inf, np.inf, (3,), np.float64)
WHOLE = spaces.Box(0, 5, (1,), np.int64)
SPACE = spaces.Dict({"camera": spaces.Box(0, 255, (4, 4), np.uint8), "joints": BOX})
NORMALISED = {"joints": (rl.ObservationNormalizationFilter(),)}


@dataclass(frozen=True)
class First:
    """A filter that keeps one element, and says that it keeps all."""

    def build(self, space):
        return StatelessInputStage(space, lambda values: values[:, :1])


@dataclass(frozen=True)
class Brighter:
    """A filter whose integers are of another dtype than it says, and may not fit."""

    def build(self, space):
        return StatelessInputStage(space, lambda values: values + np.int64(200))


def fields(kind, **given):
    return lambda: kind(**given)


def on(parameters, space):
    """A call that builds an observation's filter for a space."""
    return lambda: rl.InputFilter(observation={"x": (parameters,)}).build(spaces.Dict({"x": space}))


def sends(space, kind, **given):
    """A call that builds an action's filter for a space."""
    return lambda: kind(**given).build(space)


def observed(filters, key, value):
    """A call that filters an observation of one row."""
    chain = rl.InputFilter(observation=filters).build(SPACE)
    memory, first = chain.new_rows(1), np.array([True])
    return lambda: chain.observation(
        memory, np.array([0]), {key: np.array([value])}, starts=first, learn=True
    )


def loaded(saved, other):
    """A call that loads the state of one chain into another."""
    return lambda: other.build(SPACE).load_state_dict(saved.build(SPACE).state_dict())


def image(*shape, dtype=np.uint8):
    return spaces.Box(0, 255, shape, dtype)


SUB_PARTS, TO_SIZE = rl.ObservationReductionBySubPartsNameFilter, rl.ObservationRescaleToSizeFilter
PARTIAL = rl.PartialDiscreteActionSpaceMap
OUTSIDE = "position 0) doesn't lie in the environment's"
BOUNDS = "finite, low below high everywhere"
TWO = rl.OutputFilter(action=(rl.BoxDiscretization(num_bins=3), rl.LinearBoxToBoxMap()))
CASES = [
    # Fields.
    (fields(rl.RewardClippingFilter), P, "RewardClippingFilter"),
    (fields(rl.RewardClippingFilter, low=1.0, high=0.0), P, "RewardClippingFilter"),
    (fields(rl.RewardRescaleFilter, factor=0.0), P, "factor must not be 0"),
    (fields(rl.ObservationClippingFilter), P, "ObservationClippingFilter"),
    (fields(rl.ObservationClippingFilter, low=1.0, high=0.0), P, "ObservationClippingFilter"),
    *(
        (fields(rl.ObservationCropFilter, low=low, high=high), P, "ObservationCropFilter.low")
        for low, high in (((-1,), (2,)), ((2,), (2,)), ((0,), (1, 1)))
    ),
    (fields(SUB_PARTS, names=("fuel", "health"), sub_parts=("helth",)), U, "mean 'health'"),
    (fields(SUB_PARTS, names=("a",), sub_parts=("a",), method="discard"), P, SUB_PARTS.__name__),
    (fields(rl.ObservationToUInt8Filter, low=1.0, high=1.0), P, "low must be below high"),
    (fields(rl.BoxMasking, low=(0.0, 2.0), high=1.0), P, "nowhere exceed"),
    (fields(rl.LinearBoxToBoxMap, low=1.0, high=1.0), P, BOUNDS),
    (fields(rl.LinearBoxToBoxMap, low=0.0, high=np.inf), P, BOUNDS),
    (fields(rl.LinearBoxToBoxMap, low=(0.0, 0.0), high=(1.0, 1.0, 1.0)), P, BOUNDS),
    *(
        (
            fields(rl.InputFilter, observation={"joints": given}),
            P,
            "InputFilter.observation ... must",
        )
        for given in (rl.ObservationNormalizationFilter(), (rl.ObservationNormalizationFilter,))
    ),
    *(
        (fields(rl.InputFilter, reward=given), P, "InputFilter.reward must")
        for given in (rl.RewardClippingFilter(low=0), ("RewardClippingFilter",))
    ),
    (
        fields(rl.OutputFilter, action=rl.LinearBoxToBoxMap()),
        P,
        "must be tuple[ActionStageParameters,",
    ),
    (
        fields(rl.OutputFilter, action=(rl.LinearBoxToBoxMap,)),
        P,
        "must be tuple[ ... got (the class",
    ),
    # Spaces of observations and rewards.
    (on(rl.ObservationClippingFilter(low=0.5), image(2)), S, "whole bounds for uint8, got 0.5"),
    *(
        (on(rl.ObservationCropFilter(low=low, high=high), BOX), S, "doesn't fit")
        for low, high in (((0,), (5,)), ((3,), (None,)), ((0, 0), (1, 1)))
    ),
    (
        on(rl.ObservationRescaleSizeByFactorFilter(factor=0.1), image(4, 4)),
        S,
        "leaves nothing of an image of 4 x 4",
    ),
    (on(TO_SIZE(height=8, width=8), image(3, 84, 84)), S, "channels that stand first are moved by"),
    (on(TO_SIZE(height=8, width=8), image(4, 4, dtype=np.int32)), S, "uint8, float32 or float64"),
    (on(rl.ObservationStackingFilter(axis=2), BOX), S, "allowed: -2 to 1"),
    (on(STACK_DIFFERENCES, spaces.Box(0, 255, (3,), np.uint8)), S, "a Box of floats"),
    (lambda: rl.InputFilter(observation={"joint": ()}).build(SPACE), U, "did you mean 'joints'"),
    (
        lambda: rl.InputFilter(
            observation={
                "joints": (rl.ObservationClippingFilter(low=0.0), TO_SIZE(height=2, width=2))
            }
        ).build(SPACE),
        S,
        "filter 1 of observation 'joints': ObservationRescaleToSizeFilter needs images",
    ),
    # Spaces of actions.
    (
        sends(WHOLE, rl.BoxDiscretization, num_bins=7),
        S,
        "can't place 7 whole numbers evenly from 0",
    ),
    (sends(ARM, rl.BoxDiscretization, num_bins=(3, 3, 3)), S, "3 entries for 2 dimensions"),
    (
        sends(spaces.Box(-1.0, 1.0, (40,)), rl.BoxDiscretization, num_bins=2),
        S,
        "would make 1099511627776 actions",
    ),
    (sends(spaces.Box(-1.0, np.inf, (1,)), rl.BoxDiscretization, num_bins=2), S, "finite bounds"),
    (
        sends(spaces.Box(1.0, 1.0, (1,)), rl.BoxDiscretization, num_bins=2),
        S,
        "low is below its high",
    ),
    (sends(ARM, rl.BoxMasking, low=-2.0, high=0.5), S, "must lie within it"),
    (sends(ARM, rl.BoxMasking, low=(0.0,) * 3, high=0.5), S, "3 numbers, but the Box of shape"),
    (sends(WHOLE, rl.BoxMasking, low=0.5, high=2), S, "whole bounds"),
    (sends(ARM, rl.FullDiscreteActionSpaceMap), S, "made discrete by BoxDiscretization"),
    (sends(spaces.Discrete(3), PARTIAL, target_actions=(0, 1, 1)), S, "action 1 is listed twice"),
    (sends(spaces.Discrete(3), PARTIAL, target_actions=(0, 3)), S, "3 (position 1) doesn't lie"),
    *(
        (sends(space, PARTIAL, target_actions=targets), S, OUTSIDE)
        for targets, space in (
            (((9.0, 0.0),), ARM),
            (((0.0,),), ARM),
            ((0.0,), ARM),
            ((0.5,), spaces.Discrete(2)),
            (((0.5,),), WHOLE),
            (((0, 2),), spaces.MultiBinary(2)),
        )
    ),
    *(
        (sends(space, rl.LinearBoxToBoxMap, low=(0.0, 0.0), high=1.0), S, message)
        for space, message in (
            (spaces.Box(-np.inf, 1.0, (2,)), "finite bounds"),
            (spaces.Box(0, 5, (2,), np.int64), "Box of floats"),
            (spaces.Box(-1.0, 1.0, (3,)), "2 numbers, but the Box of shape"),
        )
    ),
    (lambda: TWO.build(ARM), S, "filter 1: LinearBoxToBoxMap needs a Box"),
    (lambda: TWO.build(spaces.Dict({"arm": ARM})), S, "filter 0: BoxDiscretization needs a Box"),
    # Values.
    (observed(NORMALISED, "joints", [0.0, np.nan, 0.0]), NonFiniteError, "element (1,) of row 0"),
    (observed(NORMALISED, "goal", [0.0, 0.0]), U, "unknown observation key 'goal'"),
    (
        observed({"joints": (rl.ObservationClippingFilter(low=0.0), First())}, "joints", [0.0] * 3),
        S,
        "observation/joints/1: ... shape (1,), its output_space is Box ... (3,)",
    ),
    (
        observed({"camera": (Brighter(),)}, "camera", np.full((4, 4), 100, np.uint8)),
        S,
        "observation/camera/0: ... gave 300 (int64), which uint8 makes 44, its output_space is Box",
    ),
    (
        lambda: (
            PARTIAL(target_actions=(4, 0, 2)).build(spaces.Discrete(5)).inverse(np.array([0, 3]))
        ),
        A,
        "never gives the action 3 of row 1",
    ),
    (
        lambda: (
            rl.OutputFilter(action=(rl.LinearBoxToBoxMap(),))
            .build(ARM)
            .apply({"arm": np.zeros((1, 2), np.float32)})
        ),
        A,
        "got parts ['arm']",
    ),
    # States.
    (
        loaded(rl.InputFilter(observation=NORMALISED), rl.InputFilter()),
        CheckpointError,
        "InputFilter.observation['joints']",
    ),
    *(
        (
            loaded(
                rl.InputFilter(reward=(saved,)),
                rl.InputFilter(reward=(rl.RewardRescaleFilter(factor=2.0),)),
            ),
            CheckpointError,
            "InputFilter.reward",
        )
        for saved in (rl.RewardNormalizationFilter(), rl.RewardReturnScalingFilter())
    ),
    (
        loaded(
            rl.InputFilter(observation=NORMALISED),
            rl.InputFilter(observation=NORMALISED, reward=(rl.RewardNormalizationFilter(),)),
        ),
        CheckpointError,
        "positions [] ... at ['0']",
    ),
    (
        lambda: rl.InputFilter().build(SPACE).load_state_dict({"observation": {"arms": {}}}),
        U,
        "'arms'",
    ),
    (
        lambda: rl.OutputFilter().build(ARM).load_state_dict({"action": {"1": {"count": 3}}}),
        CheckpointError,
        "OutputFilter.action",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), CASES)
def test_filters_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)
