"""Connect Four against an opponent that answers within the step."""

from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.random_actions import allowed_choice
from coach_rl.core.records import (
    ACTION_MASK,
    Action,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Observation,
)
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep

ROWS = 6
COLUMNS = 7
CELLS = ROWS * COLUMNS
SPACES = EnvironmentSpaces(
    observation=spaces.Dict(
        {
            "observation": spaces.Box(0, 1, (2 * CELLS,), np.float32),
            ACTION_MASK: spaces.MultiBinary(COLUMNS),
        }
    ),
    action=spaces.Discrete(COLUMNS),
)
"""Observations and actions of both players."""


class Opponent(Protocol):
    """A player without memory; every game may be at another move."""

    def columns(self, observation: Observation, uniform: FloatArray) -> IntArray:
        """Columns to play, [R], each with an empty cell.

        Args:
            observation: From the opponent's view, [R, ...] each, as in `SPACES`.
            uniform: Numbers in [0, 1) for what it draws, [R].
        """
        ...


@runtime_checkable
class OpponentParameters(Protocol):
    """A frozen description of an opponent."""

    def opponent(self, spaces: EnvironmentSpaces) -> Opponent:
        """A new opponent, which sees and acts in these spaces."""
        ...


@parameter_class
class ConnectFourParameters:
    """Four stones in a line win, on a board of 7 columns and 6 rows.

    Stones fall to the lowest empty cell of a column. Every episode draws who begins. The reward is
    1 for a game that is won, -1 for one that is lost, 0 for a draw. A stone in a full column, which
    the mask forbids, loses the game.
    """

    level: ClassVar[str] = "connect_four"

    opponent: Literal["random", "rules"] | OpponentParameters = "random"
    """The other player: `random` plays any column with an empty cell; `rules` wins if it can with
    this move, else prevents that the other can with the next, else plays at random; or a
    description of another, such as `TrainedOpponent`."""

    def build(self, *, num_envs: int) -> WorldEnvironment:
        opponent: Opponent
        match self.opponent:
            case "random":
                opponent = RandomPlayer()
            case "rules":
                opponent = RulesPlayer()
            case description:
                opponent = description.opponent(SPACES)
        return WorldEnvironment(ConnectFour(opponent), num_envs=num_envs, max_episode_steps=None)


class ConnectFour:
    """The rules of Connect Four, for games against an opponent."""

    start_numbers, step_numbers = 2, 1
    spaces = SPACES

    def __init__(self, opponent: Opponent) -> None:
        self._opponent = opponent

    def start(self, uniform: FloatArray) -> WorldState:
        own, others = np.zeros((2, len(uniform), CELLS), np.bool_)
        self._reply(own, others, uniform[:, 0] >= 0.5, uniform[:, 1])
        return {"own": own, "others": others}

    def observe(self, state: WorldState) -> Observation:
        """Own stones, then those of the other, row by row from below, [R, 84]."""
        return view(state["own"], state["others"])

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:
        own, others = state["own"].copy(), state["others"].copy()
        column = np.asarray(action)
        lost = ~empty_columns(own, others)[np.arange(len(column)), column]
        drop(own, others, column, ~lost)
        won = has_line(own)
        open_games = ~lost & ~won & ~is_full(own, others)
        self._reply(own, others, open_games, uniform[:, 0])
        lost |= open_games & has_line(others)
        ended = won | lost | is_full(own, others)
        reward = won.astype(np.float64) - lost
        return WorldStep({"own": own, "others": others}, reward, ended, {"is_success": won})

    def _reply(
        self, own: BoolArray, others: BoolArray, where: BoolArray, uniform: FloatArray
    ) -> None:
        """Add the opponent's stones in some games, in place."""
        if where.any():
            column = np.zeros(len(where), np.int64)
            column[where] = self._opponent.columns(view(others[where], own[where]), uniform[where])
            drop(others, own, column, where)


class RandomPlayer:
    """An opponent that plays any column with an empty cell."""

    def columns(self, observation: Observation, uniform: FloatArray) -> IntArray:
        return allowed_choice(observation[ACTION_MASK] > 0, uniform)


class RulesPlayer:
    """An opponent that sees one move of its own and one of the other's."""

    def columns(self, observation: Observation, uniform: FloatArray) -> IntArray:
        own, others = np.split(observation["observation"] > 0, 2, axis=1)
        allowed = observation[ACTION_MASK] > 0
        for preferred in (wins_in(own, others), wins_in(others, own)):
            allowed = np.where(preferred.any(axis=1, keepdims=True), preferred, allowed)
        return allowed_choice(allowed, uniform)


def view(own: BoolArray, others: BoolArray) -> Observation:
    """The observation of a player with these stones, [R, 42] each."""
    return {
        "observation": np.concatenate([own, others], axis=1, dtype=np.float32),
        ACTION_MASK: empty_columns(own, others).astype(np.int8),
    }


def empty_columns(own: BoolArray, others: BoolArray) -> BoolArray:
    """The columns with an empty cell, [R, 7]."""
    return ~(own | others)[:, -COLUMNS:]


def is_full(own: BoolArray, others: BoolArray) -> BoolArray:
    """The boards without an empty cell, [R]."""
    full: BoolArray = np.logical_not(empty_columns(own, others).any(axis=1))
    return full


def landing_cells(own: BoolArray, others: BoolArray) -> IntArray:
    """The cells that a stone falls to, by column, [R, 7]; beyond the board in a full column."""
    height: IntArray = (own | others).reshape(-1, ROWS, COLUMNS).sum(axis=1)
    return height * COLUMNS + np.arange(COLUMNS)


def drop(own: BoolArray, others: BoolArray, column: IntArray, where: BoolArray) -> None:
    """Add a stone of `own` to a column, [R], in some of the games, in place."""
    games = np.flatnonzero(where)
    own[games, landing_cells(own, others)[games, column[games]]] = True


def has_line(stones: BoolArray) -> BoolArray:
    """Return where four of the stones, [..., 42], are in a line, [...]."""
    lines: BoolArray = np.any(np.all(stones[..., LINES], axis=-1), axis=-1)
    return lines


def wins_in(own: BoolArray, others: BoolArray) -> BoolArray:
    """The columns in which the next stone of `own` completes a line, [R, 7]."""
    allowed = empty_columns(own, others)
    cells = np.where(allowed, landing_cells(own, others), 0)
    after = np.repeat(own[:, None], COLUMNS, axis=1)  # [R, 7, 42]
    np.put_along_axis(after, cells[:, :, None], True, axis=2)
    return allowed & has_line(after)


def _lines() -> Array:
    """The cells of every line of four, [69, 4]."""
    cells = np.arange(CELLS).reshape(ROWS, COLUMNS)
    found = [
        [cells[row + step * down, column + step * right] for step in range(4)]
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
        for row in range(ROWS - 3 * down)
        for column in range(max(0, -3 * right), COLUMNS - max(0, 3 * right))
    ]
    return np.array(found)


LINES = _lines()
