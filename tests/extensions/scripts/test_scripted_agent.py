"""Scripts: by function and by name, in every phase, kept apart from everything that learns."""

import numpy as np
import pytest
from decisions import context, request
from gymnasium import spaces

from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.configuration.trust import Trust
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import CoachWarning
from coach_rl.core.goals import GOAL_KEY
from coach_rl.extensions.scripts.scripted_agent import ScriptedAgentParameters, desired_goal, still

BOX = spaces.Box(np.float32([-1, -2]), np.float32([1, -0.5]), dtype=np.float32)


def ask_for_more(observation, space):
    """Doubles of what is seen, beyond the bounds in part."""
    return observation["x"] * 2.0


def ask_for_nothing_numeric(observation, space):
    return np.full((len(observation["x"]), 2), np.nan)


def answer_nothing(observation, space):
    """No return statement."""


def ask_for_one(observation, space):
    return np.zeros(2, np.float32)


def seventh(observation, space):
    return np.full(len(observation["x"]), 7)


def build(policy, space=BOX):
    observed = spaces.Dict({"x": spaces.Box(-9, 9, (2,), np.float32)})
    return ScriptedAgentParameters(policy=policy).build(context(observed, space, num_envs=3))


def act(agent, observation, phase=Phase.TRAIN):
    return agent.act(agent.new_rows(3, 0), request(observation), Clock(phase=phase))


SEEN = {"x": np.float32([[0.1, -0.5], [0.9, -0.9], [-0.2, 0.3]])}


@pytest.mark.parametrize("phase", list(Phase))
def test_a_script_does_the_same_in_every_phase_and_stays_within_bounds(phase):
    script = build(ask_for_more)
    with pytest.warns(CoachWarning, match=r"ask_for_more' returned 1.8, which lies outside of Box"):
        action = act(script, SEEN, phase)
    act(script, SEEN, phase)  # warns once
    np.testing.assert_array_equal(action, np.float32([[0.2, -1], [1, -1.8], [-0.4, -0.5]]))
    assert action.dtype == np.float32


def test_a_script_can_be_named(tmp_path, monkeypatch):
    (tmp_path / "gaits_of_mine.py").write_text(
        "def half(observation, space):\n    return observation['x'] / 2 * [1, 0] - [0, 1]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    np.testing.assert_array_equal(
        act(build("gaits_of_mine:half"), SEEN)[:, 0], np.float32([0.05, 0.45, -0.1])
    )
    assert build("gaits_of_mine:half").description() == "script: 'gaits_of_mine:half'"


@pytest.mark.parametrize("policy", ["still", "some.module:function", still])
def test_parameters_survive_json(policy):
    params = ScriptedAgentParameters(name="legs", policy=policy)
    trust = Trust(modules=frozenset({__name__, "some.module"}))
    assert decode(encode(params), trust=trust) == params


def test_still_is_the_nearest_there_is_to_nothing():
    np.testing.assert_array_equal(act(build("still"), SEEN), np.float32([[0, -0.5]] * 3))
    np.testing.assert_array_equal(act(build("still", spaces.Discrete(3, start=2)), SEEN), [2] * 3)
    np.testing.assert_array_equal(
        act(build("still", spaces.MultiDiscrete([2, 3])), SEEN), np.zeros((3, 2))
    )


def test_desired_goal_passes_on_the_goal_it_receives():
    goal = np.float32([[0.5, -1], [-0.5, -1.5], [5, -1]])
    action = act(build(desired_goal), {**SEEN, GOAL_KEY: goal})
    np.testing.assert_array_equal(action, np.float32([[0.5, -1], [-0.5, -1.5], [1, -1]]))


def test_script_learns_and_saves_nothing():
    agent = build("still")
    assert agent.train(Clock()) is None
    assert agent.state_dict() == {}
    agent.load_state_dict({})


def beyond(observation, space):
    return np.array([[np.inf, -1], [1e300, -1], [0, -1]])


def rounded(observation, space):
    """The bounds, but for rounding."""
    return np.array([[1 + 1e-9, -1], [1, -2 - 1e-9], [0, -1]])


def beyond_in_part(observation, space):
    return {"push": [[5.0], [0.0], [0.0]], "gear": [0, 1, 0]}


PARTS = spaces.Dict({"push": spaces.Box(-1, 1, (1,), np.float32), "gear": spaces.Discrete(2)})


@pytest.mark.parametrize(
    ("policy", "space", "shown"), [(beyond, BOX, "inf"), (beyond_in_part, PARTS, "5")]
)
def test_script_that_is_clipped_warns_once_with_its_name_and_the_number(policy, space, shown):
    script = build(policy, space)
    with pytest.warns(
        CoachWarning, match=f"{policy.__name__}' returned {shown}, which lies"
    ) as warned:
        first, again = (act(script, SEEN) for _ in range(2))
    assert len(warned) == 1
    assert (first["push"] if isinstance(first, dict) else first)[0, 0] == 1
    assert str(first) == str(again)


def test_script_at_the_bounds_but_for_rounding_does_not_warn():
    assert act(build(rounded), SEEN).max() == 1
