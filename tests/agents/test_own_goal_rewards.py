"""Levels with rewards, horizons and ends of their own: what is stored, logged, saved, refused."""

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.core.errors import NonFiniteError, RunError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.sessions.acting import Actor
from coach_rl.telemetry import description
from tests.agents.goal_stacks import RELATIVE, SETTINGS, stack
from tests.agents.resuming import after, amid, assert_resumes
from tests.builders import agents_of, created
from tests.refusals import check_refused

PLACE = "achieved_goal"


def cosine(step):
    """FuN (Vezhnevets et al. 2017, section 4): how well the movement follows the direction."""
    way, wanted = step.after[PLACE] - step.before[PLACE], step.goal - step.before[PLACE]
    lengths = np.linalg.norm(way, axis=1) * np.linalg.norm(wanted, axis=1)
    return (way * wanted).sum(axis=1) / np.maximum(lengths, 1e-8)


def potential(step):
    """Shaping by a potential (Ng et al. 1999), less the effort of the action."""
    near = -np.linalg.norm(step.after[PLACE] - step.goal, axis=1)
    far = -np.linalg.norm(step.before[PLACE] - step.goal, axis=1)
    return 0.99 * near - far - 0.1 * np.square(step.action).sum(axis=1) * step.duration


def nothing(step):
    return np.zeros((len(step.goal), 1))


def words(step):
    return np.full(len(step.goal), "good")


def infinite(step):
    return np.full(len(step.goal), np.inf)


def by_distance(observation, goal, uniform):
    """More decisions for goals that are further away."""
    distance = np.linalg.norm(goal - observation[PLACE], axis=1)
    return np.clip((10 * distance).astype(int), 1, 7)


def drawn(observation, goal, uniform):
    return 1 + (7 * uniform).astype(int)


def too_long(observation, goal, uniform):
    return np.full(len(goal), 8)


def half(observation, goal, uniform):
    return np.full(len(goal), 1.5)


class Impatient(OffPolicyAgent):
    """Gives up goals by chance where it stands to the right."""

    ends_by_chance = True

    def ends(self, row_state, rows, observation, clock):
        return np.where(observation[PLACE][:, 0] > 0, 0.5, 0.0)


@parameter_class
class ImpatientParameters(rl.TD3AgentParameters):
    AGENT = Impatient


class Ending(OffPolicyAgent):
    """Ends by what its parameters name."""

    def ends(self, row_state, rows, observation, clock):
        return ANSWERS[self.name](len(rows))


class EndingByChance(Ending):
    ends_by_chance = True


ANSWERS = {
    "one": lambda count: np.zeros(1, np.bool_),
    "none": lambda count: None,
    "share": lambda count: np.full(count, 0.3),
    "much": lambda count: np.full(count, 1.7),
    "undefined": lambda count: np.full(count, np.nan),
}


@parameter_class
class EndingParameters(rl.TD3AgentParameters):
    AGENT = Ending


@parameter_class
class EndingByChanceParameters(rl.TD3AgentParameters):
    AGENT = EndingByChance


@parameter_class
class Progress(rl.GoalSpace):
    """Goals that reward how much nearer a decision led."""

    uses_before = True

    def judge(self, goal, achieved, before=None):
        verdict = super().judge(goal, achieved)
        far, near = (np.linalg.norm(each - goal, axis=1) for each in (before, achieved))
        return verdict._replace(reward=(far - near).astype(np.float64))


def of_kind(kind):
    return kind(**{each.name: getattr(RELATIVE, each.name) for each in fields(RELATIVE)})


PROGRESS = of_kind(Progress)


def successes(step):
    return step.info["is_success"] + step.reward


def without_chance(observation, goal):
    return np.full(len(goal), 3)


def with_rewards(function, **level):
    return stack(
        rl.TD3AgentParameters(**SETTINGS), goals=replace(RELATIVE, reward=function), **level
    )


def test_goals_may_reward_the_change_of_what_is_achieved():
    manager = created(stack(rl.TD3AgentParameters(**SETTINGS), goals=PROGRESS))
    _, low = agents_of(manager)
    kept, store = [], low.store

    def note(transition):
        kept.append(transition)
        store(transition)

    low.store = note
    list(manager.improve())
    assert len(kept) > 60
    for each in kept:
        before, now = each.observation[PLACE], each.next_observation[PLACE]
        goal = before + each.observation["desired_goal"]
        far, near = (np.linalg.norm(place - goal, axis=1) for place in (before, now))
        np.testing.assert_allclose(each.reward, far - near, rtol=0, atol=2e-6)
    manager.close()


OWN_FUNCTIONS = {
    "reward": {"goals": replace(RELATIVE, reward=cosine)},
    "reward and horizon": {
        "goals": replace(RELATIVE, reward=potential),
        "horizon_of": by_distance,
    },
    "drawn horizon": {"horizon_of": drawn},
    "own ends": {"low": ImpatientParameters(**SETTINGS)},
}


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("name", OWN_FUNCTIONS)
def test_stack_with_own_functions_resumes_bit_for_bit(name, tmp_path):
    check_resumes(rl.TD3AgentParameters(**SETTINGS), OWN_FUNCTIONS[name], tmp_path)


def check_resumes(top, functions, tmp_path):
    assert_resumes(partial(created, stack(top, **functions)), tmp_path, after(100, amid))


@pytest.mark.parametrize(
    "changes",
    [{"horizon_of": drawn}, {"low": ImpatientParameters(**SETTINGS)}],
    ids=["horizons", "ends"],
)
def test_evaluations_draw_the_same_numbers_each_time(changes):
    manager = created(stack(rl.TD3AgentParameters(**SETTINGS), **changes))
    policies = manager.evaluations.policies()
    first, second = (manager.evaluations.scores_of(policies) for _ in range(2))
    assert first.levels == second.levels
    manager.close()


