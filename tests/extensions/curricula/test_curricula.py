"""Curricula: what is stored is judged by today's factors, which follow schedules and success."""

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError, ParameterError, RunError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import End
from coach_rl.extensions.testing import check_goals
from coach_rl.extensions.testing.states import assert_same_state
from tests.agents.goal_stacks import RELATIVE, SETTINGS, stack
from tests.agents.resuming import after, assert_resumes
from tests.builders import agents_of, created
from tests.extensions.learned_goals.test_learned_goals import finished, with_workers
from tests.extensions.testing.test_goal_contract import at
from tests.refusals import check_refused

PLACE = "achieved_goal"
GOALS = replace(RELATIVE, threshold=(0.04, 0.04), reach=(0.4, 0.2), reward="sparse")
SHRINKING = rl.LinearSchedule(start=5.0, end=1.0)
BY_SUCCESS = rl.SuccessSchedule(values=(0.25, 0.5, 1.0), advance=0.6, retreat=0.2, over=8)
TD3 = rl.TD3AgentParameters(**SETTINGS)
HIRO = rl.HIROAgentParameters(**SETTINGS)
HAC = rl.HACAgentParameters(
    learner=rl.DDPGAgentParameters(learning=SETTINGS["learning"], update_mode="eager")
)
HER = rl.ReplayMemoryParameters(relabelling=rl.HindsightParameters(goal_ends_episode=True))


@parameter_class
class NearOrFar(rl.GoalSpace):
    """Goals with rewards of their own, and places of their own."""

    def achieved(self, observation):
        return observation[PLACE] + 0.1

    def judge(self, goal, achieved, before=None):
        verdict = super().judge(goal, achieved)
        return verdict._replace(reward=np.where(verdict.reached, 1.0, -self.threshold[0]))


OWN = NearOrFar(**{each.name: getattr(GOALS, each.name) for each in fields(GOALS)})


def of(top=TD3, low=TD3, *, goals=GOALS, curriculum=None, **level):
    return stack(top, low, goals=goals, changes=(rl.Curriculum(**(curriculum or {})),), **level)


def run(params):
    manager = created(params)
    records = list(manager.improve())
    return manager, records


def factors(records, name):
    key = f"level/{name}_factor"
    return [each.scalars[key] for each in records if each.level == "low" and key in each.scalars]


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("memory", [rl.ReplayMemoryParameters(), HER], ids=["plain", "hindsight"])
@pytest.mark.parametrize("goals", [GOALS, OWN], ids=["offsets", "own rewards"])
def test_drawn_rewards_are_those_of_the_thresholds_now(goals, memory):
    params = of(low=replace(TD3, memory=memory), goals=goals, curriculum={"threshold": SHRINKING})
    manager, records = run(params)
    _, agent = agents_of(manager)
    store, found = agent.memory.store, agent.memory.sampler(300)
    positions = found["/positions"].numpy()
    then = store.read(f"/next_observations/{PLACE}", positions).astype(np.float64)
    goal = found["/goal_space/goal"].numpy().astype(np.float64)
    away = np.abs(then + (0.1 if goals is OWN else 0.0) - goal)
    near, was_near = ((away <= factor * 0.04).all(axis=1) for factor in (1.0, 3.0))
    assert 0 < near.sum() < was_near.sum()
    wanted = np.where(near, 1.0, -0.04) if goals is OWN else near - 1.0
    np.testing.assert_allclose(found["/rewards"], wanted, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found["/discounts"].numpy() == 0, near)
    kept = factors(records, "threshold")
    assert kept[0] > 4.5
    assert kept[-1] < 1.3
    assert kept == sorted(kept, reverse=True)


@pytest.mark.parametrize("setting", ["reach", "bounds"])
def test_drawn_actions_above_stand_for_what_was_sent(setting):
    relative = setting == "reach"
    goals = GOALS if relative else replace(GOALS, relative=False, reach=None)
    center = None if relative else (0.5, 0.0)
    growing = rl.LinearSchedule(start=0.25, end=1.0)
    manager, _ = run(of(goals=goals, curriculum={setting: growing, "center": center}, training=300))
    top, low = agents_of(manager)
    assert top.action_space.high.tolist() == [1.0, 1.0]
    found, store = top.memory.sampler(100), top.memory.store
    sent = found["/goal_space/sent"].numpy().astype(np.float64)
    now = 0.25 + 0.75 * manager.graph.clock.environment_steps / 300
    now = min(now, 1.0)
    if relative:
        middle, half = 0.0, now * np.array((0.4, 0.2))
    else:
        low, high = (0.5 + now * (each - 0.5) for each in (-1.0, 1.0))
        middle, half = np.array([(low + high) / 2, 0.0]), np.array([(high - low) / 2, now])
    wanted = np.clip((sent - middle) / half, -1, 1)
    np.testing.assert_allclose(found["/actions"], wanted, rtol=0, atol=2e-6)
    then = store.read("/actions", found["/positions"].numpy())
    assert np.abs(then - wanted).max() > 0.1


