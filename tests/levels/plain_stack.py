"""A stack of levels once more: one environment, played by loops within loops.

The recursion knows nothing of rows, send and recv, and has its own arithmetic of goals. What it
shares with the stack is the world, the agents' rule, and the stream that decisions to be tested are
drawn from. It waits before each step, so that several are played side by side: agents that decide
otherwise than by the rule, one for all environments, learn from all of them.
"""

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from gymnasium import spaces

from coach_rl.core.clock import Phase
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.levels import LevelChange
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import ActionRequest, End, Outcome
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.level_phases.level_phases import FIELDS, LevelTimes
from coach_rl.extensions.level_phases.moments import Moment
from coach_rl.extensions.strict_subgoals.stop_on_failure import StopOnFailure
from tests.levels.testing_part import DrawnTests

TESTING_SEED = 5
SPACES = EnvironmentSpaces(
    observation=spaces.Dict(
        {
            "observation": spaces.Box(-50, 50, (3,), np.float64),
            GOAL_KEY: spaces.Box(-2, 2, (3,), np.float32),
        }
    ),
    action=spaces.Box(-1, 1, (3,), np.float64),
)
"""What is seen of the walks, and how they are moved."""


class Freezes(LevelChange):
    """The level may be frozen at any time; a test says when."""

    may_freeze = True


@dataclass(frozen=True, kw_only=True)
class Level:
    """A `LevelDescription` without an agent."""

    name: str
    goal_space: GoalSpace | OptionSpace | None = None
    horizon: int | None = None
    horizon_of: object = None
    real_end_is_terminal: bool = False
    goal_is_terminal: bool = True
    testing_rate: float = 0.0
    frozen: bool = False
    stops_on_failure: str = "never"
    failure_reward: float | None = None
    may_freeze: bool = False
    ends_options: bool = False
    """The level's agent ends its options, or goals without a time, itself, by `stops`."""
    is_untold: bool = False
    """The level's agent does not see its goal or option."""
    remembers: str = ""
    """The level's agent is recurrent, and forgets at the start of each `sub_episode` or `episode`;
    empty: it is not."""
    warmup: Moment | None = None
    frozen_from: Moment | None = None
    frozen_until: Moment | None = None
    turn: EnvironmentSteps | None = None
    below: tuple[str, ...] | None = None
    preempt: bool = False

    @property
    def parts(self):
        """What it does besides: tests of decisions, and stopping on failure."""
        parts = [self.tests] if self.testing_rate else []
        if self.stops_on_failure != "never":
            parts.append(StopOnFailure(when=self.stops_on_failure, reward=self.failure_reward))
        return tuple(parts)

    @property
    def changes(self):
        """When it learns, where it does not always."""
        times = {name: getattr(self, name) for name in FIELDS}
        if any(times.values()):
            return (LevelTimes(**times),)
        return (Freezes(),) if self.may_freeze else ()

    @property
    def tests(self):
        """The part that tests its decisions."""
        return DrawnTests(rate=self.testing_rate)

    @property
    def is_scheduled(self):
        """Whether it has a phase of its own at times."""
        return any((self.warmup, self.frozen_from, self.frozen_until, self.turn))

    @property
    def bits(self):
        """The reasons of an end that the level's logs count."""
        unseen = {End.EXTENSION} | ({End.FAILURE} if self.stops_on_failure == "never" else set())
        return [bit for bit in End if bit not in unseen]


class Walk:
    """One walk (x, y, angle) towards a goal that moves now and then.

    It drifts, ends by chance or after 13 steps; the angle is counted on beyond a turn.

    Args:
        seed: Of its stream.
        failing: The chance that it fails in place of a step, which leaves no result.
    """

    def __init__(self, seed, failing=0.0):
        self.rng, self.failing = np.random.default_rng(seed), failing
        self.restart()

    def fails(self):
        """Whether it fails before its next step."""
        return bool(self.failing and self.rng.random() < self.failing)

    def restart(self):
        self.position, self.age = self.rng.uniform(-2, 2, 3) * [1, 1, 3], 0
        self.goal = self.rng.uniform(-2, 2, 3).astype(np.float32)

    def step(self, action):
        self.position = self.position + action + self.rng.normal(0, 0.1, 3)
        self.age += 1
        if self.rng.random() < 0.2:
            self.goal = self.rng.uniform(-2, 2, 3).astype(np.float32)
        terminated = bool(self.rng.random() < 0.05)
        return float(self.position.sum()), terminated, self.age >= 13

    def own(self):
        """Rewards and ends of the walk's own agents, by name: it has none."""
        return {}


