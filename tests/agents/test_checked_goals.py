"""Goals with methods of their own are checked alike for flat agents and at levels."""

import warnings
from dataclasses import fields, replace
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.errors import NonFiniteError, RunError, SpaceError
from coach_rl.core.parameter_classes import parameter_class
from tests import builders
from tests.agents.goal_stacks import ABSOLUTE, SETTINGS, stack
from tests.builders import created
from tests.refusals import check_refused

GOALS = replace(ABSOLUTE, threshold=(0.2, 0.2), reward="sparse", reached_within="ball")
TD3 = rl.TD3AgentParameters(**SETTINGS)
MODULE = "tests.agents.test_checked_goals"


def with_hindsight(goal=None, **more):
    hindsight = rl.HindsightParameters(goal=goal, goal_ends_episode=True, **more)
    return replace(TD3, memory=rl.ReplayMemoryParameters(capacity=3_000, relabelling=hindsight))


def flat(goal, environment=None, agent=None):
    """A flat agent that learns in hindsight."""
    world = environment or rl.GoalPointMassParameters(threshold=0.2, terminate=True)
    agent = agent or with_hindsight(goal)
    return created(builders.flat(agent, world, num_envs=3, heatup=30, training=90))


def low(goal, agent=TD3):
    return created(stack(TD3, agent, goals=goal, training=90))


def top(goal, agent=TD3):
    params = stack(agent, goals=GOALS, training=90)
    first, second = params.levels
    return created(replace(params, levels=(replace(first, goal_space=goal), second)))


PLACES = {
    "flat": flat,
    "low": low,
    "low in hindsight": partial(low, agent=with_hindsight()),
    "top": top,
    "top in hindsight": partial(top, agent=with_hindsight()),
}


@parameter_class
class Short(rl.GoalSpace):
    def achieved(self, observation):
        return super().achieved(observation)[:, :1]


@parameter_class
class Plain(rl.GoalSpace):
    def achieved(self, observation):
        return super().achieved(observation)[:, 0]


@parameter_class
class Numbers(rl.GoalSpace):
    def judge(self, goal, achieved):
        return super().judge(goal, achieved)._replace(is_final=np.zeros(len(goal)))


@parameter_class
class One(rl.GoalSpace):
    def judge(self, goal, achieved):
        return super().judge(goal, achieved)._replace(reward=np.array([5.0]))


@parameter_class
class Nothing(rl.GoalSpace):
    def judge(self, goal, achieved):
        return None


@parameter_class
class Listed(rl.GoalSpace):
    def achieved(self, observation):
        return super().achieved(observation).tolist()


@parameter_class
class Halved(rl.GoalSpace):
    def difference_of(self, goal, achieved):
        return (achieved - goal)[:, :1]


@parameter_class
class Static(rl.GoalSpace):
    @staticmethod
    def achieved(observation):
        return observation["achieved_goal"]


@parameter_class
class OfClass(rl.GoalSpace):
    @classmethod
    def achieved(cls, observation):
        return observation["achieved_goal"]


@parameter_class
class OneLater(rl.GoalSpace):
    """One achieved goal for all where there are more than two rows."""

    def achieved(self, observation):
        found = super().achieved(observation)
        return found if len(found) <= 2 else found[:1]


@parameter_class
class FewLater(rl.GoalSpace):
    """A reward too few where there are more than two rows."""

    def judge(self, goal, achieved, before=None):
        verdict = super().judge(goal, achieved, before=before)
        return verdict if len(goal) <= 2 else verdict._replace(reward=verdict.reward[1:])


class WithoutEnds:
    """Half of a goal space, before another one."""

    def judge(self, goal, achieved, before=None):
        verdict = super().judge(goal, achieved)
        return verdict if len(goal) <= 2 else verdict._replace(is_final=verdict.is_final[:1])


@parameter_class
class MixedLater(WithoutEnds, rl.GoalSpace):
    pass


@parameter_class
class Undefined(rl.GoalSpace):
    """Rewards of 0 / 0 at goals far away."""

    def judge(self, goal, achieved):
        verdict = super().judge(goal, achieved)
        far = np.abs(verdict.difference).max(axis=1) > 0.3
        return verdict._replace(reward=np.where(far, np.nan, verdict.reward))


@parameter_class
class Unseen(rl.GoalSpace):
    """Places that are unknown on one side."""

    def achieved(self, observation):
        found = super().achieved(observation)
        return np.where(found[:, :1] > 0, np.nan, found)


@parameter_class
class Loaded(rl.GoalSpace):
    def build(self, context):
        return self


def of(kind):
    return kind(**{each.name: getattr(GOALS, each.name) for each in fields(GOALS)})


@pytest.mark.drawn(one_of=3, each="kind")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Short, "Short.achieved returns float32 of shape (2, 1) for 2 rows; needed ... (2, 2)"),
        (Plain, "Plain.achieved returns float32 of shape (2,) for 2 rows; needed ... (2, 2)"),
        (Numbers, "Numbers.judge returns is_final as float64 ... a Verdict with bool"),
        (One, "One.judge returns reward as float64 of shape (1,) for 2 rows"),
        (Nothing, "Nothing.judge returns difference as object ... a Verdict with float"),
        (Listed, "Listed.achieved returns object of shape (2, 2) for 2 rows; needed is an array"),
        (Halved, "Halved.judge returns difference as float32 of shape (2, 1) for 2 rows"),
    ],
)
def test_goals_of_wrong_form_are_refused_when_built(kind, message, place):
    check_refused(lambda: PLACES[place](of(kind)).close(), SpaceError, message)


