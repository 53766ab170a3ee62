"""Levels of MiniGrid for presets: settings, networks, and the experiment.

Meant to be imported by presets, the shipped ones and yours.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import coach_rl as rl
from coach_rl.environments.minigrid.world import (
    CARRIED,
    DIRECTION,
    MISSION,
    PICTURE,
    VIEW,
    Given,
    Mission,
    Shown,
)
from coach_rl.presets.panels import FlatPanel, LayerKind, arrives, flat, recurrent_layer

MARKS = {"DoorKey-8x8": (0.9, 1_000_000)}
"""Success rate of an evaluation to reach, and environment steps by which, by level."""
ONE_TARGET = "KeyCorridor"
"""Beginning of the names of levels whose mission names their only target, a ball. Agents of
published results don't see it."""


@dataclass(frozen=True, kw_only=True)
class MiniGridPanel(FlatPanel):
    """Settings of all presets on levels of MiniGrid."""

    LEVELS: ClassVar = ("DoorKey-8x8", "MultiRoom-N4-S5", "KeyCorridorS3R3")  # others serve too
    level: str = "DoorKey-8x8"
    """A level of MiniGrid or BabyAI, as in `MiniGridParameters.level`."""
    num_envs: int = 16
    steps: int = 1_000_000
    """Environment steps to train for; MultiRoom-N4-S5 and KeyCorridorS3R3 need more, and a bonus
    for exploration."""
    shows: Shown = "view"
    """Observations: the symbols of the 7 x 7 cells that the agent sees, a picture of them, or the
    whole grid, which is a given."""
    mission: Mission | Literal["auto"] = "auto"
    """Missions as words or hidden. auto: hidden where they never differ and in KeyCorridor, whose
    mission names its only ball; other levels are refused."""
    given: tuple[Given, ...] = ()
    """Observations for counts, `position` or `state`, which the networks do not see."""
    recurrence: LayerKind = "none"
    """The recurrent layer of policy and critic."""
    units: int = 64
    """Units of each layer."""
    evaluation_interval: int = 100_000
    """Environment steps between evaluations, of 30 episodes each."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Observation keys that the networks see."""
        shown = {"view": (VIEW,), "picture": (PICTURE,), "grid": (VIEW, CARRIED)}[self.shows]
        words = (MISSION,) if self.mission == "words" else ()
        return (DIRECTION, *shown, *words)

    def network(self) -> rl.TorsoParameters:
        """Two layers, and the recurrent layer between them if there is one."""
        return rl.TorsoParameters(
            keys=self.keys,
            convolutions="small",
            embedder=(self.units,),
            recurrence=recurrent_layer(self.recurrence, size=self.units),
            middleware=(self.units,),
        )

    def experiment(self, agent: rl.AgentParameters) -> rl.GraphManager:
        """One agent in one level."""
        automatic: Mission | None = "hidden" if self.level.startswith(ONE_TARGET) else None
        return flat(
            self,
            agent,
            rl.MiniGridParameters(
                level=self.level,
                shows=self.shows,
                mission=automatic if self.mission == "auto" else self.mission,
                given=self.given,
            ),
            self.schedule(self.evaluation_interval, evaluation_episodes=30),
            validation=arrives(*MARKS[self.level]) if self.level in MARKS else None,
        )
