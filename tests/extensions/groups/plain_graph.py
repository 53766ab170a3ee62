"""A graph of levels once more: one environment, played by a recursion that knows no rows.

Each sub-episode is a generator that plays until it is over. Where the level above preempts, it
waits after each decision for the word to continue or to stop.
"""

import math
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from coach_rl.core.clock import Phase
from coach_rl.core.goals import GoalSpace
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import End
from coach_rl.core.row_noise import RowNoise
from coach_rl.extensions.groups.level_graph import LevelGraph
from coach_rl.extensions.hits.timed_goals import TimedGoalSpace
from coach_rl.extensions.members.requests import SWITCHED
from tests.levels.plain_stack import (
    Answer,
    Level,
    Order,
    PlainGoals,
    Walk,
    clipped,
    decide,
    earned,
    fewer,
    goal_reward,
    horizon_from,
    options,
    outcome_of_option,
)

ENDS = {
    "goal": End.GOAL,
    "horizon": End.HORIZON,
    "outer": End.OUTER,
    "terminated": End.TERMINATED,
    "truncated": End.TRUNCATED,
    "switched": SWITCHED,
}


def random_graph(rng):
    """Up to four levels deep, with up to three levels in a layer, which may share those below."""
    depth = int(rng.integers(2, 5))
    layers = [[0]]
    for _ in range(depth - 1):
        first = layers[-1][-1] + 1
        layers.append(list(range(first, first + int(rng.integers(1, 4)))))
    count = layers[-1][-1] + 1
    below = [[] for _ in range(count)]
    for number, layer in enumerate(layers[:-1]):
        later = [each for layer in layers[number + 1 :] for each in layer]
        for level in layer:
            if number == 0 or rng.random() < 0.8:  # else it acts on the environment
                size = min(int(rng.integers(1, 4)), len(later))
                below[level] = rng.permutation(later)[:size].tolist()
        for level in layers[number + 1]:
            if not any(level in each for each in below):
                able = [each for each in layer if len(below[each]) < 3] or layer[:1]
                below[int(rng.choice(able))].append(level)
    # A full layer may leave levels that nothing names.
    names = {number: f"level{number}" for number in range(count)}
    preempts = [bool(links) and rng.random() < 0.4 for links in below]
    levels = []
    for number, links in enumerate(below):
        above = [each for each in range(number) if number in below[each]]
        is_selected = all(len(below[each]) > 1 for each in above)
        space = random_space(rng, is_top=number == 0, may_be_none=number == 0 or is_selected)
        horizon = int(rng.integers(1, 6)) if rng.random() < 0.7 else None
        if space is None and number and not all(preempts[each] for each in above):
            horizon = horizon or 3
        levels.append(
            Level(
                name=names[number],
                goal_space=space,
                horizon=horizon,
                horizon_of=fewer if horizon == 5 and rng.random() < 0.5 else None,
                real_end_is_terminal=bool(rng.random() < 0.3),
                goal_is_terminal=isinstance(space, TimedGoalSpace) or bool(rng.random() < 0.7),
                testing_rate=0.4 if links and rng.random() < 0.5 else 0.0,
                frozen=bool(rng.random() < 0.2),
                below=tuple(names[each] for each in links),
                preempt=preempts[number],
            )
        )
    return levels


def random_space(rng, *, is_top, may_be_none):
    """What a level receives."""
    kind = rng.choice(["goal", "goal", "timed", "option", "none"])
    if kind == "none" and may_be_none:
        return None
    if kind == "option" and not is_top:
        flags = {"with_rewards": rng.random() < 0.5, "with_ends": rng.random() < 0.5}
        return options(int(rng.integers(2, 4)), **flags)
    elements = tuple(rng.permutation(3)[: int(rng.integers(1, 4))].tolist())
    elements = (0, 1, 2) if is_top else elements
    settings = {
        "low": (-3.0,) * len(elements),
        "high": (3.0,) * len(elements),
        "threshold": tuple(rng.choice([0.3, 0.8, 1.6], len(elements)).tolist()),
        "elements": None if elements == (0, 1, 2) else elements,
        "relative": bool(rng.random() < 0.3),
        "observed": str(rng.choice(["absolute", "relative"])),
        "reward": [earned, "sparse", "dense"][int(rng.integers(3))],
    }
    if kind == "timed" and not is_top:
        return TimedGoalSpace(longest=int(rng.integers(1, 6)), **settings)
    return GoalSpace(**settings)


def rule(levels, links, index, seen, told):
    """What the agent of a level does; often the same twice, so that it keeps who acts."""
    space, below = levels[index].goal_space, links[index]
    if not below:
        return decide(space, None, seen, told)
    hint = 0.0 if told is None else float(np.sum(told))
    choice = int(abs(math.floor(seen[0] + hint / 5))) % len(below)
    asked = {
        levels[each].name: asks(levels[each].goal_space, seen)
        for each in below
        if levels[each].goal_space is not None
    }
    if len(below) == 1:
        return asked[levels[below[0]].name]
    return {"choice": choice, **asked} if asked else choice