def test_bounds_and_reach_limit_what_the_level_above_sends():
    half = rl.Curriculum(
        reach=rl.ConstantSchedule(value=0.5),
        bounds=rl.ConstantSchedule(value=0.25),
        center=(0.5, 0.0),
    )
    manager = created(
        of(curriculum={name: getattr(half, name) for name in ("reach", "bounds", "center")})
    )
    space = manager.graph.training.levels[1].params.goal_space
    seen = {PLACE: np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 0.2]], np.float32)}
    action = np.array([[1.0, 1.0], [-0.5, 0.5], [0.0, 1.0]], np.float32)
    # Displacements of at most (0.2, 0.1), then bounds of 0.125 to 0.625 and -0.25 to 0.25.
    wanted = [[0.625, 0.1], [0.4, 0.05], [0.125, 0.25]]
    np.testing.assert_allclose(space.target(action, seen), wanted, atol=1e-6)


def test_success_steps_are_those_of_a_plain_count():
    """The window begins with the last change, and is that of training alone."""
    manager = created(of(curriculum={"reach": BY_SUCCESS, "threshold": SHRINKING}, training=900))
    graph, level = manager.graph, manager.graph.training.levels[1]
    note, tick, ended, stages, window, stage = level.sub_episodes.note, graph.tick, [], [], [], 0

    def noted(rows, answered, where, judgement, *, phase):
        note(rows, answered, where, judgement, phase=phase)
        if phase is not rl.core.Phase.HEATUP:
            ended.extend(((judgement.end[where] & End.GOAL) > 0).tolist())

    def ticked():
        nonlocal stage, window
        last = window[-8:]
        if len(last) == 8:
            moved = stage + (sum(last) >= 0.6 * 8) - (sum(last) < 0.2 * 8)
            moved = min(max(moved, 0), 2)
            if moved != stage:
                stage, window = moved, []
        stages.append((graph.clock.stages.get("low/reach", 0), stage))
        found = tick()
        window += ended
        ended.clear()
        return found

    level.sub_episodes.note, graph.tick = noted, ticked
    records = list(manager.improve())
    assert [found for found, _ in stages] == [wanted for _, wanted in stages]
    assert {wanted for _, wanted in stages} >= {0, 1}
    assert set(factors(records, "reach")) <= {0.25, 0.5, 1.0}


@pytest.mark.parametrize(("judged_by", "wanted"), [("final", 1.0), ("current", 3.0)])
def test_evaluations_judge_by_the_thresholds_that_the_curriculum_names(judged_by, wanted):
    wide = rl.ConstantSchedule(value=3.0)
    half = rl.ConstantSchedule(value=0.5)
    curriculum = {"threshold": wide, "reach": half, "evaluations": judged_by}
    manager = created(of(curriculum=curriculum))
    goals = manager.graph.evaluation.levels[1].params.goal_space
    assert goals.threshold == (wanted * 0.04, wanted * 0.04)
    assert goals.judge(np.zeros((1, 2)), np.full((1, 2), 0.1)).reached.tolist() == [wanted == 3.0]
    training = manager.graph.training.levels[1].params.goal_space
    assert training.judge(np.zeros((1, 2)), np.full((1, 2), 0.1)).reached.all()
    scores = manager.evaluations.scores_of(manager.evaluations.policies())
    level = scores.levels["low"]
    assert level["evaluation_level/threshold_factor"] == wanted
    assert level["evaluation_level/reach_factor"] == 0.5


def test_horizon_of_a_curriculum_cuts_sub_episodes():
    third = rl.PiecewiseSchedule(points=((100, 0.3), (101, 1.0)))
    manager = created(of(goals=replace(GOALS, threshold=(0.0, 0.0)), curriculum={"horizon": third}))
    level, lengths = manager.graph.training.levels[1], []
    note = level.sub_episodes.note

    def noted(rows, answered, ended, judgement, *, phase):
        note(rows, answered, ended, judgement, phase=phase)
        steps = manager.graph.clock.environment_steps
        cut = (judgement.end[ended] & End.HORIZON) > 0
        lengths.extend((steps, each) for each in rows.decisions[answered[ended]][cut].tolist())

    level.sub_episodes.note = noted
    manager.run()
    assert {each for steps, each in lengths if steps < 90} == {2}
    assert {each for steps, each in lengths if steps > 130} == {7}


COMBINED = {
    "reach": {"reach": BY_SUCCESS},
    "bounds": {"bounds": rl.LinearSchedule(start=0.3, end=1.0), "center": (0.4, 0.0)},
    "reach and bounds": {"reach": BY_SUCCESS, "bounds": rl.LinearSchedule(start=0.3, end=1.0)},
    "reach and threshold": {"reach": BY_SUCCESS, "threshold": SHRINKING},
}


