"""SAC from pictures of the DeepMind Control Suite: DrQ (Kostrikov et al. 2020, arXiv:2004.13649).

Differences from DrQ: one shift of each picture in place of two, as its successor; batches of 128 in
place of 512; actor and temperature learn at every gradient step in place of every other one.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import coach_rl as rl
from coach_rl.presets.panels import RunPanel, flat, solved

PICTURE = "observation"
"""Observation key of the pictures."""
MARKS = {"cartpole-swingup": (650.0, 12_500)}
"""Evaluation reward to reach, and environment steps by which, by task."""


@dataclass(frozen=True, kw_only=True)
class Panel(RunPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = rl.BENCHMARK_TASKS  # the others of the suite serve as well
    level: str = "cartpole-swingup"
    """A task, domain-task, of the suite; dm_control: may stand before it."""
    num_envs: int = 1
    steps: int = 62_500
    """Environment steps to train for, heat-up included: decisions, of `action_repeat` frames."""
    action_repeat: int | None = None
    """Steps of the task that an action lasts; None: 8 for cartpole, 2 for finger and walker, 4 for
    others."""
    frames: int = 3
    """Pictures that the networks see at once."""
    shift: int = 4
    """Most pixels by which sampled pictures are shifted; 0: they are not."""
    targets: int = 1
    """K, shifts that a target is averaged over."""
    losses: int = 1
    """M, shifts that a loss is averaged over."""
    learning_rate: float = 1e-3
    """Learning rate of actor, critics and temperature."""
    discount: float = 0.99
    """Discount factor."""
    initial_temperature: float = 0.1
    """Weight of the entropy in nats at the start; it is learned."""
    n_step: int = 1
    """Rewards summed before bootstrapping."""
    prioritised: bool = False
    """If True, transitions are sampled in proportion to their errors."""
    memory: int = 100_000
    """Transitions kept, of one picture each: 2.1 GB."""
    batch: int = 128
    """Batch size."""
    updates_per_step: float = 1.0
    """Gradient steps per environment step."""
    heatup: int = 1_000
    """Random steps at the start."""
    features: int = 50
    """Features of a picture."""
    layers: tuple[int, ...] = (1024, 1024)
    """Sizes of the hidden layers of actor and critics."""
    evaluation_interval: int = 1_250
    """Environment steps between evaluations, of ten episodes each."""

    @property
    def environment(self) -> rl.DMControlParameters:
        """The task, from pictures."""
        return rl.DMControlParameters(
            level=self.level,
            shows="picture",
            action_repeat=self.action_repeat or rl.DMControlParameters.usual_repeat(self.level),
        )


def graph_manager(panel: Panel) -> rl.GraphManager:
    """SAC on a task, from pictures. Needs the extra `dm_control`, and EGL or OSMesa."""
    own = rl.PictureTorsoParameters(features=panel.features, middleware=panel.layers)
    borrowed = replace(own, convolutions_of="critics")
    adam = rl.AdamParameters(learning_rate=panel.learning_rate)
    shifts: tuple[rl.RandomShiftParameters, ...] = ()
    if not panel.shift and (panel.targets, panel.losses) != (1, 1):
        raise rl.ParameterError(
            "shift=0 shifts no picture, so that there is nothing to average over, got "
            f"targets={panel.targets} and losses={panel.losses}; leave them out"
        )
    if panel.shift:
        shifts = (
            rl.RandomShiftParameters(
                pad=panel.shift, targets=panel.targets, losses=panel.losses, keys=(PICTURE,)
            ),
        )
    agent = rl.SACAgentParameters(
        algorithm=rl.SACAlgorithmParameters(
            discount=panel.discount,
            target_sync=rl.TargetSync(rate=0.01, every=2),
            initial_temperature=panel.initial_temperature,
        ),
        learning=rl.LearningParameters(batch=panel.batch, updates_per_step=panel.updates_per_step),
        memory=rl.ReplayMemoryParameters(
            capacity=panel.memory,
            n_step=panel.n_step,
            prioritised=rl.PrioritisedParameters() if panel.prioritised else None,
            frame_stack=(PICTURE,),
            parts=shifts,
        ),
        actor=rl.ActorParameters(torso=borrowed, log_std_bounds=(-10.0, 2.0)),
        critic=rl.CriticParameters(torso=own),
        actor_optimizer=adam,
        critic_optimizer=adam,
        temperature_optimizer=adam,
        input_filter=rl.InputFilter(
            observation={PICTURE: (rl.ObservationStackingFilter(stack_size=panel.frames),)}
        ),
    )
    environment = panel.environment
    marks = MARKS.get(environment.level)
    return flat(
        panel,
        agent,
        environment,
        panel.schedule(panel.evaluation_interval, heatup=panel.heatup),
        validation=None if marks is None else solved(*marks),
    )
