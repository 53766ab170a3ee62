"""A sampler unit of a user that relabels sub-goals by the likelihood of the steps below."""

from dataclasses import replace

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import End
from coach_rl.extensions.data.prefill import DataSetParameters
from coach_rl.extensions.hac.hindsight_actions import HindsightActionParameters
from coach_rl.extensions.hiro.steps_below import SubGoalRelabelling
from coach_rl.memories.batches import LOW_BEGIN
from coach_rl.memories.samplers import SamplerUnit
from tests.builders import agents_of, created
from tests.extensions.hiro.test_hiro_agent import GOALS, SETTINGS, recorded, stack


class Halves(SubGoalRelabelling):
    """Shows half of a sub-goal where that explains the steps below better."""

    name = "halves"

    def relabelled(self, low):
        half = np.float32(0.5) * low.sent
        whole_fits, half_fits = self.log_likelihood(np.stack((low.sent, half), axis=1), low).T
        return np.where((half_fits > whole_fits)[:, None], half, low.sent)


@parameter_class
class HalvesParameters:
    after: str = "gather"

    def build(self, context):
        return Halves(context)


UNIT = rl.ReplayMemoryParameters(capacity=500, units=(HalvesParameters(),))
PLACES = replace(GOALS, relative=False, reach=None, observed="absolute")
WITHOUT_NOISE = {key: value for key, value in SETTINGS.items() if key != "exploration"}


def above(kind=rl.TD3AgentParameters, **changes):
    settings = WITHOUT_NOISE if kind is rl.SACAgentParameters else SETTINGS
    return kind(**{**settings, "memory": UNIT, **changes})


def plain_log_likelihood(low, goals, sub_goal, begun, steps):
    """Step by step, summed in float64."""
    wanted = np.clip(begun + sub_goal if goals.relative else sub_goal, goals.low, goals.high)
    total = 0.0
    half = (low.action_space.high - low.action_space.low) / 2
    for seen, action in steps:
        shown = wanted - seen["achieved_goal"] if goals.observed == "relative" else wanted
        now = low.policy_actions(
            {**{k: v[None] for k, v in seen.items()}, "desired_goal": shown[None].astype("f4")}
        )[0]
        total -= 0.5 * float((((action - now).astype(np.float64) / half) ** 2).sum())
    return total


@pytest.mark.parametrize(
    ("kind", "goals"),
    [
        pytest.param(rl.TD3AgentParameters, GOALS, id="TD3, relative"),
        pytest.param(rl.SACAgentParameters, PLACES, id="SAC, absolute"),
        pytest.param(rl.DDPGAgentParameters, GOALS, id="DDPG, relative", marks=pytest.mark.slow),
    ],
)
def test_unit_relabels_by_the_steps_below_as_plain_lists_do(kind, goals, monkeypatch):
    manager, decisions = recorded(stack(above(kind), goals=goals), monkeypatch)
    top, low = agents_of(manager)
    batch = top.memory.sample(100)
    store, shown = top.memory.store, batch.action.numpy()
    halved = clear = 0
    for index, position in enumerate(batch.position.numpy()):
        row, step = store.rows_of(position), store.steps_of(position)
        made = decisions[row][step]
        sent = made.sent
        whole, half = (
            plain_log_likelihood(low, goals, goal, made.begun, made.steps)
            for goal in (sent, 0.5 * sent)
        )
        if abs(whole - half) > 1e-5:
            clear += 1
            halved += half > whole
            np.testing.assert_array_equal(shown[index], 0.5 * sent if half > whole else sent)
    assert clear > 60
    assert 5 < halved < clear - 5
    assert not batch.extras
    manager.close()


def test_unit_reads_ends_that_are_kept_for_it(monkeypatch):
    memory = replace(UNIT, units=(EndsParameters(),), extras=("below",))
    manager, decisions = recorded(stack(above(memory=memory)), monkeypatch)
    top, low = agents_of(manager)
    batch = top.memory.sample(200)
    store, found = top.memory.store, set()
    for index, position in enumerate(batch.position.numpy()):
        end = decisions[store.rows_of(position)][store.steps_of(position)].end
        assert batch.extras["was_end"][index] == end
        found.add(end)
    assert set(batch.extras) == {"was_end", "below"}
    assert {int(End.GOAL), int(End.HORIZON)} <= set(batch.extras["below"].tolist())
    assert len(found) > 1
    assert LOW_BEGIN not in store.fields
    assert "/end" not in low.memory.store.fields
    manager.close()


class Ends(SamplerUnit):
    """Shows the bits of how a decision ended under another name."""

    name, inputs, outputs = "ends", ("/end",), ("/was_end",)

    def __call__(self, batch, size):
        return {"/was_end": batch["/end"]}


@parameter_class
class EndsParameters:
    after: str = "sample"

    def build(self, context):
        assert context.place.level.name == "top"
        assert context.place.below.name == "low"
        return Ends()


def with_goals_above(agent):
    params = stack(agent)
    top, low = params.levels
    return replace(params, levels=(replace(top, goal_space=PLACES, horizon=5), low))


IN_HINDSIGHT = replace(
    UNIT,
    relabelling=rl.HindsightParameters(),
    parts=(HindsightActionParameters(penalty=-1.0),),
)
LOW_STEPS = replace(
    UNIT, units=(EndsParameters(after="sample"),), parts=(DataSetParameters(source="data/set-v0"),)
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: created(stack(low=above())), "level 'low': Halves needs a level below it"),
        (
            lambda: created(stack(above(), low=rl.PPOAgentParameters())),
            "'top': Halves relabels sub-goals by level 'low' below, .* got PPOAgent",
        ),
        (lambda: created(stack(above(), frozen=True)), "remembers nothing while it is frozen"),
        (
            lambda: created(with_goals_above(above(memory=IN_HINDSIGHT))),
            "'top': sampler unit 'halves' and hindsight actions both replace sub-goals",
        ),
        (lambda: created(stack(above(memory=LOW_STEPS))), "has no end, which a sampler"),
    ],
)
def test_relabelling_unit_out_of_place_is_refused(call, message):
    with pytest.raises(ConfigurationError, match=message):
        call()