def longest_of(space):
    """The most steps that goals of this space have; None where they have no time."""
    return getattr(space, "longest", None)


# The rule that scripted agents act by.


def decide(space, below, seen, told):
    """What an agent would do, before it is clipped to where it acts.

    Args:
        space: What its level is told: goals, options or None.
        below: The same of the level below; None for the simulator.
        seen: The observation, [3].
        told: What the agent sees of its goal or option; None where there is none.
    """
    hint = 0.0 if told is None else float(np.sum(told))
    if isinstance(below, OptionSpace):
        return int(abs(seen.sum() + hint) * 7) % below.count
    if below is not None:
        here = seen[list(below.elements or (0, 1, 2))]
        turned = np.sin(3 * here + hint)
        # Times before 0 and behind the longest are clipped.
        time = []
        if longest_of(below) is not None:
            time = [below.longest * abs(2 * math.sin(seen.sum() + hint)) - 0.3]
        if below.relative:
            return np.append(2 * turned, time).astype(np.float32)
        goal = here + 2 * turned
        for element in below.angles:
            goal[element] = 3.1 * turned[element]
        return np.append(goal, time).astype(np.float32)
    action = np.cos(3 * seen + hint)
    if isinstance(space, GoalSpace):
        elements = list(space.elements or (0, 1, 2))
        told = told[: len(elements)]
        action[elements] = told if space.observed == "relative" else told - seen[elements]
    return np.clip(action, -1, 1)


def remembered_after(memory, seen):
    """The hidden state [..., 3] of a recurrent agent after an observation."""
    return np.float32(0.5) * memory + seen.astype(np.float32)


def seen_with(memory, seen):
    """What a recurrent agent takes for what is there."""
    return seen + 0.1 * memory.astype(np.float64)


def clipped(space: GoalSpace, action) -> np.ndarray:
    """An action in the goal space of the level below.

    Where goals are relative it is a difference: at most `reach`, or from any bound to the other.
    """
    low, high = np.array(space.low, np.float32), np.array(space.high, np.float32)
    if space.relative:
        high = high - low if space.reach is None else np.array(space.reach, np.float32)
        low = -high
    if longest_of(space) is not None:
        low, high = np.append(low, np.float32(0)), np.append(high, np.float32(space.longest))
    return np.clip(action, low, high)


def fewer(observation, goal, uniform):
    """Horizons of 1 to 5 by the state and the goal."""
    place = observation["observation"][:, 0]
    first = goal[:, 0].astype(np.float64) if goal.shape[1] else 0.0
    return 1 + np.floor(10 * np.abs(np.sin(7 * place + first)) % 5).astype(np.int64)


def earned(step):
    """Rewards of a level with goals by all that a function of them sees."""
    before, after = step.before["observation"], step.after["observation"]
    action = step.action.get("choice") if isinstance(step.action, dict) else step.action
    first = np.asarray(action, np.float64).reshape(len(after), -1)[:, 0]
    way = (after - before)[:, 0] * step.goal[:, 0].astype(np.float64)
    return way + 0.1 * first + step.duration + 0.01 * step.reward


def stops(seen):
    """Whether an agent that ends its options itself does so in this state."""
    return np.sin(5 * seen[..., 0]) > 0.7


# What options mean: the odd ones have a reward and an end of their own.


def moved(before, after, given):
    """The reward of an odd option."""
    return after["observation"][:, 0] - before["observation"][:, 0] + 0.5 * given


def is_far(after):
    """Where an odd option ends."""
    return after["observation"][:, 1] > 1.0


def options(count, *, with_rewards, with_ends):
    """An `OptionSpace`."""
    return OptionSpace(
        count=count,
        rewards=tuple(moved if number % 2 else None for number in range(count)) * with_rewards,
        ends=tuple(is_far if number % 2 else None for number in range(count)) * with_ends,
    )


# What goals mean.


