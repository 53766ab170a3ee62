"""The half that all agents share, under an algorithm that only writes down what it is given."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import decisions
import numpy as np
import pytest
from decisions import request
from gymnasium import spaces

import coach_rl as rl
from coach_rl.agents.filtered_agent import FilteredAgent, FilteredAgentParameters
from coach_rl.agents.shown_numbers import ShownNumbers
from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import NonFiniteError
from coach_rl.core.records import ActionInfo
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved
from coach_rl.core.spaces import EnvironmentSpaces, check_actions

BOX = spaces.Box(-1, 1, (1,), np.float32)
SEEN = spaces.Dict({"x": spaces.Box(-99, 99, (1,)), rl.GOAL_KEY: spaces.Box(-99, 99, (1,))})
HEATUP, TRAIN, TEST = (Clock(phase=phase) for phase in (Phase.HEATUP, Phase.TRAIN, Phase.TEST))


class CountingFilter(Saved):
    """Observations plus 1000, rewards times 2; keeps the arguments of its calls."""

    SAVED = ("learned",)
    observation_space = SEEN

    def __init__(self):
        self.filtered_calls = []
        self.learned = 0

    def build(self, space):
        return self

    def new_rows(self, num_rows):
        return {"seen": np.zeros(num_rows, np.int64)}

    def observation(self, memory, rows, observation, *, starts, learn):
        self.filtered_calls.append((sorted(observation), rows.tolist(), starts.tolist(), learn))
        self.learned += learn * len(rows)
        memory["seen"][rows] += 1
        return {key: values + 1000 for key, values in observation.items()}

    def reward(self, memory, rows, reward, *, ends, learn):
        self.filtered_calls.append(("reward", rows.tolist(), ends.tolist(), learn))
        return reward * 2


class TimesTen(Saved):
    """The environment takes ten times what the agent says."""

    SAVED = ("kind",)
    kind, agent_space = "ten", BOX

    def build(self, space):
        return self

    def apply(self, action):
        return action * 10


class Scribe(FilteredAgent):
    """Acts as told by `script`, writes down its observations and transitions."""

    def __init__(self, *, heatup=False, action_space=BOX, filtered=True, scaled=True):
        params = FilteredAgentParameters(
            name="scribe",
            input_filter=CountingFilter() if filtered else None,
            output_filter=TimesTen() if scaled else None,
        )
        spaces_shown = EnvironmentSpaces(observation=SEEN, action=action_space)
        super().__init__(params, AgentContext(spaces=spaces_shown, num_envs=3))
        self.is_on_policy = not heatup
        self.stored, self.saw, self.greedy = [], [], []
        self.script = lambda rows: ActionInfo(
            action=rows[:, None].astype(np.float32) / 10,
            extras={"log_prob": -rows.astype(np.float32)},
        )

    def new_rows(self, num_envs, seed):
        noise = RowNoise(num_rows=num_envs, size=1, kind="normal", seed=seed, name="policy")
        return self._rows(num_envs, seed, noise)

    def choose(self, row_state, request, clock):
        seen = request.observation.items()
        self.saw.append({key: values[:, 0].tolist() for key, values in seen})
        self.greedy.append(request.greedy.tolist())
        return self.script(request.rows)

    def store(self, transition):
        self.stored.append(transition)

    def train(self, clock):
        return None


def index(*rows):
    return np.array(rows, np.int64)


def seen(x, goal):
    return {"x": np.array(x, np.float32)[:, None], rl.GOAL_KEY: np.array(goal, np.float32)[:, None]}


def act(agent, rows, x, goal, *, state, starts=True, fresh=None, clock=TRAIN, greedy=False):
    """Let rows act; sub-episodes start, and real episodes where `fresh` says nothing else."""
    made = request(seen(x, goal), rows=rows, starts=starts, episode_start=fresh, greedy=greedy)
    return agent.act(state, made, clock)


def outcome(rows, x, goal, **changes):
    numbers = {"reward": np.arange(len(rows)) + 1.0, "duration": np.arange(len(rows)) + 3}
    given = {"observation": seen(x, goal), **numbers, **changes}
    return decisions.outcome(given.pop("observation"), rows=rows, **given)


def started(agent, *, clock=TRAIN):
    """Three rows that have acted on x = 1, 2, 3 under goals 7, 8, 9."""
    state = agent.new_rows(3, seed=0)
    act(agent, index(0, 1, 2), [1, 2, 3], [7, 8, 9], clock=clock, state=state)
    return state


def flat(transition):
    """A transition as plain numbers, filtered observations minus the filter's 1000."""
    return {
        "rows": transition.rows.tolist(),
        "x": (transition.observation["x"][:, 0] - 1000).tolist(),
        "goal": (transition.observation[rl.GOAL_KEY][:, 0] - 1000).tolist(),
        "next_x": (transition.next_observation["x"][:, 0] - 1000).tolist(),
        "reward": transition.reward.tolist(),
        "terminated": transition.terminated.tolist(),
        "truncated": transition.truncated.tolist(),
        "duration": transition.duration.tolist(),
    }


