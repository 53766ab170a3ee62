"""Input that memories refuse: a call, the kind of error, and what its one line contains."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
import test_hindsight_actions as actions
import test_timed_hindsight as timed_hindsight
from gymnasium import spaces
from replay_worlds import build
from test_hindsight import GOAL, OBSERVED, JudgesObservations, ShowsHalf, as_own, with_hindsight
from test_replay_memory import one
from test_samplers import AgeParameters, Makes

from coach_rl.core.agents import ALONE, LevelPlace
from coach_rl.core.errors import (
    CheckpointError,
    ConfigurationError,
    ParameterError,
    RunError,
    SpaceError,
    UnknownNameError,
)
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.memories import (
    HindsightActionParameters,
    HindsightParameters,
    PrioritisedParameters,
    ReplayMemoryParameters,
)
from coach_rl.memories.samplers import SamplerChain

PICTURES = spaces.Dict({"observation": spaces.Box(0, 255, (84, 84, 4), np.uint8)})
PAIR = spaces.Dict({"pair": spaces.Tuple([spaces.Discrete(2)])})
LOWEST = LevelPlace(level=actions.level("low", actions.GOAL))
STOPPING = LevelPlace(
    level=replace(actions.level("top", actions.GOAL), stops_on_failure="training"),
    below=actions.level("low", actions.SUB_GOAL),
)
UNTIMED = spaces.Dict({key: timed_hindsight.SEEN[key] for key in ("observation", "desired_goal")})
STACKED = spaces.Dict(
    {"camera": spaces.Box(0, 255, (2, 2, 3), np.uint8), "speed": spaces.Box(-1, 1, (1,))}
)


@dataclass(frozen=True)
class Early:
    """A unit in front of the one that makes its input."""

    after: str = "positions"

    def build(self, *, store, rng, device):
        return Makes("early", inputs=("/actions",))


def observing(**changed):
    observed = {key: part for key, part in {**OBSERVED.spaces, **changed}.items() if part}
    return lambda: with_hindsight(observed=spaces.Dict(observed))


def add_other_shape():
    wrong = one(0, 1)
    wrong.observation["observation"] = np.zeros((1, 1))
    build(num_envs=1).add(wrong)


def declare_a(*made):
    SamplerChain([Makes("liar", outputs=("/a",), really=made)])(3)


def load_other_shape():
    build(num_envs=4).load_state_dict(build(num_envs=2).state_dict())


def chain(*, made, wanted=(), name="second"):
    inputs = (wanted,) if wanted else ()
    first = Makes("same" if name == "same" else "first", outputs=made)
    return SamplerChain([first, Makes(name, inputs=inputs)])


def replay(**parameters):
    return lambda: ReplayMemoryParameters(**parameters)


def prioritised(**parameters):
    return lambda: PrioritisedParameters(**parameters)


def hindsight(**parameters):
    return lambda: HindsightParameters(goal=GOAL, **parameters)


def own_goals(kind):
    return lambda: with_hindsight(goal=as_own(GOAL, kind))


def at(place):
    return lambda: actions.build(at=place)


def sent_as(kind):
    return actions.build(sub_goal=kind(**actions.OWN_TIME))


CASES = {
    ParameterError: [
        (replay(capacity=0), "capacity must be int > 0, got 0"),
        (replay(n_step=0), "n_step must be int > 0"),
        (replay(storage="gpu"), "storage must be ... 'device' or 'none', got 'gpu'"),
        (replay(prefill="x-v0", extras=("value",)), "exclude each other"),
        (replay(hindsight_actions=HindsightActionParameters()), "go with hindsight"),
        (prioritised(alpha=-1.0), "alpha must be float in [0, 4], got -1"),
        (prioritised(alpha=4.1), "alpha must be float in [0, 4], got 4.1"),
        (prioritised(alpha=4.0, epsilon=1e-90), "raise epsilon, or lower alpha"),
        (prioritised(beta=1.5), "beta must be float in [0, 1]"),
        (prioritised(epsilon=0.0), "epsilon must be float > 0"),
        (prioritised(anneal_beta_over=EnvironmentSteps(0)), "must be EnvironmentSteps > 0 | None"),
        (hindsight(strategy="past"), "'episode' or 'random', got 'past'"),
        (hindsight(ratio=-1.0), "ratio must be float in [0, inf)"),
        (hindsight(ratio=float("inf")), "ratio must be float in [0, inf), got inf"),
        (lambda: actions.build(penalty=1.0), "penalty must be float < 0 | None, got 1.0"),
    ],
    ConfigurationError: [
        (lambda: build(num_envs=4, capacity=3), "capacity 3 has no room for 4 environments"),
        (lambda: build(storage="pinned"), "feeds a CUDA device, the learner is on 'cpu'"),
        # 84 * 84 * 4 bytes twice, 1 * 4 of the action, 26 of the rest: 56,478 bytes each
        (lambda: build(observed=PICTURES, capacity=10**9), "takes 56,478.0 GB ... would fit"),
        (lambda: chain(made=("/a", "/b"), wanted="/c"), "'second' needs '/c', which ... /a, /b"),
        (lambda: chain(made=(), wanted="/a"), "needs '/a' ... made so far: nothing"),
        (lambda: chain(made=("/x/a",), wanted="/y/"), "needs '/y/'"),
        (lambda: chain(made=(), name="same"), "two sampler units are named 'same'"),
        (lambda: build(units=(Early(),)), "unit 'early' needs '/actions'"),
        (own_goals(JudgesObservations), "JudgesObservations overrides verdict(), ... judge"),
        (own_goals(ShowsHalf), "as GoalSpace.show does, and ShowsHalf overrides show"),
        (
            at(LevelPlace(level=actions.level("low", actions.GOAL))),
            "level 'low': hindsight actions need a level below",
        ),
        (at(actions.place(horizon=None)), "level 'top': the penalty of a missed test is minus"),
        (at(actions.place(goal=actions.DENSE)), "level 'top': ... by distance ... .penalty"),
        (at(ALONE), "HindsightParameters.goal is None, and the agent's level has no goals"),
        (at(STOPPING), "level 'top': ... choose one"),
        (lambda: sent_as(actions.OwnTime), "level 'top': ... (3,), and OwnTime.space ... (2,)"),
        (lambda: timed_hindsight.build(strategy="episode"), "or 'final', got 'episode'"),
    ],
    SpaceError: [
        (lambda: build(observed=PAIR), "cannot keep values of Tuple"),
        (lambda: build(observed=STACKED, frame_stack=("radar",)), "'radar' ... camera, speed"),
        (
            lambda: build(observed=STACKED, frame_stack=("speed",)),
            "axis, 'speed' has ... (1,)",
        ),
        (observing(desired_goal=None), "the observation key 'desired_goal', ... achieved_goal"),
        (observing(achieved_goal=None), "needs the observation key 'achieved_goal'"),
        (observing(desired_goal=spaces.Box(-1, 1, (3,))), "2 elements, 'desired_goal' has 3"),
        (lambda: timed_hindsight.build(observed=UNTIMED), "needs the observation key 'time_left'"),
    ],
    RunError: [
        (lambda: build().sample(1), "memory is empty"),
        (lambda: build(prioritised=PrioritisedParameters()).sample(1), "memory is empty"),
        (add_other_shape, "has (1,) under '/observations/observation' ... (2,)"),
        (lambda: declare_a(), "'liar' declares the outputs ['/a'] and made []"),
        (lambda: declare_a("/a", "/b"), "declares the outputs ['/a'] and made ['/a', '/b']"),
        (lambda: declare_a("/b"), "declares the outputs ['/a'] and made ['/b']"),
        (lambda: actions.decisions(sent_as(actions.BadHindsight)), "(2, 3) for 2 rows; ... (2,)"),
    ],
    UnknownNameError: [
        (lambda: build(units=(AgeParameters(after="position"),)), "'position' ... 'positions'"),
    ],
    CheckpointError: [
        (load_other_shape, "2 rows of 500 transitions, this one 4 of 250"),
    ],
}
"""Calls by kind of error, and parts of the message in their order."""


@pytest.mark.parametrize(
    ("kind", "call", "message"), [(kind, *case) for kind in CASES for case in CASES[kind]]
)
def test_memories_invalid_input_error(kind, call, message):
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert re.search(".*".join(map(re.escape, message.split(" ... "))), text), text