@dataclass
class PlainGoals:
    """A `GoalSpace` for one state, element by element; numbers that are kept are float32."""

    space: GoalSpace

    def achieved(self, seen) -> list[float]:
        return [float(seen[element]) for element in self.space.elements or (0, 1, 2)]

    def wrapped(self, element: int, value: float) -> float:
        """Angles within half a turn of 0."""
        return math.remainder(value, 2 * math.pi) if element in self.space.angles else value

    def target(self, action, seen) -> np.ndarray:
        """The absolute goal that the level above asks for, within the bounds.

        A relative goal counts from where the level is (Nachum et al. 2018, section 3.1).
        """
        goal = []
        for element, here in enumerate(self.achieved(seen)):
            low, high = (
                float(np.float32(bound[element])) for bound in (self.space.low, self.space.high)
            )
            wanted = float(action[element])
            if self.space.relative:
                wanted = self.wrapped(element, here + wanted)
            goal.append(min(max(wanted, low), high))
        return np.array(goal, np.float32)

    def differences(self, seen, goal) -> list[float]:
        """What is achieved minus the goal."""
        return [
            self.wrapped(element, here - float(wanted))
            for element, (here, wanted) in enumerate(zip(self.achieved(seen), goal, strict=True))
        ]

    def shown(self, seen, goal) -> np.ndarray:
        """What the level's agent sees of its goal."""
        if self.space.observed == "relative":
            return np.array(
                [-difference for difference in self.differences(seen, goal)], np.float32
            )
        return goal

    def is_reached(self, seen, goal) -> bool:
        pairs = zip(self.differences(seen, goal), self.space.threshold, strict=True)
        if self.space.reached_within == "ball":
            return sum((difference / threshold) ** 2 for difference, threshold in pairs) <= 1
        return all(abs(difference) <= threshold for difference, threshold in pairs)

    def distance(self, seen, goal) -> float:
        return math.hypot(*self.differences(seen, goal))

    def reward(self, seen, goal) -> float:
        if self.space.reward == "dense":
            return -self.distance(seen, goal)
        return 0.0 if self.is_reached(seen, goal) else -1.0


@dataclass
class Order:
    """What a level is told: a goal or an option; a goal may be wanted at a time."""

    goals: PlainGoals | None
    value: np.ndarray
    due: int | None = None
    """The step of the walk at which the goal is to hold; None: at any."""

    def shown(self, seen, now) -> np.ndarray:
        if self.goals is None:
            return self.value
        shown = self.goals.shown(seen, self.value)
        if self.due is None:
            return shown
        return np.append(shown, np.float32(self.due - now) / self.goals.space.longest)

    def is_up(self, now) -> bool:
        """Whether its time is up."""
        return self.due is not None and now >= self.due

    def is_reached(self, seen, now) -> bool:
        if self.goals is None or (self.due is not None and now < self.due):
            return False
        return self.goals.is_reached(seen, self.value)

    def is_over(self, seen, now) -> bool:
        """Whether the levels below have nothing left to do for it."""
        return self.is_reached(seen, now) or self.is_up(now)

    def reward(self, seen, now) -> float:
        if self.due is None:
            return self.goals.reward(seen, self.value)
        if not self.is_up(now):
            return 0.0
        return self.goals.reward(seen, self.value) + (self.goals.space.reward == "sparse")

    def distance(self, seen) -> float:
        return 0.0 if self.goals is None else self.goals.distance(seen, self.value)


# The stack.


@dataclass
class Answer:
    """What a decision led to."""

    before: np.ndarray
    """The state in which it was made."""
    after: np.ndarray
    """The state."""
    reward: float
    duration: int
    real: End
    """How the real episode ended, if it did."""
    end: End
    """Why the level below stopped."""
    own: dict = field(default_factory=dict)
    """Rewards and ends of the walk's own agents, by name; empty where it has none."""


class ByRule:
    """Agents that decide by the rule alone; others decide for levels of theirs, and learn."""

    def decide_for(self, depth):
        """Whether agents of another kind decide for the level at this depth."""
        return False

    def chosen(self, depth, request, phase):
        """Their decision for one environment."""
        raise NotImplementedError

    def hear(self, depth, outcome, phase):
        """Pass them the outcome of one of their decisions."""
        raise NotImplementedError

    def learn(self):
        """Learn from what all environments have done in this tick."""


BY_RULE = ByRule()


