"""Data sets of BabyAI's levels, acted by the bot of Chevalier-Boisvert et al. 2019.

The bot (arXiv:1810.08272, section 3.4; `minigrid.utils.baby_ai_bot`) has the mission as a program
and the places of its objects, which agents don't see: a *given*. It explores what is hidden from
view, and plans shortest ways.
"""

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces as gymnasium_spaces

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive, UnitInterval
from coach_rl.core.records import Array
from coach_rl.core.seeding import generator, integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.gymnasium.recipe import Env
from coach_rl.environments.minigrid.levels import level_id
from coach_rl.environments.minigrid.parameters import MiniGridParameters
from coach_rl.environments.minigrid.world import SUCCESS
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.memories.batches import (
    ACTIONS,
    DURATIONS,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    REWARDS,
    TERMINATED,
    TRUNCATED,
)

MOST_FAILED = 10
"""Failed episodes in a row after which a level is refused."""


@parameter_class
class BotDataParameters:
    """A data set of a level of BabyAI."""

    environment: MiniGridParameters
    """The level, and what agents see of it (required)."""
    episodes: Positive[int] = 1_000
    """Number of episodes, all of them successes."""
    random_share: UnitInterval = 0.0
    """Share of decisions that are drawn uniformly, after which the bot plans once more."""

    @property
    def level(self) -> str:
        """The level's registered id; ConfigurationError for one that the bot has no plans for."""
        found = level_id(self.environment.level)
        if not found.startswith("BabyAI-"):
            raise ConfigurationError(
                f"BabyAI's bot plays levels whose mission is a program, BabyAI-...; got "
                f"'{self.environment.level}'; give such a level, e.g. BabyAI-GoToLocal"
            )
        return found


@dataclass(frozen=True, kw_only=True)
class BotData:
    """A data set of a level of BabyAI."""

    recorded: Recorded
    """The transitions."""
    spaces: EnvironmentSpaces
    """Their spaces."""
    failed: int
    """Number of episodes that are left out, as the bot failed."""


class Bot(Protocol):
    """The bot of the package minigrid."""

    def replan(self, action_taken: int | None = None) -> int:
        """The next action, after the one that was taken."""
        ...


def bot_data(params: BotDataParameters, seed: int) -> BotData:
    """The transitions of a data set; the same for the same seed.

    Args:
        params: The data set.
        seed: For levels and random actions.

    Raises:
        ConfigurationError: The bot fails in `MOST_FAILED` episodes in a row.
    """
    level = params.level
    rows = params.environment.build(num_envs=1)
    try:
        known = rows.spaces
    finally:
        rows.close()
    env = params.environment.recipe().make()
    rng = generator(seed, "bot data")
    episodes: list[Mapping[str, Array]] = []
    failed = in_a_row = 0
    try:
        now, _ = env.reset(seed=integer_seed(seed, "bot data"))
        while len(episodes) < params.episodes:
            found = _episode(env, now, known, params.random_share, rng)
            if found is None:
                failed += 1
                in_a_row += 1
            else:
                episodes.append(found)
                in_a_row = 0
            if in_a_row == MOST_FAILED:
                share = params.random_share
                fewer = f"fewer random actions than {share:g}, or " if share else ""
                raise ConfigurationError(
                    f"the bot failed in {MOST_FAILED} episodes of '{level}' in a row; take {fewer}"
                    "another level"
                )
            now, _ = env.reset()
    finally:
        env.close()
    return BotData(recorded=Recorded.of(episodes), spaces=known, failed=failed)


def _episode(
    env: Env,
    first: Mapping[str, Array],
    known: EnvironmentSpaces,
    random_share: float,
    rng: np.random.Generator,
) -> dict[str, Array] | None:
    """The columns of an episode, [T, ...] each; None if the bot failed.

    Args:
        env: The level, at the beginning of an episode.
        first: The episode's first observation.
        known: The level's spaces.
        random_share: Share of random actions.
        rng: Draws them.
    """
    shown = [first]
    steps: list[dict[str, Any]] = []
    is_success = False
    for action in _actions(env, random_share, rng):
        observation, reward, terminated, truncated, info = env.step(np.int64(action))
        shown.append(observation)
        steps.append(
            {ACTIONS: action, REWARDS: reward, TERMINATED: terminated, TRUNCATED: truncated}
        )
        if terminated or truncated:
            is_success = info[SUCCESS]
            break
    if not is_success:
        return None
    kinds = {ACTIONS: np.int64, REWARDS: np.float64, TERMINATED: np.bool_, TRUNCATED: np.bool_}
    columns: dict[str, Array] = {
        path: np.array([each[path] for each in steps], kind) for path, kind in kinds.items()
    }
    columns[DURATIONS] = np.ones(len(steps), np.int64)
    for key, space in known.observation.items():
        values = np.array([each[key] for each in shown], space.dtype)  # [T + 1, ...]
        columns[f"{OBSERVATIONS}{key}"] = values[:-1]
        columns[f"{NEXT_OBSERVATIONS}{key}"] = values[1:]
    return columns


def _actions(env: Env, random_share: float, rng: np.random.Generator) -> Iterator[int]:
    """The bot's actions in an episode, or random ones, until it has no plan."""
    module = importlib.import_module("minigrid.utils.baby_ai_bot")
    space = env.action_space
    assert isinstance(space, gymnasium_spaces.Discrete)
    bot: Bot = module.BabyAIBot(env)
    action: int | None = None
    while True:
        try:
            planned = int(bot.replan(action))
        except (AssertionError, module.DisappearedBoxError):  # it has no plan
            return
        action = int(rng.integers(space.n)) if rng.random() < random_share else planned
        yield action
