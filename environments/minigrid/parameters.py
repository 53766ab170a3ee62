"""Descriptions of levels of MiniGrid and BabyAI."""

from dataclasses import dataclass
from typing import Literal, Self

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, Positive
from coach_rl.core.typed_values import FrozenMapping, thawed
from coach_rl.environments.gymnasium.parameters import SingleEnvironmentsParameters
from coach_rl.environments.gymnasium.recipe import Env, Recipe, guarded, wrapped
from coach_rl.environments.minigrid.levels import PREFIX, level_id
from coach_rl.environments.minigrid.missions import WORDS
from coach_rl.environments.minigrid.world import Given, MiniGridWorld, Mission, Shown


@parameter_class
class MiniGridParameters(SingleEnvironmentsParameters):
    """A level of MiniGrid or BabyAI; needs the extra `minigrid`.

    parameters = MiniGridParameters(level="DoorKey-8x8", given=("position",))
    """

    level: str = "MultiRoom-N4-S5"
    """A short name (`MultiRoom-N4-S5`, `BabyAI-GoToLocal`), which is the newest version, or a
    registered id (`MiniGrid-MultiRoom-N4-S5-v0`); `minigrid:` before it is left out."""
    shows: Shown = "view"
    """Observations, beside the agent's direction. view: the 7 x 7 cells that it
    sees, int8 [7, 7, 20], one-hot for object, colour and state. picture: the same in pixels, uint8
    [56, 56, 3]. grid: all cells and what is carried, a given: the agent doesn't see them."""
    given: tuple[Given, ...] = ()
    """Further observations that the agent doesn't see, for counts of what was visited: `position`,
    its column and row, and `state`, a digest of the grid, the agent and what it carries, uint8 [8].
    Networks see them too, unless `TorsoParameters.keys` leaves them out."""
    mission: Mission | None = None
    """Missions in the observation. words: numbers of words, float32 [53], whose order is lost.
    hidden: none. None: none, and levels whose mission differs between episodes are refused."""
    words: NonEmpty[tuple[str, ...]] = WORDS
    """The vocabulary of missions; other words are errors."""
    max_episode_steps: Positive[int] | Literal[-1] | None = None
    """Steps after which an episode is truncated, beside the level's own limit, by which rewards are
    scaled (`kwargs={"max_steps": 500}` changes that); None and -1: that alone."""
    vectorization: Literal["sync", "subprocess"] = "sync"
    """sync: one level after the other in this process. subprocess: levels spread over workers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "level", self.level.removeprefix(PREFIX))
        level_id(self.level)
        require(
            self.action_mask is None,
            "MiniGridParameters.action_mask has no meaning: MiniGrid allows every action, got "
            f"{self.action_mask!r}; leave it out",
        )

    def drawable(self) -> Self:
        """The same: levels can always be drawn."""
        return self

    def recipe(self) -> Recipe:
        settings = {
            "kwargs": self.kwargs,
            "shows": self.shows,
            "given": self.given,
            "mission": self.mission,
            "words": self.words,
            "most_steps": None if self.max_episode_steps == -1 else self.max_episode_steps,
        }
        return MiniGridRecipe(
            level=level_id(self.level), kwargs=FrozenMapping(settings), wrappers=self.wrappers
        )


@dataclass(frozen=True, kw_only=True)
class MiniGridRecipe(Recipe):
    """A picklable recipe of one level."""

    def make(self) -> Env:
        settings = {**self.kwargs, "kwargs": thawed(self.kwargs["kwargs"])}
        world = guarded(MiniGridWorld, self.level, what=f"'{self.level}'", **settings)
        made: Env = wrapped(world, self.wrappers)
        return made
