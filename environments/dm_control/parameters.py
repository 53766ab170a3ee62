"""Descriptions of tasks of the DeepMind Control Suite."""

from dataclasses import dataclass
from typing import Literal, Self

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.environments.dm_control import tasks
from coach_rl.environments.dm_control.control_task import ControlTask, SavedControlTask, Shown
from coach_rl.environments.dm_control.tasks import BENCHMARK_TASKS, require_task, short_name
from coach_rl.environments.gymnasium.parameters import SingleEnvironmentsParameters
from coach_rl.environments.gymnasium.recipe import Env, Recipe, wrapped

RESTORED = frozenset(BENCHMARK_TASKS)
"""Tasks that are saved by their own state: those that continued exactly from 20 states each, in new
processes. The others are replayed from the start of the episode."""


@parameter_class
class DMControlParameters(SingleEnvironmentsParameters):
    """A task of the DeepMind Control Suite; needs the extra `dm_control`."""

    level: str = "cheetah-run"
    """The task's name, `domain-task`; `dm_control:` may stand before it."""
    shows: Shown = "vector"
    """Observations: vector, float32 [O]. parts: the same by name, as dm_control shows them.
    picture: uint8 [84, 84, 3], which needs EGL or OSMesa."""
    action_repeat: Positive[int] = 1
    """Steps of the task in a step here, all with the same action; rewards are summed."""
    picture_size: Positive[int] = 84
    """Pixels of a picture in both directions."""
    camera: NonNegative[int] = 0
    """Number of the model's camera that pictures are from."""
    max_episode_steps: Positive[int] | Literal[-1] | None = None
    """Steps after which an episode is truncated; None and -1: only the task's own limit counts,
    1,000 steps of the task."""
    vectorization: Literal["sync", "subprocess"] = "sync"
    """sync: one task after the other in this process. subprocess: tasks spread over workers."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", short_name(self.level))
        super().__post_init__()
        require_task(self.level)
        require(
            not self.kwargs and self.action_mask is None,
            "DMControlParameters.kwargs and action_mask have no meaning for these tasks, got "
            f"{self.kwargs} and {self.action_mask!r}; leave them out",
        )

    @staticmethod
    def usual_repeat(level: str) -> int:
        """Steps that an action of a task lasts where pictures are seen."""
        return tasks.usual_repeat(level)

    def drawable(self) -> Self:
        """The same: tasks can be drawn wherever OpenGL is."""
        return self

    def recipe(self) -> Recipe:
        settings = {
            "shows": self.shows,
            "action_repeat": self.action_repeat,
            "picture_size": self.picture_size,
            "camera": self.camera,
            "most_steps": None if self.max_episode_steps == -1 else self.max_episode_steps,
        }
        return ControlRecipe(
            level=self.level, kwargs=FrozenMapping(settings), wrappers=self.wrappers
        )


@dataclass(frozen=True, kw_only=True)
class ControlRecipe(Recipe):
    """A picklable recipe of one task."""

    def make(self) -> Env:
        kind = SavedControlTask if self.level in RESTORED else ControlTask
        task = kind(self.level, **dict(self.kwargs))  # type: ignore[arg-type]  # its fields
        made: Env = wrapped(task, self.wrappers)
        return made
