"""A replay memory once more: a list of transitions per row, searched from end to end.

Each batch is recomputed from those lists. What the memory draws at random (which transitions, which
of them get another goal, and which goal) can't be known here, so a sample must be one of those that
could have been drawn; all the rest follows from it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

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
        self.greatest_priority = 1.0

    def add(self, transition) -> None:
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
                extras={name: value[index] for name, value in transition.extras.items()},
                priority=self.greatest_priority,
            )
            self.added[row] += 1
            self.episodes[row] += one.terminated or one.truncated
            self.rows[row] = [*self.rows[row], one][-self.row_capacity :]
            self.environment_steps += one.duration

    def all(self) -> list[Kept]:
        """Everything kept, by position."""
        return sorted((one for row in self.rows for one in row), key=self.position)

    def position(self, one: Kept) -> int:
        """Each row is a ring, and the rings stand one behind the other."""
        return one.row * self.row_capacity + one.step % self.row_capacity

    def at(self, position: int) -> Kept:
        (found,) = (one for one in self.all() if self.position(one) == position)
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
        for last in window[: self.params.n_step]:
            reward, is_terminal = last.reward, last.terminated
            if goal is not None:
                reward, is_terminal = self.in_hindsight(last, goal)
            total += gamma * reward
            gamma *= self.discount ** (last.duration if self.params.discount_by_duration else 1)
            if is_terminal:
                break
        seen, followed = dict(one.observation), dict(last.next_observation)
        if goal is not None:
            seen[GOAL_KEY] = followed[GOAL_KEY] = goal
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
        hindsight = self.params.hindsight
        place = achieved(hindsight.goal, one.next_observation)
        reward = goal_reward(hindsight.goal, place, goal)
        if not hindsight.goal_ends_episode:
            return reward, one.terminated
        is_reached_now = is_reached(hindsight.goal, place, goal)
        was_reached = is_reached(hindsight.goal, place, one.observation[GOAL_KEY])
        return reward, is_reached_now or (one.terminated and not was_reached)

    def goals(self, one: Kept) -> Iterator[np.ndarray | None]:
        """All goals that the sample of a transition may have; None: its own."""
        hindsight = self.params.hindsight
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

    # Priorities (Schaul et al. 2016, section 3).

    def note_errors(self, positions: np.ndarray, errors: np.ndarray) -> None:
        """p = (|error| + epsilon) ** alpha; new transitions get the greatest there has been."""
        prioritised = self.params.prioritised
        if prioritised is None:
            return
        for position, error in zip(positions.tolist(), errors.tolist(), strict=True):
            one = self.at(position)
            one.priority = (abs(error) + prioritised.epsilon) ** prioritised.alpha
            self.greatest_priority = max(self.greatest_priority, one.priority)

    def check_priorities(self, positions: list[int], weights: list[float]) -> None:
        """Transition i of B lies in the i-th of B equal shares of all priorities.

        Its weight is (1 / P) ** beta over the greatest of the batch; beta grows linearly to 1.
        """
        prioritised, begin, shares = self.params.prioritised, 0.0, {}
        for one in self.all():
            shares[self.position(one)] = begin, begin + one.priority
            begin += one.priority
        for number, position in enumerate(positions):
            low, high = (begin * end / len(positions) for end in (number, number + 1))
            first, last = shares[position]
            assert first <= high + 1e-9 * begin, f"sample {number} comes from a later share"
            assert last >= low - 1e-9 * begin, f"sample {number} comes from an earlier share"
        annealed = min(1.0, self.environment_steps / prioritised.anneal_beta_over.count)
        beta = prioritised.beta + (1 - prioritised.beta) * annealed
        raw = [(1 / self.at(position).priority) ** beta for position in positions]
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