class Recursions:
    """The recursions of environments with these seeds, played side by side.

    Args:
        seeds: Of the walks.
        levels: Top first.
        discount: Of rewards that go up.
        agents: Those that decide otherwise than by the rule.
        failing: The chance that a walk fails in place of a step.
    """

    def __init__(self, seeds, levels, discount, agents=BY_RULE, failing=0.0):
        self.schedule, self.agents = Schedule(levels), agents
        self.is_scheduled = any(level.is_scheduled for level in levels)
        self.phases, self.own_phases = [], []
        self.each = [
            Recursion(
                Walk(seed, failing), row, levels, self.phases, discount, self.own_phases, agents
            )
            for row, seed in enumerate(seeds)
        ]
        self.going = [each.episode(0, None, [], quiet=False) for each in self.each]
        for each in self.going:
            next(each)

    def tick(self, phase, own):
        """Play a step of each.

        Args:
            phase: That of the run.
            own: Phases of levels that have one of their own, by name; not used where the levels
                themselves say when.
        """
        steps = len(self.phases) * len(self.each)
        self.phases.append(phase)
        self.own_phases.append(self.schedule.now(phase, steps) if self.is_scheduled else own)
        for each in self.going:
            next(each)
        for each in self.each:
            self.schedule.note(each.successes)
        self.agents.learn()


@dataclass
class Schedule:
    """Says which levels are in a phase of their own."""

    levels: list[Level]
    reached: set = field(default_factory=set)
    """Moments of success, with the level's name and the field."""
    goals: dict[str, list[bool]] = field(default_factory=dict)
    """Whether sub-episodes reached their goals, by level."""
    turns_since: int | None = None

    def note(self, successes):
        """Take in what has ended in a row."""
        for level, reached in zip(self.levels, successes, strict=True):
            self.goals.setdefault(level.name, []).extend(reached)
            reached.clear()

    def is_reached(self, level, name, phase, steps):
        moment = getattr(level, name)
        if isinstance(moment, EnvironmentSteps):
            return steps >= moment.count
        last = self.goals.get(level.name, [])[-moment.over :]
        enough = len(last) == moment.over and sum(last) / moment.over >= moment.rate
        if enough and phase is Phase.TRAIN:
            self.reached.add((level.name, name))
        return (level.name, name) in self.reached

    def is_frozen(self, level, phase, steps):
        """Whether it is frozen, turns left aside."""
        if level.frozen_from and not self.is_reached(level, "frozen_from", phase, steps):
            return False
        if level.frozen_until:
            return not self.is_reached(level, "frozen_until", phase, steps)
        return bool(level.frozen_from)

    def now(self, phase, steps):
        """The phases of levels by name, given that of the run and the steps so far."""
        own = {}
        warming = [
            level.warmup is not None
            and phase is not Phase.TEST
            and not self.is_reached(level, "warmup", phase, steps)
            for level in self.levels
        ]
        for depth, level in enumerate(self.levels):
            is_frozen = self.is_frozen(level, phase, steps)
            if any(warming[depth + 1 :]) and not level.frozen:
                own |= {level.name: Phase.HEATUP} if phase is Phase.TRAIN else {}
            elif is_frozen:
                own[level.name] = Phase.TEST
        turns = [level for level in self.levels[::-1] if level.turn]
        if turns and phase is Phase.TRAIN and not any(warming):
            if self.turns_since is None:
                self.turns_since = steps
            order = [level for level in turns for _ in range(level.turn.count)]
            whose = order[(steps - self.turns_since) % len(order)]
            for _ in turns:
                if own.get(whose.name) is Phase.TEST:
                    whose = turns[(turns.index(whose) + 1) % len(turns)]
            own |= {level.name: Phase.TEST for level in turns if level is not whose}
        return own


