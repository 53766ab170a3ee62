"""Input that memories refuse: a call, the kind of error, and what its one line contains."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.errors import CheckpointError, RunError, SpaceError
from coach_rl.memories import RolloutMemory
from coach_rl.memories.samplers import SamplerChain
from tests.extensions.images import test_frame_stacks as frame_stacks
from tests.memories import test_rollout_memory as rollouts
from tests.memories.replay_worlds import Stream, build
from tests.memories.test_replay_memory import one
from tests.memories.test_samplers import AgeParameters, Makes
from tests.refusals import check_refused

PICTURES = spaces.Dict({"observation": spaces.Box(0, 255, (84, 84, 4), np.uint8)})
PAIR = spaces.Dict({"pair": spaces.Tuple([spaces.Discrete(2)])})
STACKED = spaces.Dict(
    {"camera": spaces.Box(0, 255, (2, 2, 3), np.uint8), "speed": spaces.Box(-1, 1, (1,))}
)


@dataclass(frozen=True)
class Early:
    """A unit in front of the one that makes its input."""

    after: str = "positions"

    def build(self, context):
        return Makes("early", inputs=("/actions",))


def add_other_shape():
    wrong = one(0, 1)
    wrong.observation["observation"] = np.zeros((1, 1))
    build(num_envs=1).add(wrong)


def add_pixels(value):
    """Add a transition whose pixels are floats to a memory of bytes."""
    space = spaces.Box(0, 255, (2,), np.uint8)
    wrong = one(0, 1)
    wrong.observation["observation"] = np.full((1, 2), value)
    build(num_envs=1, observed=spaces.Dict({"observation": space})).add(wrong)


def declare_a(*made):
    SamplerChain([Makes("liar", outputs=("/a",), really=made)])(3)


def load_other_shape():
    build(num_envs=4).load_state_dict(build(num_envs=2).state_dict())


def add_unrelated_stack():
    """Add a decision whose frames are not those of the episode's last."""
    memory = build(num_envs=1, observed=frame_stacks.observed(3), frame_stack=("camera",))
    cameras = frame_stacks.Cameras(1, 3, seed=0)
    memory.add(replace(cameras.step([0]), terminated=np.array([True])))
    cameras.stacks[:] = cameras.rng.integers(0, 256, cameras.stacks.shape)
    memory.add(cameras.step([0]))


def load_overwritten(clear):
    memory, stream = build(capacity=8), Stream(2)
    for _ in range(6):
        memory.add(stream.step())
    state = memory.state_dict()
    if clear:
        memory.clear()
    memory.add(stream.step())
    build(capacity=8).load_state_dict(state)


def add_to_full():
    memory = RolloutMemory(3)
    memory.add(rollouts.transition([0, 1], [1, 2]))
    memory.add(rollouts.transition([0, 1], [3, 4]))


def chain(*, made, wanted=(), name="second"):
    inputs = (wanted,) if wanted else ()
    first = Makes("same" if name == "same" else "first", outputs=made)
    return SamplerChain([first, Makes(name, inputs=inputs)])


def replay(**parameters):
    return lambda: rl.ReplayMemoryParameters(**parameters)


def prioritised(**parameters):
    return lambda: rl.PrioritisedParameters(**parameters)


CASES = {
    rl.ParameterError: [
        (prioritised(alpha=4.0, epsilon=1e-90), "raise epsilon, or lower alpha"),
    ],
    rl.ConfigurationError: [
        (lambda: build(num_envs=4, capacity=3), "capacity 3 has no room for 4 environments"),
        (lambda: build(storage="pinned"), "feeds a CUDA device, the learner is on 'cpu'"),
        # 84 * 84 * 4 bytes twice, 1 * 4 of the action, 26 of the rest: 56,478 bytes each
        (lambda: build(observed=PICTURES, capacity=10**9), "takes 56,478.0 GB ... would fit"),
        (lambda: chain(made=("/a", "/b"), wanted="/c"), "'second' needs '/c', which ... /a, /b"),
        (lambda: chain(made=(), wanted="/a"), "needs '/a' ... made so far: nothing"),
        (lambda: chain(made=("/x/a",), wanted="/y/"), "needs '/y/'"),
        (lambda: chain(made=(), name="same"), "two sampler units are named 'same'"),
        (lambda: build(units=(Early(),)), "unit 'early' needs '/actions'"),
    ],
    SpaceError: [
        *(
            (partial(add_pixels, value), f"has {value} (float64), which uint8 makes ... '/obs")
            for value in (0.5, 256.0, -1.0)
        ),
        (lambda: build(observed=PAIR), "cannot keep values of Tuple"),
        (lambda: build(observed=STACKED, frame_stack=("radar",)), "'radar' ... camera, speed"),
        (
            lambda: build(observed=STACKED, frame_stack=("speed",)),
            "axis, 'speed' has ... (1,)",
        ),
    ],
    RunError: [
        (add_unrelated_stack, "row 0 starts with a stack under 'camera' that neither"),
        (
            lambda: build(storage="none").add(one(0, 1)),
            "storage='none' keeps nothing; use cpu, pinned or device",
        ),
        (partial(load_overwritten, clear=False), "overwritten transitions that its state refers"),
        (partial(load_overwritten, clear=True), "overwritten transitions that its state refers"),
        (add_to_full, "memory of 3 transitions is full: 2 kept, 2 more came"),
        (lambda: build().sample(1), "memory is empty"),
        (lambda: build(prioritised=rl.PrioritisedParameters()).sample(1), "memory is empty"),
        (add_other_shape, "has (1,) under '/observations/observation' ... (2,)"),
        (lambda: declare_a(), "'liar' declares the outputs ['/a'] and made []"),
        (lambda: declare_a("/a", "/b"), "declares the outputs ['/a'] and made ['/a', '/b']"),
        (lambda: declare_a("/b"), "declares the outputs ['/a'] and made ['/b']"),
    ],
    rl.UnknownNameError: [
        (lambda: build(units=(AgeParameters(after="position"),)), "'position' ... 'positions'"),
    ],
    CheckpointError: [
        (load_other_shape, "2 rows of 500 transitions, this one 4 of 250"),
    ],
}
"""Calls by kind of error, and parts of the message in their order."""


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [(call, kind, message) for kind in CASES for call, message in CASES[kind]],
)
def test_memories_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)
