"""A replay memory once more: a list of transitions per row, searched from end to end.

Each batch is recomputed from those lists. What the memory draws at random (which transitions, which
of them get another goal, and which goal) can't be known here, so a sample must be one of those that
could have been drawn; all the rest follows from it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from coach_rl.core.records import HIDDEN_STATE
from coach_rl.extensions.recurrent_layers.sequences import BURN_IN, BURN_IN_MASK
from tests.memories.replay_worlds import arrays

GOAL_KEY = "desired_goal"
ALWAYS = 1e12
"""A ratio of hindsight at which no sample keeps its own goal."""


@dataclass
class Kept:
    """One transition of one row."""

    row: int
    step: int
    """Its number in the row, counted from 0."""
    episode: int
    observation: dict
    next_observation: dict
    action: np.ndarray
    reward: float
    terminated: bool
    truncated: bool
    duration: int
    follows: bool
    extras: dict
    priority: float


@dataclass
class PlainReplay:
    """What a `ReplayMemory` with these parameters should keep and hand out."""

    params: object
    """A `ReplayMemoryParameters`."""
    num_rows: int
    discount: float
    rows: list[list[Kept]] = field(init=False)
    greatest_priority: float = 1.0
    environment_steps: int = 0
    """Simulator steps of everything ever added."""

    def __post_init__(self) -> None:
        self.row_capacity = self.params.capacity // self.num_rows
        self.clear()

    def clear(self) -> None:
        self.rows = [[] for _ in range(self.num_rows)]
        self.added = [0] * self.num_rows
        self.episodes = [0] * self.num_rows
        self.begins = [{} for _ in range(self.num_rows)]  # first step by episode
        self.greatest_priority = 1.0

    def add(self, transition, *, counts: bool = True) -> None:
        """Keep transitions; those of a data set count no steps."""
        for index, row in enumerate(transition.rows.tolist()):
            one = Kept(
                row=row,
                step=self.added[row],
                episode=self.episodes[row],
                observation={key: value[index] for key, value in transition.observation.items()},
                next_observation={
                    key: value[index] for key, value in transition.next_observation.items()
                },
                action=transition.action[index],
                reward=float(transition.reward[index]),
                terminated=bool(transition.terminated[index]),
                truncated=bool(transition.truncated[index]),
                duration=int(transition.duration[index]),
                follows=bool(transition.follows_or_all[index]),
                extras={name: value[index] for name, value in transition.extras.items()},
                priority=self.greatest_priority,
            )
            self.begins[row].setdefault(one.episode, one.step)
            self.added[row] += 1
            self.episodes[row] += one.terminated or one.truncated
            self.rows[row] = [*self.rows[row], one][-self.row_capacity :]
            self.environment_steps += one.duration * counts

    def truncate(self, rows) -> None:
        """End the open episodes of rows."""
        for row in rows:
            if self.is_open(row):
                self.rows[row][-1].truncated = True
                self.episodes[row] += 1

    def is_open(self, row: int) -> bool:
        newest = self.rows[row][-1:]
        return any(not (one.terminated or one.truncated) for one in newest)

    def unread(self, read: list[int], overlap: int = 0) -> list[tuple[int, int]]:
        """Steps [begin, end) of each row from the read ones on, and some before."""
        begins = [0 if own > count else own for own, count in zip(read, self.added, strict=True)]
        return [
            (max(begin - overlap, count - len(kept)), count)
            for begin, count, kept in zip(begins, self.added, self.rows, strict=True)
        ]

    def all(self) -> list[Kept]:
        """Everything kept, by position."""
        return sorted((one for row in self.rows for one in row), key=self.position)

    def position(self, one: Kept) -> int:
        """Each row is a ring, and the rings stand one behind the other."""
        return one.row * self.row_capacity + one.step % self.row_capacity

    def at(self, position: int) -> Kept:
        own = self.rows[position // self.row_capacity]
        (found,) = (one for one in own if self.position(one) == position)
        return found

    def episode_of(self, one: Kept) -> list[Kept]:
        """What is still kept of its episode, oldest first."""
        return [other for other in self.rows[one.row] if other.episode == one.episode]

    # N-step returns.

    def expected(self, one: Kept, goal: np.ndarray | None) -> dict[str, object]:
        """A sample by its path, if it got this goal in hindsight; None: if it got none.

        The n-step return r_1 + gamma r_2 + ... + gamma^k V(s_k) stops behind a termination, where
        nothing is bootstrapped, and where the episode or the memory ends.
        """
        total, gamma, is_terminal = 0.0, 1.0, False
        window = [other for other in self.episode_of(one) if other.step >= one.step]
        end = one
        for last in window[: self.params.n_step]:
            if last is not one and not last.follows:
                break
            end, reward, is_terminal = last, last.reward, last.terminated
            if goal is not None:
                reward, is_terminal = self.in_hindsight(last, goal)
            total += gamma * reward
            gamma *= self.discount ** (last.duration if self.params.discount_by_duration else 1)
            if is_terminal:
                break
        seen, followed = dict(one.observation), dict(end.next_observation)
        if goal is not None:
            for shown in (seen, followed):
                shown[GOAL_KEY] = goal - self.offset(shown)
        return {
            "reward": total,
            "discount": 0.0 if is_terminal else gamma,
            "action": one.action,
            **{f"observation/{key}": value for key, value in seen.items()},
            **{f"next_observation/{key}": value for key, value in followed.items()},
            **{f"extras/{name}": one.extras[name] for name in self.params.extras},
        }

    # Hindsight (Andrychowicz et al. 2017, algorithm 1 and section 4.5).

    def in_hindsight(self, one: Kept, goal: np.ndarray) -> tuple[float, bool]:
        """Reward and end of a transition under another goal.

        An end that came of reaching the old goal is none under the new one; dying is.
        """
        hindsight = self.params.relabelling
        place = achieved(hindsight.goal, one.next_observation)
        reward = goal_reward(hindsight.goal, place, goal)
        if not hindsight.goal_ends_episode:
            return reward, one.terminated
        is_reached_now = is_reached(hindsight.goal, place, goal)
        wanted = one.observation[GOAL_KEY] + self.offset(one.observation)
        was_reached = is_reached(hindsight.goal, place, wanted)
        return reward, is_reached_now or (one.terminated and not was_reached)

    def offset(self, observation: dict) -> np.ndarray | float:
        """What is added to a goal that an observation shows: goals are shown relative to it."""
        goal = self.params.relabelling.goal
        return achieved(goal, observation) if goal.observed == "relative" else 0.0

    def goals(self, one: Kept) -> Iterator[np.ndarray | None]:
        """All goals that the sample of a transition may have; None: its own."""
        hindsight = self.params.relabelling
        if hindsight is None or hindsight.ratio < ALWAYS:
            yield None
        if hindsight is None or hindsight.ratio == 0:
            return
        episode = self.episode_of(one)
        sources = {
            "future": [other for other in episode if other.step >= one.step],
            "final": episode[-1:],
            "episode": episode,
            "random": self.all(),
        }[hindsight.strategy]
        for source in sources:
            yield achieved(hindsight.goal, source.next_observation)

    # Sequences (Kapturowski et al. 2019) overlap by half, and end where a row does not follow.

    def start(self, drawn: Kept) -> int:
        """The first step of the sequence by which a transition is drawn."""
        stride = max(1, self.params.draws.length // 2)
        episode = self.episode_of(drawn)
        first = self.begins[drawn.row][drawn.episode]
        start = max(first + (drawn.step - first) // stride * stride, episode[0].step)
        gaps = [each.step for each in episode if not each.follows]
        return max([start, *(gap for gap in gaps if start < gap <= drawn.step)])

    def sequence(self, row: int, start: int) -> tuple[list[Kept], list[Kept]]:
        """The transitions of the sequence that starts at a step, and those before it."""
        draws = self.params.draws
        (first,) = (one for one in self.rows[row] if one.step == start)
        episode = self.episode_of(first)
        place = episode.index(first)
        later, earlier = [first], []
        for one in episode[place + 1 : place + draws.length]:
            if not one.follows:
                break
            later.append(one)
        following = first
        for one in reversed(episode[max(0, place - draws.burn_in) : place]):
            if not following.follows:
                break
            earlier.insert(0, one)
            following = one
        return later, earlier

    def check_sequences(self, batch, count: int) -> None:
        """Every sequence of a batch is one that could have been drawn, and whole."""
        columns = arrays(batch)
        mask = columns.pop("valid").reshape(count, -1)
        split = {path: each.reshape(count, -1, *each.shape[1:]) for path, each in columns.items()}
        starts = {(one.row, self.start(one)) for one in self.all()}
        weights = split.pop("weight")
        assert (weights[~mask] == 0).all()
        if self.params.prioritised is None:
            np.testing.assert_allclose(weights[mask], mask.size / mask.sum(), rtol=1e-6)
        longest = mask.sum(axis=1).max()
        assert longest <= mask.shape[1] <= min(self.params.draws.length, max(2 * longest - 2, 1))
        for number in range(count):
            own = {path: each[number] for path, each in split.items()}
            first = self.at(int(own["position"][0]))
            assert (first.row, first.step) in starts
            later, earlier = self.sequence(first.row, first.step)
            assert mask[number].tolist() == [i < len(later) for i in range(mask.shape[1])]
            begin = (earlier or later)[0].extras[HIDDEN_STATE]
            for side, before in (("observation", earlier), ("next_observation", [*earlier, first])):
                np.testing.assert_array_equal(own.pop(f"{side}/{HIDDEN_STATE}")[0], begin)
                burnt = own.pop(f"{side}/{BURN_IN_MASK}", np.zeros(0, bool))
                seen = {key: own.pop(f"{side}/{BURN_IN}{key}", None) for key in first.observation}
                if not len(burnt):
                    assert not before or not self.params.draws.burn_in
                    continue
                assert burnt.tolist() == [i >= len(burnt) - len(before) for i in range(len(burnt))]
                assert len(burnt) == self.params.draws.burn_in + (side == "next_observation")
                for key, values in seen.items():
                    expected = [one.observation[key] for one in before]
                    for mine, other in zip(values[burnt], expected, strict=True):
                        np.testing.assert_array_equal(mine, other)
            for place, one in enumerate(later):
                found = {path: each[place] for path, each in own.items() if path != "position"}
                assert self.position(one) == own["position"][place]
                assert is_same(found, self.expected(one, None)), (found, one)

    # Priorities (Schaul et al. 2016, section 3).

    def note_errors(self, batch, errors: np.ndarray, count: int) -> None:
        """p = (|error| + epsilon) ** alpha; new transitions get the greatest there has been.

        Of a sequence, |error| is a mix of its largest and its mean, and it counts for those
        transitions by which the sequence is drawn.
        """
        prioritised, draws = self.params.prioritised, self.params.draws
        if prioritised is None:
            return
        positions = batch.position.numpy()
        if draws.is_single:
            sized = zip(positions.tolist(), np.abs(errors).tolist(), strict=True)
        else:
            sized = []
            stride = max(1, draws.length // 2)
            shapes = (each.reshape(count, -1) for each in (positions, errors, batch.valid.numpy()))
            for own, wrong, valid in zip(*shapes, strict=True):
                sizes = np.abs(wrong[valid])
                size = draws.peak * sizes.max() + (1 - draws.peak) * sizes.mean()
                sized += [(position, size) for position in own[valid][:stride].tolist()]
        for position, size in sized:
            one = self.at(position)
            one.priority = (size + prioritised.epsilon) ** prioritised.alpha
            self.greatest_priority = max(self.greatest_priority, one.priority)

    @property
    def beta(self) -> float:
        """The exponent of the importance weights."""
        prioritised = self.params.prioritised
        over = prioritised.anneal_beta_over
        annealed = 0.0 if over is None else min(1.0, self.environment_steps / over.count)
        return prioritised.beta + (1 - prioritised.beta) * annealed

    def check_priorities(self, positions: list[int], weights: list[float]) -> None:
        """Transition i of B lies in the i-th of B equal shares of all priorities.

        Its weight is (1 / P) ** beta over the greatest of the batch; beta grows linearly to 1.
        """
        begin, shares = 0.0, {}
        for one in self.all():
            shares[self.position(one)] = begin, begin + one.priority
            begin += one.priority
        for number, position in enumerate(positions):
            low, high = (begin * end / len(positions) for end in (number, number + 1))
            first, last = shares[position]
            assert first <= high + 1e-9 * begin, f"sample {number} comes from a later share"
            assert last >= low - 1e-9 * begin, f"sample {number} comes from an earlier share"
        raw = [(1 / self.at(position).priority) ** self.beta for position in positions]
        np.testing.assert_allclose(weights, np.array(raw) / max(raw), rtol=1e-5)

    # All of it.

    def check(self, batch) -> None:
        """Every sample of a batch is one that could have been drawn."""
        columns = arrays(batch)
        positions, weights = columns.pop("position").tolist(), columns.pop("weight").tolist()
        if self.params.prioritised is None:
            assert set(weights) == {1.0}
        else:
            self.check_priorities(positions, weights)
        for index, position in enumerate(positions):
            found, one = (
                {path: column[index] for path, column in columns.items()},
                self.at(position),
            )
            known = [self.expected(one, goal) for goal in self.goals(one)]
            assert any(is_same(found, each) for each in known), (
                f"sample {index}, transition {one.step} of row {one.row}:\n{found}\n"
                f"is none of\n{known}"
            )


def is_same(found: dict, expected: dict) -> bool:
    """Sums to the rounding of single precision; all that is only kept, exactly."""
    assert found.keys() == expected.keys()
    for path, value in expected.items():
        if path in ("reward", "discount"):
            if not math.isclose(found[path], value, rel_tol=1e-5, abs_tol=1e-5):
                return False
        elif not np.array_equal(found[path], value):
            return False
    return True


# What goals mean.


def achieved(goal_space, observation: dict) -> np.ndarray:
    """The goal that an observation stands for."""
    values = np.ravel(observation[goal_space.key])
    elements = range(len(values)) if goal_space.elements is None else goal_space.elements
    return np.array([values[element] for element in elements])


def is_reached(goal_space, achieved_goal: np.ndarray, goal: np.ndarray) -> bool:
    shares = [
        abs(float(mine) - float(other)) / threshold
        for mine, other, threshold in zip(achieved_goal, goal, goal_space.threshold, strict=True)
    ]
    if goal_space.reached_within == "ball":
        return sum(share**2 for share in shares) <= 1
    return max(shares) <= 1


def goal_reward(goal_space, achieved_goal: np.ndarray, goal: np.ndarray) -> float:
    if goal_space.reward == "dense":
        return -math.dist(achieved_goal.tolist(), goal.tolist())
    return 0.0 if is_reached(goal_space, achieved_goal, goal) else -1.0