def test_the_filter_hears_what_starts_and_what_ends():
    agent = Scribe()
    state = started(agent)
    agent.observe(
        state,
        outcome(index(0, 1, 2), [4, 5, 6], [7, 8, 9], terminated=[1, 0, 0], truncated=[0, 1, 0]),
        clock=TRAIN,
    )
    keys = [rl.GOAL_KEY, "x"]
    assert agent.input_filter.filtered_calls == [
        (keys, [0, 1, 2], [True, True, True], True),
        (keys, [0, 1, 2], [False, False, False], True),
        ("reward", [0, 1, 2], [True, True, False], True),
    ]


def test_a_new_goal_inside_an_episode_refilters_the_goal_alone_and_teaches_nothing():
    agent = Scribe()
    state = started(agent)
    rows = index(0, 1, 2)
    agent.observe(state, outcome(rows, [4, 5, 6], [7, 8, 9]), TRAIN)
    agent.input_filter.filtered_calls.clear()
    act(agent, rows, [4, 5, 60], [70, 71, 72], starts=[1, 0, 1], fresh=[0, 0, 1], state=state)
    assert agent.input_filter.filtered_calls == [
        ([rl.GOAL_KEY, "x"], [2], [True], True),
        ([rl.GOAL_KEY], [0], [False], False),
    ]
    # row 0 has a new goal, row 1 keeps its own, row 2 starts again
    assert agent.saw[-1] == {"x": [1004, 1005, 1060], rl.GOAL_KEY: [1070, 1008, 1072]}


def test_a_goal_that_moved_is_kept_as_it_was_and_acted_on_as_it_is():
    agent = Scribe()
    state = started(agent)
    rows = index(2, 0, 1)
    told = {rl.GOAL_KEY: seen([0, 0, 0], [90, 7, 80])[rl.GOAL_KEY]}
    agent.observe(state, outcome(rows, [6, 4, 5], [9, 7, 8], next_goal=told), TRAIN)
    (transition,) = agent.stored
    assert flat(transition)["goal"] == [9, 7, 8]
    assert (transition.next_observation[rl.GOAL_KEY][:, 0] - 1000).tolist() == [9, 7, 8]
    # the goals that moved are filtered alone and teach nothing
    assert agent.input_filter.filtered_calls[-1] == ([rl.GOAL_KEY], [2, 1], [False, False], False)
    act(agent, rows, [6, 4, 5], [90, 7, 80], starts=False, state=state)
    assert agent.saw[-1] == {"x": [1006, 1004, 1005], rl.GOAL_KEY: [1090, 1007, 1080]}


def test_transitions_say_whether_they_follow_on_the_one_before():
    agent, follows = Scribe(), []
    state, rows = started(agent), index(0, 1, 2)
    nothing = [0, 0, 0]

    def step(*, starts=nothing, fresh=nothing, clock=TRAIN, **changes):
        agent.observe(state, outcome(rows, [4, 5, 6], [7, 8, 9], **changes), TRAIN)
        follows.extend(one.follows.tolist() for one in agent.stored)
        agent.stored.clear()
        act(agent, rows, [4, 5, 6], [7, 8, 9], starts=starts, fresh=fresh, clock=clock, state=state)

    step()  # the first decisions of all rows
    step(terminated=[1, 0, 0], truncated=[0, 1, 0], starts=[1, 1, 0], fresh=[1, 0, 0])
    step(next_goal={rl.GOAL_KEY: seen([0, 0, 0], [7, 80, 9])[rl.GOAL_KEY]})
    step(clock=HEATUP)  # the next decisions are random, and dropped when they end
    step()
    step()
    assert follows == [
        [False, False, False],
        [True, True, True],
        [False, False, True],
        [True, False, True],
        [False, False, False],
    ]


def test_a_level_without_goals_has_nothing_to_refilter():
    agent = Scribe()
    state = started(agent)
    agent.observe(state, outcome(index(0), [4], [7]), clock=TRAIN)
    agent.input_filter.filtered_calls.clear()
    agent.act(state, request({"x": np.ones((1, 1), np.float32)}, episode_start=False), TRAIN)
    assert agent.input_filter.filtered_calls == []


def test_heatup_acts_at_random_all_over_the_space_without_the_policy():
    wide = spaces.Box(-10, 10, (1,), np.float32)  # ten times the agent's own
    agent = Scribe(action_space=wide)
    state = agent.new_rows(3, seed=0)
    rows, actions = index(0, 1, 2), []
    for step in range(300):
        first = [step == 0] * 3
        sent = act(
            agent, rows, [1, 2, 3], [7, 8, 9], starts=first, fresh=first, clock=HEATUP, state=state
        )
        check_actions(wide, sent)
        actions.append(sent[:, 0])
    assert agent.saw == []
    # 900 uniform numbers in four bins: 225 each, standard error 13
    assert np.abs(np.histogram(actions, bins=4, range=(-10, 10))[0] - 225).max() < 65


