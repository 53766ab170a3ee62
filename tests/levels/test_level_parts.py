"""Parts of a level: their order, what counts when ends coincide, and what they log and save."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.level_parts import Hooks, LevelPart
from coach_rl.core.levels import LevelPartParameters
from coach_rl.core.records import End
from coach_rl.extensions.strict_subgoals.stop_on_failure import StopOnFailure
from tests.levels.plain_stack import Level
from tests.levels.scripted_stack import build, managers
from tests.levels.test_level_manager import GOALS
from tests.levels.testing_part import DrawnTests


@dataclass(frozen=True, kw_only=True)
class OfParts(Level):
    """A level with any parts."""

    own: tuple = ()

    @property
    def parts(self):
        return self.own


class Plain(LevelPartParameters):
    """A part as it is given."""

    def __init__(self, part, **ended_by):
        self.part, self.ended_by = part, ended_by

    def build(self, context):
        self.part.context = context
        return self.part


class Paying(LevelPart):
    """Pays a reward, whatever the parts before it said."""

    def __init__(self, reward):
        self.reward = reward

    def judged(self, judgement, answer, shown):
        return judgement._replace(reward=np.full(len(answer), self.reward))


class Ending(LevelPart):
    """Ends every sub-episode after some steps of the simulator."""

    def __init__(self, steps):
        self.steps = steps

    def ends(self, answer, index):
        over = self.context.rows.duration[index] >= self.steps
        return over * np.uint8(End.OPTION)


class Bonus(LevelPart):
    """Pays the agent one more for each decision."""

    def observed(self, outcome, answer, clock):
        return replace(outcome, reward=outcome.reward + 1)


TOP = Level(name="top")


def stack(*parts, ticks=40, rows=2, clock=None, **settings):
    """A stack of two levels, the lower with parts, after so many ticks; the lower's transitions."""
    low = OfParts(name="low", **{"goal_space": GOALS, "horizon": 6, **settings}, own=parts)
    top, agents = build(range(rows), [TOP, low], clock or Clock())
    for _ in range(ticks):
        top.recv()
    return managers(top)[1], agents[1].transitions


def test_hooks_of_parts_are_those_that_they_override_in_their_order():
    first, second = Paying(1), Paying(2)
    hooks = Hooks.of([LevelPart(), first, Bonus(), second])
    assert hooks.judged == (first.judged, second.judged)
    assert len(hooks.observed) == 1
    assert hooks.deciding == hooks.decided == hooks.ends == ()


@pytest.mark.parametrize("rewards", [(1, 2), (2, 1)])
def test_level_parts_of_two_that_change_a_reward_the_later_wins(rewards):
    _, transitions = stack(*(Plain(Paying(reward)) for reward in rewards))
    assert {each["reward"] for kept in transitions.values() for each in kept} == {rewards[1]}


def test_level_part_ends_sub_episodes_as_truncations_and_logs_their_share():
    level, transitions = stack(Plain(Ending(2), short=End.OPTION))
    ended = [each for kept in transitions.values() for each in kept if each["end"] & End.OPTION]
    assert ended
    assert not any(each["terminated"] for each in ended if each["end"] == End.OPTION)
    found = level.drain()
    assert 0 < found["short_share"] <= 1
    assert "own_end_share" not in found


def test_level_part_that_changes_what_is_observed_changes_no_figure_of_the_level():
    plain, known = stack()
    level, transitions = stack(Plain(Bonus()))
    rewards, more = (
        [each["reward"] for kept in found.values() for each in kept]
        for found in (known, transitions)
    )
    np.testing.assert_allclose(more, np.add(rewards, 1))
    assert level.drain() == plain.drain()


def test_level_parts_with_one_key_are_refused():
    with pytest.raises(ConfigurationError, match=r"level 'low' has two parts that save .*testing"):
        stack(DrawnTests(rate=0.1), DrawnTests(rate=0.2), ticks=0)


def test_level_part_that_tests_draws_as_saved_and_follows_what_was_decided_elsewhere():
    level, _ = stack(DrawnTests(rate=0.5), ticks=7)
    assert level.own_state_dict()["testing"].keys() == {"noise"}
    plain, _ = stack(StopOnFailure(), ticks=7)
    assert "testing" not in plain.own_state_dict()


def test_level_without_parts_calls_no_hooks_and_saves_no_state_of_any():
    top, _ = build([1], [TOP], Clock())
    assert not any(top._hooks)
    assert top.own_state_dict().keys() == {"agent_rows", "rows", "sub_episodes"}
    assert replace(TOP).parts == ()
