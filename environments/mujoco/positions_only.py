"""Robots that observe their positions alone, so that velocities have to be inferred from memory.

The convention of Ni et al. 2022, "Recurrent Model-Free RL Can Be a Strong Baseline for Many
POMDPs", whose tasks of this kind end in `-P`. Rewards and ends are those of the full task.
"""

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array
from coach_rl.environments.mujoco.gymnasium_task import GymnasiumTask
from coach_rl.environments.mujoco.locomotion import HalfCheetah, Hopper, Runner, Walker2d
from coach_rl.environments.mujoco.task import MujocoState


@parameter_class
class HalfCheetahPositions(HalfCheetah):
    """HalfCheetah-v5 without velocities in the observation."""

    def observation(self, state: MujocoState) -> Array:
        """Positions, [R, 8] by default."""
        return _positions(self, state)


@parameter_class
class HopperPositions(Hopper):
    """Hopper-v5 without velocities in the observation."""

    def observation(self, state: MujocoState) -> Array:
        """Positions, [R, 5] by default."""
        return _positions(self, state)


@parameter_class
class Walker2dPositions(Walker2d):
    """Walker2d-v5 without velocities in the observation."""

    def observation(self, state: MujocoState) -> Array:
        """Positions, [R, 8] by default."""
        return _positions(self, state)


POSITIONS_ONLY: dict[str, type[GymnasiumTask]] = {
    "half_cheetah_p": HalfCheetahPositions,
    "hopper_p": HopperPositions,
    "walker2d_p": Walker2dPositions,
}
"""The tasks whose velocities are hidden, by name."""


def _positions(task: Runner, state: MujocoState) -> Array:
    skipped = int(task.exclude_current_positions_from_observation)
    return state.qpos[:, skipped:].copy()
