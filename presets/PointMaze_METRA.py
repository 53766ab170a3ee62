"""Skills are discovered in a hall without any reward, and used to reach goals there.

`task=skills` discovers them. `task=goals` learns to choose among the skills of
another run (`skills`), `task=flat` learns the same without any.
"""

from dataclasses import dataclass, replace
from typing import Literal

import coach_rl as rl
from coach_rl.presets.panels import RunPanel, hrl

MAP = (
    "###########",
    "#.........#",
    "#.##...##.#",
    "#.#.....#.#",
    "#.........#",
    "#....S....#",
    "#.........#",
    "#.#.....#.#",
    "#.##...##.#",
    "#.........#",
    "###########",
)
"""A hall with a wall before each corner; every episode starts in its middle."""


@dataclass(frozen=True, kw_only=True)
class Panel(RunPanel):
    """Settings to change with -cp."""

    task: Literal["skills", "goals", "flat"] = "skills"
    """skills: discover them without reward. goals: reach goals by choosing among the skills of
    another run. flat: reach goals without skills."""
    method: Literal["metra", "diayn", "random"] = "metra"
    """Method of discovery. random: the control, which acts at random."""
    constraint: Literal["temporal", "euclidean", "none"] = "temporal"
    """METRA: largest distance of the latents of two neighbouring states: 1, as far as they are
    apart in the observation (LSD), or any."""
    size: int = 2
    """METRA: elements of a skill."""
    count: int = 8
    """DIAYN: number of skills."""
    skills: str | None = None
    """task=goals: the run whose skills are used."""
    horizon: int = 20
    """task=goals: steps for which a skill is followed."""
    num_envs: int = 32
    steps: int = 20_000
    entropy: float = -1.0
    """Target entropy of SAC in nats. A choice among DIAYN's skills has SAC's own."""
    batch: int = 128
    """Transitions per gradient step."""
    updates_per_step: float = 0.25
    """Gradient steps per environment step."""
    learning_rate: float = 1e-3
    """Learning rate of all networks."""
    layers: tuple[int, ...] = (64, 64)
    """Hidden layers of all networks."""


def hall(*, terminate: bool) -> rl.GoalWorldParameters:
    """The world; `terminate` ends episodes at their goals."""
    return rl.GoalWorldParameters(
        level="point_maze_u", kwargs={"maze": MAP, "terminate": terminate}, max_episode_steps=100
    )


def graph_manager(panel: Panel) -> rl.GraphManager:
    """A ball in the middle of a hall discovers skills, or reaches goals anywhere in it.

    With goals, a step is worth -1 until the goal is reached, and 0 there, where the episode ends.
    """
    torso = rl.TorsoParameters(middleware=panel.layers, activation="relu", orthogonal=False)
    adam = rl.AdamParameters(learning_rate=panel.learning_rate)
    sac = rl.SACAgentParameters(
        actor=rl.ActorParameters(torso=torso),
        critic=rl.CriticParameters(torso=torso),
        actor_optimizer=adam,
        critic_optimizer=adam,
        temperature_optimizer=adam,
        algorithm=rl.SACAlgorithmParameters(initial_temperature=0.1, target_entropy=panel.entropy),
        learning=rl.LearningParameters(batch=panel.batch, updates_per_step=panel.updates_per_step),
        memory=rl.ReplayMemoryParameters(capacity=500_000),
    )
    directions = rl.METRAGoalSpace(
        low=(-1.0,) * panel.size,
        high=(1.0,) * panel.size,
        threshold=(0.0,) * panel.size,
        constraint=panel.constraint,
        torso=torso,
        optimizer=adam,
        multiplier_optimizer=adam,
    )
    low = rl.LevelParameters(name="low", agent=replace(sac, name="skills"), goal_space=directions)
    if panel.method == "random":
        low = replace(low, agent=rl.UniformAgentParameters(), goal_space=rl.OptionSpace(count=2))
    elif panel.method == "diayn":
        diayn = rl.DIAYNAgentParameters(
            name="skills",
            actor=sac.actor,
            critic=sac.critic,
            actor_optimizer=adam,
            critic_optimizer=adam,
            discriminator=rl.DiscriminatorParameters(torso=torso),
            discriminator_optimizer=adam,
            learning=sac.learning,
            memory=sac.memory,
        )
        low = replace(low, agent=diayn, goal_space=rl.OptionSpace(count=panel.count))
    top = rl.LevelParameters(name="top", agent=rl.UniformAgentParameters())
    if panel.task == "goals":
        if panel.skills is None:
            raise rl.ParameterError(
                "task=goals chooses among skills that were discovered; set skills to a run of "
                "task=skills"
            )
        per_decision = panel.updates_per_step * panel.horizon
        learning = replace(sac.learning, updates_per_step=per_decision, learning_starts=panel.batch)
        is_discrete = isinstance(low.goal_space, rl.OptionSpace)
        algorithm = replace(
            sac.algorithm,
            discount=sac.algorithm.discount**panel.horizon,
            target_entropy=None if is_discrete else panel.entropy,
        )
        top = replace(top, agent=replace(sac, algorithm=algorithm, learning=learning))
        low = replace(low, horizon=panel.horizon, load=panel.skills, frozen=True)
    return hrl(
        panel,
        (replace(top, agent=sac),) if panel.task == "flat" else (top, low),
        hall(terminate=panel.task != "skills"),
        panel.schedule(evaluation_interval=10_000, evaluation_episodes=10),
        validation=None,
    )