@pytest.mark.drawn(one_of=3, each="kind")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (OneLater, "OneLater.achieved returns float32 of shape (1, 2) for 3 rows; needed"),
        (FewLater, "FewLater.judge returns reward as float64 of shape (2,) for 3 rows; needed"),
        (MixedLater, "MixedLater.judge returns is_final as bool of shape (1,) for 3 rows; needed"),
    ],
)
def test_goals_of_too_few_rows_later_are_errors(kind, message, place):
    with PLACES[place](of(kind)) as manager:
        check_refused(lambda: list(manager.improve()), RunError, message)


@pytest.mark.drawn(one_of=3, each="kind")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", [Static, OfClass])
def test_goals_of_static_and_class_methods_are_accepted(kind, place):
    with PLACES[place](of(kind)) as manager:
        list(manager.improve())


@pytest.mark.parametrize("kind", [Undefined, Unseen])
def test_hindsight_goals_that_are_not_finite_are_named(kind):
    method = "judge" if kind is Undefined else "achieved"
    with flat(of(kind)) as manager, warnings.catch_warnings():
        warnings.simplefilter("ignore", rl.CoachWarning)  # rewards differ from the environment's
        message = f"{kind.__name__}.{method} returned NaN or infinity"
        check_refused(lambda: list(manager.improve()), NonFiniteError, message)


class Dial(gymnasium.Env):
    """A hand that turns, and an hour to show; as angles or as whole degrees."""

    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, low=0.0, kind="float32"):
        self.low = low
        goal = spaces.Box(low, low + 6.3, (1,), np.dtype(kind).type)
        place = spaces.Box(-50, 50, (1,), np.float32)
        shown = {"observation": place, "achieved_goal": place, "desired_goal": goal}
        self.observation_space = spaces.Dict(shown)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        self.angle, self.goal = self.np_random.uniform(self.low, self.low + 6.28, 2)
        return self._shown(), {}

    def step(self, action):
        self.time += 1
        self.angle = self.low + (self.angle + float(action[0]) - self.low) % (2 * np.pi)
        away = (self.angle - self.goal + np.pi) % (2 * np.pi) - np.pi
        reward = 0.0 if abs(away) <= 0.1 else -1.0
        return self._shown(), reward, False, self.time >= 12, {}

    def _shown(self):
        here, wanted = (np.full(1, each, np.float32) for each in (self.angle, self.goal))
        dtype = self.observation_space["desired_goal"].dtype
        return {"observation": here, "achieved_goal": here, "desired_goal": wanted.astype(dtype)}


ANGLE = rl.GoalSpace(
    key="achieved_goal", low=(-np.pi,), high=(np.pi,), threshold=(0.1,), angles=(0,)
)


def dial(**more):
    return rl.GymnasiumParameters(level=f"{MODULE}:Dial", kwargs=more)


@pytest.mark.parametrize("low", [0.0, -np.pi])
def test_angles_that_a_flat_agent_is_shown_otherwise_are_warned_of_once(low):
    hindsight = rl.HindsightParameters(goal=ANGLE)
    agent = replace(TD3, memory=rl.ReplayMemoryParameters(capacity=3_000, relabelling=hindsight))
    with (
        flat(None, dial(low=low), agent) as manager,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        list(manager.improve())
    texts = [str(each.message) for each in caught if each.category is rl.CoachWarning]
    assert len(texts) == (low == 0.0)
    assert all("angle lies out of the GoalSpace's bounds" in each for each in texts)


def test_angles_at_the_top_are_shown_within_the_bounds_also_in_hindsight():
    params = stack(with_hindsight(), goals=replace(ANGLE, threshold=(0.3,)), training=90)
    first, second = params.levels
    levels = (replace(first, goal_space=ANGLE), second)
    with created(replace(params, levels=levels, environment=dial())) as manager:
        list(manager.improve())
        batch = manager.graph.agents["top"].memory.sample(500)
    for seen in (batch.observation, batch.next_observation):
        shown = seen["desired_goal"].numpy()
        assert np.abs(shown).max() <= np.pi + 1e-6
        assert shown.min() < -0.5 < 0.5 < shown.max()


RELATIVE = replace(GOALS, relative=True, observed="relative")
LEVEL = "observed='relative', and the agent's goals are shown as absolute"
REFUSED = [  # call, kind of error, message
    (lambda: flat(replace(GOALS, observed="relative")), rl.ConfigurationError, LEVEL),
    (
        lambda: low(RELATIVE, with_hindsight(GOALS)),
        rl.ConfigurationError,
        "observed='absolute', and the agent's goals are shown as relative",
    ),
    (lambda: top(GOALS, with_hindsight(RELATIVE)), rl.ConfigurationError, LEVEL),
    (
        lambda: flat(of(Loaded)),
        rl.ConfigurationError,
        "is a Loaded, which a level builds; give it to",
    ),
    (
        lambda: flat(ANGLE, dial(kind="int64")),
        SpaceError,
        "float32 under 'achieved_goal', under 'desired_goal', where int64 would cut off",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_goals_that_hindsight_would_show_otherwise_are_refused(call, kind, message):
    check_refused(lambda: call().close(), kind, message)


def test_relative_goals_of_a_level_are_accepted_in_hindsight():
    for goal in (None, RELATIVE):
        low(RELATIVE, with_hindsight(goal)).close()
    flat(replace(GOALS, relative=True, reach=(0.5, 0.5))).close()  # for the actions above
