"""Robots that observe their positions alone, so that velocities have to be inferred from memory.

The convention of Ni et al. 2022, "Recurrent Model-Free RL Can Be a Strong Baseline for Many
POMDPs", whose tasks of this kind end in `-P`. Rewards and ends are those of the full task.
"""

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array
from coach_rl.environments.mujoco.gymnasium_task import GymnasiumTask
from coach_rl.environments.mujoco.locomotion import HalfCheetah, Hopper, Walker2d
from coach_rl.environments.mujoco.task import MujocoState


class _PositionsOnly:
    """The observation of a robot that sees its positions alone."""

    exclude_current_positions_from_observation: bool

    def observation(self, state: MujocoState) -> Array:
        skipped = int(self.exclude_current_positions_from_observation)
        return state.qpos[:, skipped:].copy()


@parameter_class
class HalfCheetahPositions(_PositionsOnly, HalfCheetah):
    """HalfCheetah-v5 without velocities in the observation, [R, 8] by default."""


@parameter_class
class HopperPositions(_PositionsOnly, Hopper):
    """Hopper-v5 without velocities in the observation, [R, 5] by default."""


@parameter_class
class Walker2dPositions(_PositionsOnly, Walker2d):
    """Walker2d-v5 without velocities in the observation, [R, 8] by default."""


POSITIONS_ONLY: dict[str, type[GymnasiumTask]] = {
    "half_cheetah_p": HalfCheetahPositions,
    "hopper_p": HopperPositions,
    "walker2d_p": Walker2dPositions,
}
"""The tasks whose velocities are hidden, by name."""