def above_hindsight(low, goals, curriculum, **given):
    """A stack whose low level learns in hindsight: after 1 or 3 steps, or HAC below HAC."""
    low = replace(TD3, memory=replace(HER, n_step=low)) if isinstance(low, int) else low
    params = of(TD3, low, goals=goals, curriculum=curriculum, **given)
    top, low_level = params.levels
    if low is HAC:
        top = replace(top, agent=HAC, **ON_TOP, parts=(rl.SubGoalTesting(rate=0.3),))
    return replace(params, levels=(top, low_level))


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize("low", [1, 3], ids=["one step", "three steps"])
@pytest.mark.parametrize("observed", ["absolute", "relative"])
@pytest.mark.parametrize("names", ["reach", "bounds", "reach and bounds"])
def test_hindsight_under_a_curriculum_of_actions_rewards_the_goals_shown(names, observed, low):
    goals = replace(GOALS, observed=observed)
    manager, _ = run(above_hindsight(low, goals, COMBINED[names]))
    _, agent = agents_of(manager)
    found = agent.memory.sampler(300)
    sent = agent.memory.store.read("/observations/desired_goal", found["/positions"].numpy())
    assert (sent != found["/observations/desired_goal"].numpy()).any(axis=1).mean() > 0.3
    then = found[f"/next_observations/{PLACE}"].numpy()
    shown = found["/next_observations/desired_goal"].numpy()
    away = np.abs(shown if observed == "relative" else shown - then)
    near = (away <= 0.04).all(axis=1)
    assert 10 < near.sum() < 290
    if low != 3:
        np.testing.assert_array_equal(found["/rewards"], near - 1.0)


def test_hindsight_actions_above_a_growing_reach_stand_for_what_was_achieved():
    growing = rl.LinearSchedule(start=0.5, end=1.0)
    manager, _ = run(above_hindsight(HAC, GOALS, {"reach": growing}, training=300))
    top, _ = agents_of(manager)
    found, store = top.memory.sampler(2_000), top.memory.store
    positions = found["/positions"].numpy()
    before, after = (
        store.read(f"/{when}observations/{PLACE}", positions) for when in ("", "next_")
    )
    half = np.array((0.4, 0.2)) * growing(manager.graph.clock)
    sent, shown = (found[each].numpy() for each in ("/goal_space/sent", "/actions"))
    replaced = np.abs(shown - np.clip(sent / half, -1, 1)).max(axis=1) > 1e-4
    never_clipped = (np.abs(after - before) < 0.5 * np.array((0.4, 0.2))).all(axis=1)
    chosen = replaced & never_clipped
    assert chosen.sum() > 100
    np.testing.assert_allclose(shown[chosen], ((after - before) / half)[chosen], atol=1e-5)


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize(("names", "low"), [*zip(COMBINED, (1, HAC, 1, HAC), strict=True)])
def test_hindsight_under_a_curriculum_resumes_and_collects_alike(names, low, tmp_path):
    params = above_hindsight(low, GOALS, COMBINED[names], training=120)
    assert_resumes(partial(created, params), tmp_path, after(70))
    alone, collected = finished(params), with_workers(params, "inline")
    assert alone[0] == collected[0]
    assert_same_state(alone[1], collected[1])


def test_goals_of_a_curriculum_keep_the_promises_of_goal_spaces():
    goals = replace(GOALS, key="observation", elements=(0, 1))
    manager = created(of(goals=goals, curriculum={"threshold": SHRINKING}))
    check_goals(at(manager.graph.training.levels[1].params.goal_space, TD3))


def test_hac_judges_by_the_thresholds_now():
    top = {"goal_space": replace(GOALS, relative=False, reach=None), "horizon": 5}
    params = of(HAC, HAC, goals=GOALS, curriculum={"threshold": SHRINKING}, training=300)
    first, low = params.levels
    own = rl.Curriculum(threshold=rl.LinearSchedule(start=4.0, end=1.0))
    levels = (replace(first, **top, changes=(own,), parts=(rl.SubGoalTesting(rate=0.3),)), low)
    manager, _ = run(replace(params, levels=levels))
    for agent in agents_of(manager):
        found = agent.memory.sampler(200)
        positions = found["/positions"].numpy()
        then = agent.memory.store.read(f"/next_observations/{PLACE}", positions)
        near = (np.abs(then - found["/goal_space/goal"].numpy()) <= 0.04 + 1e-7).all(axis=1)
        rewards = found["/rewards"].numpy()
        is_judged = rewards != -5.0  # the penalty of a test that was missed
        np.testing.assert_array_equal(rewards[is_judged], near[is_judged] - 1.0)
        assert 0 < near.sum() < is_judged.sum() > 150