def test_random_actions_do_not_depend_on_the_number_of_rows():
    def random_action(num_rows):
        agent = Scribe(scaled=False)
        state = agent.new_rows(num_rows, seed=5)
        return act(agent, index(1), [1], [7], clock=HEATUP, state=state).tolist()

    assert random_action(2) == random_action(6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("what", ["reward", "x", rl.GOAL_KEY])
def test_observe_number_not_finite_stores_and_learns_nothing(what, bad):
    agent = Scribe()
    state = agent.new_rows(6, seed=0)
    rows = index(3, 5)
    act(agent, rows, [1, 2], [7, 8], state=state)
    answer = outcome(rows, [1, 2], [7, 8])
    (answer.reward if what == "reward" else answer.observation[what])[1] = bad
    learned = agent.input_filter.learned
    with pytest.raises(NonFiniteError):
        agent.observe(state, answer, TRAIN)
    assert agent.stored == []
    assert agent.input_filter.learned == learned


LARGE = np.array([[1.0], [-1e300]])


@pytest.mark.parametrize("what", ["x", "reward"])
def test_numbers_that_float32_makes_infinite_are_refused(what):
    agent = Scribe(filtered=False)
    state = started(agent)
    answer = outcome(index(0, 2), [1, 2], [7, 8])
    named = {"x": answer.observation["x"].astype(np.float64), rl.GOAL_KEY: np.zeros((2, 1))}
    changed = (
        {"reward": LARGE[:, 0]} if what == "reward" else {"observation": {**named, "x": LARGE}}
    )
    with pytest.raises(NonFiniteError, match=f"{what}'? that float32 makes infinite in row 2"):
        agent.observe(state, replace(answer, **changed), TRAIN)
    assert agent.stored == []


def test_large_numbers_that_a_filter_scales_pass():
    limits = {"low": -10.0, "high": 10.0}
    filters = rl.InputFilter(
        observation={"x": (rl.ObservationClippingFilter(**limits),)},
        reward=(rl.RewardClippingFilter(**limits),),
    ).build(spaces.Dict({"x": spaces.Box(-np.inf, np.inf, (1,), np.float64), rl.GOAL_KEY: BOX}))
    agent = SimpleNamespace(name="agent", input_filter=filters)
    check = ShownNumbers(agent, spaces.Dict())
    check(index(0, 2), {"x": LARGE}, LARGE[:, 0])
    for observation, reward in (({rl.GOAL_KEY: LARGE}, None), ({"x": LARGE * np.inf}, None)):
        with pytest.raises(NonFiniteError, match="in row"):
            check(index(0, 2), observation, reward)


@pytest.mark.parametrize(
    ("space", "filtered", "warns"),
    [
        (spaces.Box(5.5e6 - 1e3, 5.5e6 + 1e3, (2,), np.float64), {}, True),
        (spaces.Box(5.5e6 - 1e3, 5.5e6 + 1e3, (2,), np.float32), {}, False),  # is so already
        (spaces.Box(5.5e6 - 1e6, 5.5e6 + 1e6, (2,), np.float64), {}, False),
        (spaces.Box(5.5e6, 5.5e6, (2,), np.float64), {}, False),
        (spaces.Box(-np.inf, np.inf, (2,), np.float64), {}, False),
        (spaces.Box(-1e300, 1e300, (2,), np.float64), {}, False),
        (spaces.Box(*np.array([[5.5e6, 0], [5.502e6, np.inf]]), dtype=np.float64), {}, True),
        (
            spaces.Box(5.5e6 - 1e3, 5.5e6 + 1e3, (2,), np.float64),
            {"x": (rl.ObservationNormalizationFilter(),)},
            False,
        ),
    ],
)
def test_observations_too_far_from_0_for_float32_warn(space, filtered, warns):
    built = EnvironmentSpaces(observation=spaces.Dict({"x": space}), action=BOX)
    agent = rl.PPOAgentParameters(input_filter=rl.InputFilter(observation=filtered))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        agent.build(AgentContext(spaces=built, num_envs=1))
    messages = [str(each.message) for each in warned]
    assert len(messages) == warns
    assert all("'x' to multiples of 0.5, more than a millionth" in each for each in messages)


def test_whole_numbers_are_never_taken_for_not_finite():
    agent = Scribe(filtered=False)
    state = agent.new_rows(1, seed=0)
    whole = {"x": np.array([[255]], np.uint8), rl.GOAL_KEY: np.array([[3]])}
    agent.act(state, request(whole), TRAIN)
    agent.observe(state, outcome(index(0), [0], [0], observation=whole), clock=TRAIN)
    assert agent.stored[0].next_observation["x"].dtype == np.uint8


def test_an_agent_without_filters_sees_and_acts_as_it_is():
    agent = Scribe(filtered=False, scaled=False)
    assert agent.observation_space is SEEN
    assert agent.action_space is BOX
    state = agent.new_rows(2, seed=0)
    sent = act(agent, index(1), [5], [7], state=state)
    np.testing.assert_allclose(sent, [[0.1]])
    assert agent.saw == [{"x": [5], rl.GOAL_KEY: [7]}]
    assert agent.policy_state_dict()["filters"] == {"input": {}, "output": {}}