class Recursion:
    """One environment, played for ever; it waits before each step, when the last one is over.

    There is a phase for each step; `own_phases` has those of single levels by name.
    """

    def __init__(self, walk, row, levels, phases, discount, own_phases, agents):
        self.walk, self.levels, self.phases, self.discount = walk, levels, phases, discount
        self.own_phases, self.agents = own_phases, agents
        self.row, self.steps, self.waited_at = row, 0, -1
        self.successes = [[] for _ in levels]  # of sub-episodes that have ended in this tick
        self.transitions = [[] for _ in levels]
        self.totals = [Counter() for _ in levels]  # over decisions and sub-episodes
        self.fresh = [True] * len(levels)
        self.memory = [np.zeros(3, np.float32) for _ in levels]
        self.noise = [
            RowNoise(num_rows=row + 1, size=1, kind="uniform", seed=TESTING_SEED, name="testing")
            for _ in levels
        ]

    def is_tested(self, depth):
        """Whether the level tests its next decision, of its own accord."""
        rate = self.levels[depth].testing_rate
        if rate == 0 or not self.may_test(depth, self.steps):
            return False
        return bool(self.noise[depth].draw(np.array([self.row]))[0, 0] < rate)

    def may_test(self, depth, step):
        """Whether a level tests decisions at a step: not where it acts at random."""
        own = self.own_phases[step].get(self.levels[depth].name)
        return self.phases[step] is Phase.TRAIN and own is not Phase.HEATUP

    def phase_of(self, depth, step):
        level = self.levels[depth]
        return (
            Phase.TEST if level.frozen else self.own_phases[step].get(level.name, self.phases[step])
        )

    def episode(self, depth, order, outer, *, quiet):
        """Play a level's sub-episode as it is told; at the top, play one after the other.

        Args:
            depth: 0 at the top.
            order: What the level is told; None where it is told nothing.
            outer: Goals of the levels above, any of which ends the sub-episode.
            quiet: A level above tests its decision.
        """
        level = self.levels[depth]
        decisions, returns, reward_up, duration, starts = 0, 0.0, 0.0, 0, True
        distance_at_start, began = 0.0, self.walk.position.copy()
        while True:
            if self.waited_at != self.steps:
                self.waited_at = self.steps
                yield
            if depth == 0:
                order = self.given_goal()
            if starts:
                distance_at_start, longest = self.begun(level, order)
            known = self.known(depth, order, starts=starts, quiet=quiet)
            action, tested, answer = yield from self.decision(depth, order, outer, known)
            made = (action, decisions + 1, longest)
            if not answer.duration:  # the simulator has failed: this decision was never made
                made = (action, 0, None)
            reward, is_final, end = self.outcome(depth, order, outer, answer, made)
            if answer.duration:
                decisions += 1
                returns += reward
                following = self.given_goal() if depth == 0 and not end else order
                judged = {"reward": reward, "terminated": is_final, "end": int(end)}
                told = {"tested": tested, "action": np.array(action).tolist()}
                self.note_decision(depth, answer, (order, following), {**known, **told, **judged})
            reward_up += answer.reward * self.discount**duration
            duration += answer.duration
            starts, self.fresh[depth] = bool(end), bool(answer.real)
            if not end:
                continue
            if decisions:
                ended = (decisions, returns, duration, distance_at_start)
                self.note_end(depth, order, answer, end, ended)
            if depth:
                return Answer(began, answer.after, reward_up, duration, answer.real, end)
            decisions, returns, duration = 0, 0.0, 0

    def note_decision(self, depth, answer, orders, made):
        """Keep the transition of a decision, and add it to the totals of its level.

        Args:
            orders: What the level was told, and what it is told next.
            made: What the decision was, and how it is judged.
        """
        level, now = self.levels[depth], self.steps
        heard = self.phase_of(depth, now - 1)
        if level.may_freeze and made["phase"] is Phase.TEST:
            heard = Phase.TEST  # the outcome of a decision of a frozen agent is not for learning
        self.hear(depth, answer, heard)
        after, following = (
            None if order is None else order.shown(answer.after, now).tolist() for order in orders
        )
        self.transitions[depth].append(
            {
                **made,
                "heard": heard,
                "after": answer.after.tolist(),
                "told after": after,
                "told next": following,
                "truncated": bool(made["end"]) and not made["terminated"],
                "duration": answer.duration,
                "below": int(answer.end),
            }
        )
        if self.may_test(depth, now - 1) and level.testing_rate > 0:
            # Failed where the level below used up its horizon and met no other end.
            is_failed = made["tested"] and is_missed(answer.end)
            tested = made["tested"]
            self.totals[depth].update(decided=1, tested_share=tested, penalised_share=is_failed)

    def note_end(self, depth, order, answer, end, ended):
        """Add a sub-episode to the totals of its level."""
        level, totals = self.levels[depth], self.totals[depth]
        decisions, returns, duration, distance_at_start = ended
        is_random = self.phase_of(depth, self.steps - 1) is Phase.HEATUP
        self.successes[depth] += [bool(end & End.GOAL)] * (not is_random)
        totals.update({"sub_episodes": 1, "decisions": decisions, "return": returns})
        shares = {bit.name.lower(): bool(end & bit) for bit in level.bits}
        is_ended, is_reached = shares.pop("option"), shares.pop("goal")
        shares |= of_own_end(level, is_ended)
        totals.update({f"{name}_share": share for name, share in shares.items()})
        ends = (distance_at_start, answer.after)
        totals.update(of_goal(order, ends, is_reached, duration))
        totals.update(of_option(level, order, is_ended, decisions, returns))

    def begun(self, level, order):
        """The distance of a sub-episode that begins here, and its horizon; None: it has none."""
        distance = 0.0 if order is None else order.distance(self.walk.position)
        return distance, horizon_from(self.walk.position, level, order)

    def given_goal(self):
        """The top's goal, which is the walk's own and may move within an episode."""
        space = self.levels[0].goal_space
        return None if space is None else Order(PlainGoals(space), self.walk.goal.copy())

    def known(self, depth, order, *, starts, quiet):
        """What a transition holds that is known when the decision is made."""
        seen = self.walk.position
        return {
            "seen": seen.tolist(),
            "told": None if order is None else order.shown(seen, self.steps).tolist(),
            "starts": starts,
            "fresh": self.fresh[depth],
            "quiet": quiet,
            "phase": self.phase_of(depth, self.steps),
        }

    def request(self, known):
        """What an agent is asked to decide."""
        return ActionRequest(
            rows=np.array([self.row]),
            observation={
                "observation": np.array([known["seen"]]),
                GOAL_KEY: np.array([known["told"]], np.float32),
            },
            starts=np.array([known["starts"]]),
            episode_start=np.array([known["fresh"]]),
            greedy=np.array([known["quiet"]]),
        )

    def hear(self, depth, answer, phase):
        """Pass an agent that does not decide by the rule the outcome of its decision."""
        if not self.agents.decide_for(depth):
            return
        no, one = np.zeros(1, np.bool_), np.ones(1, np.int64)
        outcome = Outcome(
            rows=np.array([self.row]),
            observation={"observation": answer.after[None].copy()},
            reward=np.zeros(1),
            terminated=no,
            truncated=no,
            duration=one,
            end=0 * one,
            below=one * int(answer.end),
            tested=no,
        )
        self.agents.hear(depth, outcome, phase)

    def decision(self, depth, order, outer, known):
        """The action, whether it is tested, and what it leads to."""
        seen, is_lowest = self.walk.position.copy(), depth == len(self.levels) - 1
        told = None if order is None else order.shown(seen, self.steps)
        level, below = self.levels[depth], None if is_lowest else self.levels[depth + 1].goal_space
        if self.agents.decide_for(depth):
            action = self.agents.chosen(depth, self.request(known), known["phase"])
        elif level.is_untold:
            action = decide(None, below, seen, None)
        else:
            action = decide(level.goal_space, below, self.felt(depth, known), told)
        tested = self.is_tested(depth) or known["quiet"]
        if is_lowest:
            self.steps += 1
            if self.walk.fails():
                self.walk.restart()
                return action, tested, Answer(seen, seen, 0.0, 0, End.TRUNCATED, End.TRUNCATED)
            reward, terminated, truncated = self.walk.step(action)
            real = End.TERMINATED if terminated else End(0)
            real |= End.TRUNCATED if truncated else End(0)
            after = self.walk.position.copy()
            if real:
                self.walk.restart()
            return action, tested, Answer(seen, after, reward, 1, real, real)
        mine = [order] if order is not None and order.goals is not None else []
        if isinstance(below, OptionSpace):
            asked = Order(None, np.eye(below.count, dtype=np.float32)[action])
            answer = yield from self.episode(depth + 1, asked, [*outer, *mine], quiet=tested)
            return action, tested, answer
        goals, action, due = PlainGoals(below), clipped(below, action), None
        if longest_of(below) is not None:
            due = self.steps + max(1, math.ceil(action[-1]))
        asked = Order(goals, goals.target(action, seen), due)
        answer = yield from self.episode(depth + 1, asked, [*outer, *mine], quiet=tested)
        return action, tested, answer

    def felt(self, depth, known):
        """What a level's agent takes for what it sees."""
        seen, remembers = self.walk.position.copy(), self.levels[depth].remembers
        if not remembers:
            return seen
        if known["fresh" if remembers == "episode" else "starts"]:
            self.memory[depth] = np.zeros(3, np.float32)
        self.memory[depth] = remembered_after(self.memory[depth], seen)
        return seen_with(self.memory[depth], seen)

    def outcome(self, depth, order, outer, answer, made):
        """What a decision was worth, whether its value is final, and why the sub-episode ends.

        Args:
            made: The action, how many the sub-episode has had, and its horizon.
        """
        level, end = self.levels[depth], answer.real
        action, decisions, longest = made
        if longest is not None and decisions >= longest:
            end |= End.HORIZON
        if depth and level.ends_options and stops(answer.after):
            end |= End.OPTION
        after, now = answer.after, self.steps
        if any(above.is_over(after, now) for above in outer):
            end |= End.OUTER
        is_dead = bool(answer.real & End.TERMINATED)
        if order is None:
            reward, is_final = answer.reward, is_dead
        elif order.goals is None:
            reward, is_final, end = outcome_of_option(
                level, order, answer, is_dead=is_dead, end=end
            )
        else:
            is_final = order.is_over(after, now)
            reward = goal_reward(order, answer, action, now)
            if order.is_reached(after, now):
                end |= End.GOAL
            elif is_final:
                end |= End.HORIZON
            is_final &= level.goal_is_terminal
            is_final |= level.real_end_is_terminal and is_dead
        is_training = self.phases[now - 1] is not Phase.TEST
        is_strict = level.stops_on_failure == "always" or (
            level.stops_on_failure == "training" and is_training
        )
        if is_strict and is_missed(answer.end) and not is_final and not end & End.GOAL:
            worth = level.failure_reward
            return (reward if worth is None else worth), True, end | End.FAILURE
        return reward, is_final, end


