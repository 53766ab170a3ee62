"""Descriptions of Atari games."""

from dataclasses import dataclass
from typing import Literal, Self

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive, UnitInterval
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.environments.atari.emulator import require_game
from coach_rl.environments.atari.game import AtariGame, Protocol, Shown
from coach_rl.environments.atari.games import GAMES
from coach_rl.environments.gymnasium.parameters import SingleEnvironmentsParameters
from coach_rl.environments.gymnasium.recipe import Env, Recipe, wrapped


@parameter_class
class AtariParameters(SingleEnvironmentsParameters):
    """A game of the Arcade Learning Environment, from pictures; needs the extra `atari`."""

    level: str = "pong"
    """The game's name, of the 104 for one player that ale-py has."""
    protocol: Protocol = "A"
    """A: sticky actions, whole games. B: as NoFrameskip-v4, with no-op starts and the fire button.
    Scores are comparable under the same protocol only."""
    shows: Shown = "picture"
    """Observations: grey pictures, uint8 [84, 84], or the console's memory, float32 [128] in
    [0, 1]."""
    all_actions: bool = False
    """True: all 18 actions of the joystick; False: those that have an effect in the game."""
    frames_per_step: Positive[int] = 4
    """Emulator frames that an action lasts."""
    random_actions: UnitInterval = 0.0
    """Probability that an action is replaced by a random one, for evaluations of greedy policies
    under conditions that never differ."""
    most_frames: Positive[int] = 108_000
    """Frames after which an episode is truncated: half an hour of play."""
    max_episode_steps: Positive[int] | Literal[-1] | None = None
    """Steps after which an episode is truncated as well; None and -1: only `most_frames` counts."""
    vectorization: Literal["sync", "subprocess"] = "sync"
    """sync: one game after the other in this process. subprocess: games spread over workers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.level not in GAMES:  # whose names need no package
            require_game(self.level)
        require(
            not self.kwargs and self.action_mask is None,
            f"AtariParameters.kwargs and action_mask have no meaning for games, got {self.kwargs} "
            f"and {self.action_mask!r}; leave them out",
        )

    def drawable(self) -> Self:
        """The same: games can always be drawn."""
        return self

    def recipe(self) -> Recipe:
        settings = {
            "protocol": self.protocol,
            "shows": self.shows,
            "all_actions": self.all_actions,
            "frames_per_step": self.frames_per_step,
            "random_actions": self.random_actions,
            "most_frames": self.most_frames,
            "most_steps": None if self.max_episode_steps == -1 else self.max_episode_steps,
        }
        return AtariRecipe(level=self.level, kwargs=FrozenMapping(settings), wrappers=self.wrappers)


@dataclass(frozen=True, kw_only=True)
class AtariRecipe(Recipe):
    """A picklable recipe of one game."""

    def make(self) -> Env:
        game = AtariGame(self.level, **dict(self.kwargs))  # type: ignore[arg-type]  # its fields
        made: Env = wrapped(game, self.wrappers)
        return made
