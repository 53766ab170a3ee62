"""Recurrent PPO on tasks of POPGym, which need memory."""

from dataclasses import dataclass
from typing import ClassVar

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, LayerKind, flat, recurrent_layer, solved
from coach_rl.presets.recurrent_panels import recurrent_ppo

TASKS = ("RepeatFirstEasy", "RepeatPreviousEasy", "PositionOnlyCartPoleEasy")


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = tuple(f"popgym:popgym-{task}-v0" for task in TASKS)  # others serve as well
    level: str = LEVELS[0]
    """A task of POPGym by its Gymnasium id."""
    recurrence: LayerKind = "gru"
    """The recurrent layer of policy and critic."""
    num_envs: int = 16
    steps: int = 500_000
    learning_rate: float = 1e-3


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO on a task of POPGym (Morad et al. 2023, arXiv:2303.01859). Needs the extra `popgym`."""
    if not panel.level.startswith("popgym:") or not panel.level.endswith("-v0"):
        raise rl.UnknownNameError("POPGym task", panel.level, panel.LEVELS)
    torso = rl.TorsoParameters(
        embedder=(64,),
        recurrence=recurrent_layer(panel.recurrence, size=64, skip=True),
        middleware=(64,),
    )
    return flat(
        panel,
        recurrent_ppo(panel, torso, entropy_coefficient=0.01),
        rl.GymnasiumParameters(level=panel.level),
        panel.schedule(evaluation_interval=25_000, evaluation_episodes=20),
        validation=solved(0.9, within=panel.steps),  # the most is 1
    )