def horizon_from(here, level, order):
    """The horizon of a sub-episode that begins here, as `fewer` has it; None: it has none."""
    if level.horizon_of is None:
        return level.horizon
    first = 0.0 if order is None else float(np.float32(order.value[0]))
    return 1 + math.floor(10 * abs(math.sin(7 * here[0] + first)) % 5)


def goal_reward(order, answer, action, now):
    """The reward of a decision under a goal, as `earned` has it or by the goal space."""
    if not callable(order.goals.space.reward):
        return order.reward(answer.after, now)
    way = (answer.after - answer.before)[0] * float(np.float32(order.value[0]))
    first = first_number(action)
    return way + 0.1 * first + answer.duration + 0.01 * answer.reward


def first_number(action):
    """The first number of an action; of several parts, the choice of a level below."""
    given = action["choice"] if isinstance(action, dict) else action
    return float(np.reshape(np.asarray(given, np.float64), -1)[0])


def outcome_of_option(level, order, answer, *, is_dead, end):
    """What a decision was worth under an option, whether it is final, and why it ends."""
    is_odd = int(np.argmax(order.value)) % 2
    reward = answer.reward
    if level.goal_space.rewards and is_odd:
        reward = float(answer.after[0] - answer.before[0] + 0.5 * answer.reward)
    if level.goal_space.ends and is_odd and answer.after[1] > 1.0:
        end |= End.OPTION
        is_dead = is_dead or bool(level.goal_space.rewards)
    return reward, is_dead, end


def is_missed(end: End) -> bool:
    """Whether a level used up its horizon, or stopped on a failure, and met no other end."""
    return bool(end) and not end & ~(End.HORIZON | End.FAILURE)


def of_goal(order, ends, is_reached, steps):
    """How a level came to its goal, where it has one: its distance when it began, where it is."""
    if order is None or order.goals is None:
        return {}
    distances = {"distance_at_start": ends[0], "distance": order.distance(ends[1])}
    return {**distances, "goal_share": is_reached, "steps": steps}


def of_own_end(level, is_ended):
    """The share of goals that a level's agent ends itself, where it does."""
    has_goals = isinstance(level.goal_space, GoalSpace)
    return {"own_end": is_ended} if level.ends_options and has_goals else {}


def of_option(level, order, is_ended, decisions, returns):
    """What a sub-episode adds to the figures of its option; nothing where it had none."""
    if not isinstance(level.goal_space, OptionSpace):
        return {}
    number = int(np.argmax(order.value))
    shares = {f"option_share/{k}": k == number for k in range(level.goal_space.count)}
    own = {"option_ended_share": is_ended, "option_decisions": decisions, "option_return": returns}
    return shares | {f"{name}/{number}": value for name, value in own.items()}