def made(*arguments, **given):
    return lambda: created(of(*arguments, **given)).close()


def changed(params, index=0, **changes):
    levels = list(params.levels)
    levels[index] = replace(levels[index], **changes)
    return lambda: created(replace(params, levels=tuple(levels))).close()


@parameter_class
class ShowsHalf(rl.GoalSpace):
    """Goals at half of their distance."""

    def show(self, goal, observation):
        return {key: each / 2 for key, each in super().show(goal, observation).items()}


SHOWS_HALF = ShowsHalf(**{each.name: getattr(GOALS, each.name) for each in fields(GOALS)})
HINDSIGHT = replace(TD3, memory=HER)
REACH = {"reach": BY_SUCCESS}
THRESHOLD = {"threshold": SHRINKING}
ON_TOP = {"goal_space": replace(GOALS, relative=False, reach=None), "horizon": 5}
ASYNCHRONOUS = rl.CollectionParameters(workers=1, mode="asynchronous", ticks=2, staleness=4)
REFUSED = [  # call, kind of error, message
    (
        made(low=HINDSIGHT, goals=SHOWS_HALF, curriculum=REACH),
        ConfigurationError,
        "hindsight shows its goals as GoalSpace.show does, and ShowsHalf overrides show;",
    ),
    (
        lambda: rl.SuccessSchedule(values=(1.0,), advance=0.2),
        ParameterError,
        "retreat must lie below advance",
    ),
    (
        lambda: rl.Curriculum(reach=rl.SuccessSchedule(values=(1.0, 2.0))),
        ParameterError,
        "factor of reach must be above 0, and 1 at most, got 2",
    ),
    (
        lambda: run(of(curriculum={"reach": rl.ConstantSchedule(value=2.0)})),
        RunError,
        "factor of reach must be above 0, and 1 at most, got 2",
    ),
    (made(), ParameterError, "level 'low' has a curriculum of nothing; schedule its threshold"),
    (
        made(curriculum={"horizon": BY_SUCCESS}, horizon=None),
        ParameterError,
        "level 'low' has a curriculum of horizon, and no horizon",
    ),
    (
        made(goals=replace(GOALS, relative=False, reach=None), curriculum=REACH),
        ParameterError,
        "level 'low' has a curriculum of reach, and absolute goals; schedule bounds",
    ),
    (
        made(curriculum={"bounds": BY_SUCCESS, "center": (0.0,)}),
        ParameterError,
        "level 'low' has a curriculum of bounds around (0.0,); give as many elements",
    ),
    (
        made(goals=rl.TimedGoalSpace.of(GOALS, longest=5), curriculum=THRESHOLD),
        ParameterError,
        "curriculum of threshold, and TimedGoalSpace as goal_space; give it a GoalSpace without",
    ),
    (
        made(goals=rl.METRAGoalSpace(), curriculum=THRESHOLD),
        ParameterError,
        "curriculum of threshold, and METRAGoalSpace as goal_space ... that learns nothing",
    ),
    (
        changed(of(curriculum=THRESHOLD), changes=(rl.Curriculum(**THRESHOLD),)),
        ParameterError,
        "level 'top' has a curriculum of threshold, and no goals",
    ),
    (
        changed(of(curriculum=THRESHOLD), **ON_TOP, changes=(rl.Curriculum(bounds=SHRINKING),)),
        ParameterError,
        "level 'top' has a curriculum of bounds, and the environment chooses its goals",
    ),
    (
        made(curriculum={"threshold": rl.SuccessSchedule(values=(2.0, 1.0), level="middle")}),
        ParameterError,
        "Curriculum.threshold of level 'low' waits for ... 'middle', which does not exist",
    ),
    (
        lambda: created(replace(of(curriculum=REACH), source=ASYNCHRONOUS)).close(),
        ConfigurationError,
        "level 'low' changes while it trains, and source.mode='asynchronous'",
    ),
    (made(HIRO, curriculum=REACH), ConfigurationError, "HIRO keeps ... no curriculum of reach"),
    (
        changed(of(rl.GraphAgentParameters(), curriculum=THRESHOLD), **ON_TOP),
        ConfigurationError,
        "keeps which places were reached, and a curriculum of thresholds changes that",
    ),
    (
        made(low=replace(TD3, memory=rl.ReplayMemoryParameters(n_step=3)), curriculum=THRESHOLD),
        ConfigurationError,
        "level 'low': GoalSpace learns or follows a curriculum, and judges single ... n_step=3",
    ),
    (
        made(goals=replace(GOALS, reward=lambda step: step.reward), curriculum=THRESHOLD),
        ConfigurationError,
        "level 'low': a memory judges what it has stored by today's thresholds, which",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_curriculum_that_cannot_be_right_is_refused(call, kind, message):
    check_refused(call, kind, message)