def test_reward_function_of_infos_is_not_called_where_none_arrive():
    manager = created(with_rewards(successes))
    list(manager.improve())
    agent, space = Actor(manager.graph, num_envs=2, seed=0), manager.graph.evaluation.simulators
    observation = {
        key: np.zeros((2, *each.shape)) for key, each in space.spaces.observation.items()
    }
    for _ in range(12):
        action = agent.act(observation, begins=np.zeros(2, np.bool_), greedy=True, over={})
        assert np.isfinite(action).all()
    manager.close()


def wanted_above(step, above):
    """The value of where the level above would rather go, and how far that is."""
    away = np.linalg.norm(above.goals(step.before) - step.goal, axis=1)
    return above.values(step.before) - away


def test_view_of_the_level_above_shows_it_its_own_goal():
    """In three levels the middle one sees what is left to its own goal, at the same decision."""
    params = with_rewards(wanted_above, training=200)
    top, low = params.levels
    middle = replace(low, name="middle", goal_space=replace(RELATIVE, reward="sparse"), horizon=3)
    manager = created(replace(params, levels=(top, middle, low)))
    level = manager.graph.training.levels[2]
    (above,) = level._judge._above
    seen, wanted, values, judged = [], [], above.critic.values, level._judge.judgement

    def valued(observation, action=None):
        seen.append(observation)
        return values(observation, action)

    def rewarded(answer, index, end):
        wanted.append(level.rows.outer_goals[-1][index] - level.rows.observation[PLACE][index])
        return judged(answer, index, end)

    above.critic.values, level._judge.judgement = valued, rewarded
    list(manager.improve())
    assert len(seen) == len(wanted) > 50
    for observation, offset in zip(seen, wanted, strict=True):
        np.testing.assert_allclose(observation["desired_goal"], offset, atol=1e-6)
    manager.close()


TD3 = rl.TD3AgentParameters(**SETTINGS)
PPO = rl.PPOAgentParameters()
HER = rl.ReplayMemoryParameters(relabelling=rl.HindsightParameters())
WITH_HER = rl.DDPGAgentParameters(memory=HER, **SETTINGS)


def made(params):
    created(params).close()


def run(params):
    manager = created(params)
    try:
        list(manager.improve())
    finally:
        manager.close()


def above_at_the_top():
    params = with_rewards(cosine)
    top, low = params.levels
    own = replace(RELATIVE, relative=False, reach=None, reward=wanted_above)
    return replace(params, levels=(replace(top, goal_space=own, horizon=5), low))


REFUSED = [  # call, kind of error, message
    (lambda: replace(RELATIVE, reward="fast"), rl.ParameterError, "GoalSpace.reward"),
    (lambda: replace(RELATIVE, reward=by_distance), rl.ParameterError, "function of a GoalStep"),
    (
        lambda: rl.LevelParameters(agent=TD3, horizon_of=drawn),
        rl.ParameterError,
        "give it the longest as horizon",
    ),
    (
        lambda: made(stack(TD3, WITH_HER, goals=replace(RELATIVE, reward=cosine))),
        rl.ConfigurationError,
        "GoalSpace.reward=cosine does not give",
    ),
    (
        lambda: made(stack(TD3, WITH_HER, goals=PROGRESS)),
        rl.ConfigurationError,
        "Progress.judge needs what was achieved before them, too (uses_before)",
    ),
    (lambda: run(with_rewards(nothing)), RunError, "GoalSpace.reward (nothing) returned"),
    (lambda: run(with_rewards(words)), RunError, "GoalSpace.reward (words) returned <U4"),
    (lambda: run(with_rewards(infinite)), NonFiniteError, "reward that is not finite in row"),
    (
        lambda: run(stack(TD3, horizon_of=too_long)),
        RunError,
        "whole number from 1 to 7, the level's horizon",
    ),
    (lambda: run(stack(TD3, horizon_of=half)), RunError, "horizon_of (half) must return"),
    (
        lambda: stack(TD3, horizon_of=without_chance),
        rl.ParameterError,
        "horizon_of must be a function of observation, goal and uniform numbers ... without_chance",
    ),
    *(
        (
            lambda name=name: run(stack(TD3, EndingParameters(name=name, **SETTINGS))),
            RunError,
            "level 'low': Ending.ends must return True or False for each of",
        )
        for name in ("one", "none", "share")
    ),
    *(
        (
            lambda name=name: run(stack(TD3, EndingByChanceParameters(name=name, **SETTINGS))),
            RunError,
            "level 'low': EndingByChance.ends must return a chance from 0 to 1 for each of",
        )
        for name in ("one", "much", "undefined")
    ),
    (
        lambda: made(stack(PPO, goals=replace(RELATIVE, reward=wanted_above))),
        rl.ConfigurationError,
        "(wanted_above) reads the level above, which needs TD3, DDPG or SAC there ... PPOAgent",
    ),
    (
        lambda: made(above_at_the_top()),
        rl.ConfigurationError,
        "level 'top': GoalSpace.reward (wanted_above) takes a view of the level above, and there",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_own_functions_that_do_not_fit_are_refused(call, kind, message):
    check_refused(call, kind, message)


def test_description_names_the_functions():
    manager = created(with_rewards(cosine, horizon_of=drawn))
    text = description.described(manager)
    assert "rewarded by cosine" in text
    assert "horizon 7 decisions, or fewer by horizon_of" in text
    manager.close()
