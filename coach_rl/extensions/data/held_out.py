"""Episodes that are held out of learning, and a stand-in for a world that replays them.

    BatchGraphParameters(
        data="./mine.npz",
        held_out=0.1,
        environment=HeldOutParameters(data="./mine.npz", held_out=0.1),
        ...
    )

Nothing is acted there: each step shows the data's next observation, whatever action it is sent, and
its reward is minus the action's distance from the data's. So an evaluation's mean reward is minus
the policy's error over an episode. It needs no environment, and is no estimate of a return.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated

import numpy as np
from annotated_types import Interval
from gymnasium import spaces

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative
from coach_rl.core.records import (
    Action,
    Array,
    Directive,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
)
from coach_rl.core.saved import Saved
from coach_rl.core.seeding import generator
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.extensions.data.files import OpenedFile, open_data
from coach_rl.extensions.data.minari_data import PLAIN_KEY
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.memories.batches import ACTION_PARTS, ACTIONS, OBSERVATIONS, under

HeldOutShare = Annotated[float, Interval(ge=0, lt=1)]


def split_episodes(count: int, held_out: float, seed: int) -> tuple[IntArray, IntArray]:
    """Numbers of the episodes that are learned from, and of those held out, both rising.

    Args:
        count: Episodes of the data set.
        held_out: Share of them that is held out; at least one is where it is above 0.
        seed: Seed of the choice.

    Raises:
        ConfigurationError: Nothing would be left to learn from.
    """
    out = max(1, round(count * held_out)) if held_out else 0
    if out and out >= count:
        raise ConfigurationError(
            f"held_out={held_out} leaves nothing to learn from in a data set of {count} episodes; "
            "lower it, or give 0"
        )
    order = generator(seed, "data", "held out").permutation(count)
    return np.sort(order[out:]), np.sort(order[:out])


@parameter_class
class HeldOutParameters:
    """A stand-in for a world: replays the episodes of a data set that are held out of learning."""

    data: NonEmpty[str]
    """The data set, as of `BatchGraphParameters` (required)."""
    held_out: Annotated[float, Interval(gt=0, lt=1)]
    """Share of its episodes that are held out (required)."""
    split_seed: NonNegative[int] = 0
    """Seed that chooses them."""

    @property
    def level(self) -> str:
        """The task's name."""
        return f"held out of {self.data}"

    def build(self, *, num_envs: int) -> "HeldOutEnvironment":
        """The stand-in, with that many rows.

        Raises:
            ConfigurationError: There is no such data set, or nothing would be left.
        """
        opened = open_data(self.data)
        _, numbers = split_episodes(len(opened.recorded.begins), self.held_out, self.split_seed)
        return HeldOutEnvironment(opened.recorded, numbers, spaces_of(opened), num_envs=num_envs)


def spaces_of(opened: OpenedFile) -> EnvironmentSpaces:
    """The spaces of a data set: those that it describes, or those that its columns fit into."""
    if opened.spaces is not None:
        return opened.spaces
    columns = opened.recorded.columns
    seen = under(OBSERVATIONS, columns)
    parts = {key: _fitting(each) for key, each in under(ACTION_PARTS, columns).items()}
    return EnvironmentSpaces(
        observation=spaces.Dict(
            {
                key: spaces.Box(-np.inf, np.inf, each.shape[1:], np.float32)
                for key, each in seen.items()
            }
        ),
        action=spaces.Dict(parts) if parts else _fitting(columns[ACTIONS]),
    )


def _fitting(actions: Array) -> Space:
    """The smallest usual space that actions [T, ...] fit into."""
    if actions.dtype.kind in "iu" and actions.ndim == 1:
        return spaces.Discrete(int(actions.max()) + 1)
    most = max(1.0, float(np.abs(actions).max()))
    return spaces.Box(-most, most, actions.shape[1:], np.float32)


class HeldOutEnvironment(Saved):
    """Rows that replay episodes: row r those with the numbers r, r + N, ... of the ones given.

    Args:
        recorded: The data.
        numbers: Numbers of the episodes.
        known: Their spaces.
        num_envs: N.
    """

    SAVED = ("_turn", "_step")

    def __init__(
        self, recorded: Recorded, numbers: IntArray, known: EnvironmentSpaces, *, num_envs: int
    ) -> None:
        self.spaces = known
        self.num_envs = num_envs
        self._recorded = recorded
        self._numbers = numbers
        self._turn: IntArray = np.zeros(num_envs, np.int64)
        """Episodes that each row has finished, [N]."""
        self._step: IntArray = np.zeros(num_envs, np.int64)
        """Steps of each row in its episode, [N]."""
        self._action: Action = np.empty(0)

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:  # noqa: ARG002 - replays
        """Begin with each row's first episode."""
        self._turn[:] = 0
        self._step[:] = 0
        return EnvResponse.reset(self._shown(self._places), num_envs=self.num_envs)

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:  # noqa: ARG002 - all
        """Keep the actions, to compare them with the data's."""
        self._action = directive.action if isinstance(directive, Directive) else directive

    def recv(self) -> EnvResponse:
        """The data's next observations; rewards are minus the distance of actions."""
        here = self._places
        lengths = self._recorded.lengths[self._episodes]
        observation = self._recorded.next_observations(here)
        columns = self._recorded.columns
        reward = -self._distance(here)
        over = self._step + 1 == lengths
        self._step = np.where(over, 0, self._step + 1)
        self._turn = self._turn + over
        first = self._shown(self._places)
        return EnvResponse.step(
            np.arange(self.num_envs),
            observation=observation,
            first_observation={
                key: np.where(over.reshape(-1, *[1] * (each.ndim - 1)), first[key], each)
                for key, each in observation.items()
            },
            reward=reward,
            terminated=over & columns["/terminated"][here],
            truncated=over & ~columns["/terminated"][here],
            info={},
        )

    def close(self) -> None:
        """Nothing is open."""

    @property
    def _episodes(self) -> IntArray:
        """The number of each row's episode, [N]."""
        order = np.arange(self.num_envs) + self._turn * self.num_envs
        numbers: IntArray = self._numbers[order % len(self._numbers)]
        return numbers

    @property
    def _places(self) -> IntArray:
        """The transition that each row is at, [N]."""
        places: IntArray = self._recorded.begins[self._episodes] + self._step
        return places

    def _shown(self, places: IntArray) -> Observation:
        return self._recorded.observations(places)

    @cached_property
    def _known_actions(self) -> dict[str, tuple[Array, Space]]:
        """The data's actions [T, ...] and their spaces, by the parts' names."""
        columns = self._recorded.columns
        space = self.spaces.action
        if isinstance(space, spaces.Dict):
            return {key: (columns[f"{ACTION_PARTS}{key}"], each) for key, each in space.items()}
        return {PLAIN_KEY: (columns[ACTIONS], space)}

    def _distance(self, places: IntArray) -> FloatArray:
        """Distance of the actions that were sent from the data's, float64 [N].

        Boxes: the mean square of the difference, in half-ranges. Choices: the share that differs.
        """
        total = np.zeros(self.num_envs)
        for key, (column, space) in self._known_actions.items():
            sent = self._action[key] if isinstance(self._action, dict) else self._action
            known = column.take(places, axis=0)
            if isinstance(space, spaces.Box):
                half = (space.high.astype(np.float64) - space.low) / 2
                differs = ((sent - known) / np.where(np.isfinite(half), half, 1.0)) ** 2
            else:
                differs = sent != known
            total += differs.reshape(self.num_envs, -1).mean(axis=1)
        return total / len(self._known_actions)