def asks(space, seen):
    """What a level below is asked for."""
    if isinstance(space, OptionSpace):
        return int(abs(math.floor(seen[1]))) % space.count
    here = seen[list(space.elements or (0, 1, 2))]
    time = [abs(math.floor(seen[2])) % 4 + 0.5] if isinstance(space, TimedGoalSpace) else []
    wanted = 2 * np.sin(3 * here) if space.relative else 2 * np.round(here / 2) + 1
    return clipped(space, np.append(wanted, time).astype(np.float32))


def graph_of(levels):
    """The arrangement of plain levels."""
    return LevelGraph(
        below={level.name: level.below or () for level in levels},
        preempt=[level.name for level in levels if level.preempt],
    )


class Over(Exception):
    """The play has as many steps as it was to have."""


@dataclass
class Held:
    """What a level has asked for and is not done."""

    index: int
    order: Order | None
    going: object


@dataclass
class Play:
    """One environment under a graph of levels."""

    levels: list[Level]
    links: list[tuple[int, ...]]
    phases: list[Phase]
    """Of each step."""
    discount: float
    row: int
    noise: dict[int, RowNoise]
    """From which decisions to be tested are drawn, by level."""
    walk: Walk
    steps: int = 0
    fresh: list[bool] = field(default_factory=list)
    acted: list[int] = field(default_factory=list)
    """The levels whose decisions the last step carried out."""
    transitions: list[list] = field(default_factory=list)
    totals: list[Counter] = field(default_factory=list)
    held: dict[int, Held] = field(default_factory=dict)

    def __post_init__(self):
        self.fresh = [True for _ in self.levels]
        self.transitions = [[] for _ in self.levels]
        self.totals = [Counter() for _ in self.levels]

    def run(self):
        """Play all steps."""
        try:
            while True:
                for _ in self.episode(0, None, [], quiet=False, preempted=False):
                    raise AssertionError("the top is not preempted")
        except Over:
            return self

    def phase(self, index, step):
        return Phase.TEST if self.levels[index].frozen else self.phases[step]

    def episode(self, index, order, outer, *, quiet, preempted):
        """Play a sub-episode; returns its answer, and yields one a decision if it is preempted."""
        level = self.levels[index]
        longest = horizon_from(self.walk.position, level, order)
        decisions, returns = 0, 0.0
        reward, duration, starts, own = 0.0, 0, True, {}
        while True:
            if self.steps == len(self.phases):
                raise Over
            if index == 0 and level.goal_space is not None:
                order = Order(PlainGoals(level.goal_space), self.walk.goal.copy())
            if index == 0 and starts and level.horizon_of is not None:
                longest = horizon_from(self.walk.position, level, order)
            seen, now = self.walk.position.copy(), self.steps
            told = None if order is None else order.shown(seen, now)
            known = {
                "seen": seen.tolist(),
                "told": None if told is None else told.tolist(),
                "starts": starts,
                "fresh": self.fresh[index] or index not in self.acted,
                "quiet": quiet,
                "phase": self.phase(index, now),
            }
            is_real, self.fresh[index] = self.fresh[index], False
            action = self.decided(index, known, seen, told, is_real=is_real)
            tested = self.is_tested(index) or quiet
            answer = replace(self.carried_out(index, order, outer, action, tested), before=seen)
            decisions += 1
            value, final, end = self.outcome(
                index, order, outer, answer, (action, decisions, longest)
            )
            after, then = answer.after, self.steps
            self.came(
                index,
                {
                    **known,
                    "action": plain(action),
                    "after": after.tolist(),
                    "told after": None if order is None else order.shown(after, then).tolist(),
                    "reward": value,
                    "terminated": final,
                    "truncated": bool(end) and not final,
                    "duration": answer.duration,
                    "end": int(end),
                    "below": int(answer.end),
                    "tested": tested,
                    "heard": self.phase(index, then - 1),
                },
                answer.own,
            )
            returns += value
            reward += answer.reward * self.discount**duration
            own = own_so_far(own, answer.own, self.discount**duration)
            duration += answer.duration
            starts = False
            if end:
                self.note(index, end, decisions, returns)
                self.stop(index, then - 1)
                if preempted:  # the level above has decided for this decision alone
                    return replace(answer, end=end)
                return Answer(seen, after, reward, duration, answer.real, end, own)
            if preempted:
                word = yield replace(answer, end=End(0))
                if isinstance(word, int):  # the step in which it is stopped
                    self.switched(index, self.phase(index, word), order)
                    self.note(index, SWITCHED, decisions, returns)
                    self.stop(index, word)
                    return None
                quiet, outer = word

    def decided(self, index, known, seen, told, *, is_real):
        """What the agent of a level does; `is_real` where it begins a real episode."""
        return rule(self.levels, self.links, index, seen, told)

    def came(self, index, transition, own):
        """Keep a decision of a level; `own` is what the walk's agents got meanwhile."""
        self.transitions[index].append(transition)

    def switched(self, index, phase, order):
        """Keep that a level has lost control."""
        self.transitions[index].append({"cut off": phase})

    def note(self, index, end, decisions, returns):
        """Add a sub-episode that ended to the figures of its level."""
        bits = {name: bool(end & bit) for name, bit in ENDS.items()}
        self.totals[index].update({"count": 1, "decisions": decisions, "return": returns, **bits})

    def stop(self, index, step):
        """Stop what is still done for a level."""
        held = self.held.pop(index, None)
        if held is not None:
            resumed(held.going, step)

    def is_tested(self, index):
        rate = self.levels[index].testing_rate
        if not rate or self.phases[self.steps] is not Phase.TRAIN:
            return False
        return bool(self.noise[index].draw(np.array([self.row]))[0, 0] < rate)

    def carried_out(self, index, order, outer, action, tested):
        """What a decision leads to."""
        below, seen = self.links[index], self.walk.position.copy()
        if not below:
            return self.stepped(action, seen)
        choice, level = 0, self.levels[index]
        if len(below) > 1:
            choice = action["choice"] if isinstance(action, dict) else action
        chosen = below[choice]
        self.totals[index][f"chosen {self.levels[chosen].name}"] += 1
        if len(below) > 1:
            asked = action.get(self.levels[chosen].name) if isinstance(action, dict) else None
        else:
            asked = action
        wanted = self.order(self.levels[chosen].goal_space, asked, seen)
        mine = [order] if isinstance(level.goal_space, GoalSpace) else []
        word, held = (tested, [*outer, *mine]), self.held.get(index)
        if held is not None and held.index == chosen and self.is_same(held.order, wanted):
            answer, is_over = resumed(held.going, word)
        else:
            self.stop(index, self.steps)
            going = self.episode(chosen, wanted, word[1], quiet=tested, preempted=level.preempt)
            self.held[index] = Held(chosen, wanted, going)
            answer, is_over = resumed(going, None)
        if is_over:
            del self.held[index]
        return answer

    def stepped(self, action, seen):
        """A step of the environment."""
        self.acted = [0]
        while self.acted[-1] in self.held:
            self.acted.append(self.held[self.acted[-1]].index)
        reward, terminated, truncated = self.walk.step(action)
        self.steps += 1
        after, own = self.walk.position.copy(), self.walk.own()
        real = (End.TERMINATED if terminated else End(0)) | (End.TRUNCATED if truncated else End(0))
        if real:
            self.walk.restart()
            self.fresh = [True for _ in self.levels]
        return Answer(seen, after, reward, 1, real, real, own)

    def order(self, space, asked, seen):
        if space is None:
            return None
        if isinstance(space, OptionSpace):
            return Order(None, np.eye(space.count, dtype=np.float32)[asked])
        due = None
        if isinstance(space, TimedGoalSpace):
            due = self.steps + max(1, math.ceil(asked[-1]))
        return Order(PlainGoals(space), PlainGoals(space).target(asked, seen), due)

    def is_same(self, one, other):
        if one is None or other is None:
            return one is other
        return one.due == other.due and bool((one.value == other.value).all())

    def outcome(self, index, order, outer, answer, made):
        """What a decision was worth, whether its value is final, and why the sub-episode ends."""
        level, end, (action, decisions, longest) = self.levels[index], answer.real, made
        after, now = answer.after, self.steps
        if longest is not None and decisions >= longest:
            end |= End.HORIZON
        if any(above.is_over(after, now) for above in outer):
            end |= End.OUTER
        is_dead = bool(answer.real & End.TERMINATED)
        if order is None:
            return answer.reward, is_dead, end
        if order.goals is None:
            return outcome_of_option(level, order, answer, is_dead=is_dead, end=end)
        is_final, reached = order.is_over(after, now), order.is_reached(after, now)
        end |= End.GOAL if reached else End.HORIZON if is_final else End(0)
        final = (is_final and level.goal_is_terminal) or (level.real_end_is_terminal and is_dead)
        return goal_reward(order, answer, action, now), final, end


def own_so_far(before, now, factor):
    """What each of the walk's agents got in a sub-episode: discounted rewards, and its ends."""
    none = {"reward": 0.0, "terminated": False, "truncated": False}
    found = {}
    for name, each in now.items():
        old = before.get(name, none)
        found[name] = {key: old[key] or each[key] for key in ("terminated", "truncated")}
        found[name]["reward"] = old["reward"] + factor * each["reward"]
    return found


def resumed(going, word):
    """The answer of a sub-episode that continues at a word, and whether it is over."""
    try:
        return going.send(word), False
    except StopIteration as end:
        return end.value, True


def plain(action):
    """An action as plain numbers."""
    if isinstance(action, dict):
        return {key: plain(part) for key, part in action.items()}
    return np.asarray(action).tolist()
