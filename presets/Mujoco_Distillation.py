"""DAgger on a MuJoCo task: a recurrent student without velocities learns from a trained agent."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import coach_rl as rl
from coach_rl.presets.mujoco_tasks import TaskPanel
from coach_rl.presets.panels import LayerKind, flat, recurrent_layer

ELEMENTS = {"half_cheetah": (8, 9), "hopper": (5, 6), "walker2d": (8, 9)}
"""Positions and velocities in the observation, in this order, by task."""


@dataclass(frozen=True, kw_only=True)
class Panel(TaskPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = tuple(ELEMENTS)
    level: str = "hopper"
    """half_cheetah, hopper or walker2d, of which the student sees the positions alone."""
    num_envs: int = 8
    steps: int = 400_000
    teacher: str | None = None
    """A run's folder or checkpoint, or trained:NAME; None: trained:Mujoco_PPO/LEVEL."""
    teacher_steps: int = 20_000
    """Environment steps over which the share of the teacher's decisions falls from 1 to 0."""
    recurrence: LayerKind = "gru"
    """The student's recurrent layer."""
    size: int = 64
    """Numbers in the recurrent layer's output."""
    sequence: int = 32
    """Steps of a sequence that is learned from."""
    loss: Literal["likelihood", "squared", "divergence"] = "squared"
    """likelihood: of the teacher's actions. squared: distance of the student's mean from them.
    divergence: KL(teacher || student) of their distributions."""
    initial_log_std: float | None = None
    """Logarithm of the standard deviation of the student's actions at the start. None: -3.5 with
    loss="squared", where it stays: with more noise a student falls sooner, and learns less of what
    follows; -2 with the others, which learn it."""
    batch: int = 512
    """Transitions per update, in whole sequences."""
    updates_per_step: float = 1 / 16
    """Gradient steps per environment step."""
    learning_rate: float = 1e-3
    """Learning rate at the start; it falls to zero."""
    layers: tuple[int, ...] = (128,)
    """Sizes of the hidden layers behind the recurrent one."""
    memory: int = 400_000
    """Transitions kept."""
    evaluation_interval: int = 20_000
    """Environment steps between evaluations."""

    @property
    def log_std(self) -> float:
        """Logarithm of the standard deviation of the student's actions at the start."""
        if self.initial_log_std is not None:
            return self.initial_log_std
        return -3.5 if self.loss == "squared" else -2.0

    def hidden_velocities(self) -> rl.ObservationReductionBySubPartsNameFilter:
        """The filter that leaves the velocities out."""
        positions, velocities = ELEMENTS[self.task_name]
        return rl.ObservationReductionBySubPartsNameFilter(
            names=("position",) * positions + ("velocity",) * velocities,
            sub_parts=("position",),
        )


def graph_manager(panel: Panel) -> rl.GraphManager:
    """A student that sees positions clones a teacher that sees velocities as well."""
    layer = recurrent_layer(panel.recurrence, size=panel.size, skip=True)
    torso = rl.TorsoParameters(
        embedder=(),
        recurrence=layer,
        middleware=panel.layers,
        activation="relu",
        orthogonal=False,
    )
    agent = rl.DAggerAgentParameters(
        teacher=rl.TeacherParameters(
            run=panel.teacher or f"trained:Mujoco_PPO/{panel.task_name}",
        ),
        beta=rl.LinearSchedule(start=1.0, end=0.0, over=rl.EnvironmentSteps(panel.teacher_steps)),
        target="distribution" if panel.loss == "divergence" else "action",
        loss="likelihood" if panel.loss == "divergence" else panel.loss,
        policy=rl.PolicyParameters(torso=torso, initial_log_std=panel.log_std),
        learning=rl.LearningParameters(
            batch=panel.batch, updates_per_step=panel.updates_per_step, learning_starts=2_000
        ),
        memory=rl.ReplayMemoryParameters(
            capacity=panel.memory,
            draws=rl.SingleTransitions()
            if layer is None
            else rl.SequenceParameters(length=panel.sequence),
        ),
        optimizer=rl.AdamParameters(learning_rate=panel.learning_rate, max_gradient_norm=1.0),
        learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        input_filter=rl.InputFilter(
            observation={
                "observation": (
                    panel.hidden_velocities(),
                    rl.ObservationNormalizationFilter(clip=10.0),
                )
            }
        ),
    )
    return flat(
        panel,
        agent,
        rl.MujocoParameters(level=panel.level),
        panel.schedule(panel.evaluation_interval),
        validation=None,
    )
