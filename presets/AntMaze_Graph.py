"""A graph of places leads ants through mazes and rooms; below, an agent learns to walk.

The upper level plans: it learns which way-points the lower level reaches, and heads for the goal on
the shortest way. The lower level is PPO, paid for being near its way-point; `AntMaze_Graph_TD3` has
TD3 with hindsight goals instead, which needs fewer steps for its first success and far more time.
Either sees how far away its way-point is and not where it is itself, so that a step learned
anywhere is one everywhere; and a way-point asks for an ant on its feet, to be held, so that diving
at it doesn't pay.
"""

from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal

import numpy as np
from gymnasium import spaces

import coach_rl as rl
from coach_rl.presets.goal_hierarchies import GoalPanel, ReplayPanel, without_position

PUBLISHED = {
    "ant_maze_u12": (0.951, 1_000_000),
    "ant_maze_u24": (0.911, 1_000_000),
    "ant_maze_bottleneck": (0.387, 1_000_000),
    "ant_maze_complex": (0.401, 4_000_000),
}
"""DHRL's success rates and environment steps (Lee et al. 2022), by world."""
UPRIGHT = 1.0
"""Upward part of the ant's own axis at a way-point."""
STANCE = 1.0
"""Legs that point between the axes, at a way-point that asks for a stance."""
_SECONDS = 10.0
"""Time for a way-point."""


@dataclass(frozen=True, kw_only=True)
class WorldSettings:
    """Settings that depend on the world; the panel says what they mean."""

    spacing: float = 2.0
    missed: float = 10.0
    exploring: float = 0.2
    forgetting: float = 0.2
    setbacks: bool = False
    stance: bool = False
    discount: float = 0.98


# Long ways along corridors 8 m wide: fewer places to stop at, fewer walls to learn, and falls that
# cost more.
_LONG = WorldSettings(spacing=4.0, missed=20.0, discount=0.998)
# Walls must be learned once more with each key, for which averages of many tries take too long.
_KEYS = WorldSettings(exploring=0.05, forgetting=0.4, discount=0.998)
# For walkers that have learned elsewhere: few walls, and a false step costs the episode.
_PUSH = WorldSettings(forgetting=0.05, setbacks=True)
# The same, with a place to stop at in front of the gap.
_FALL = replace(_PUSH, spacing=1.0)
# A place within each gap of 1.6 m, which only an ant with its legs between the axes passes.
_GAPS = WorldSettings(spacing=1.6, stance=True)
WORLDS = {
    "ant_maze_s": _LONG,
    "ant_maze_w": _LONG,
    "ant_maze_pi": _LONG,
    "ant_maze_complex": _LONG,
    "ant_key_chest": _KEYS,
    "ant_double_key_chest": _KEYS,
    "ant_maze_bottleneck": _GAPS,
    "ant_gaps": _GAPS,
    "ant_push": _PUSH,
    "ant_push_sparse": _PUSH,
    "ant_push_stochastic": _PUSH,
    "ant_fall": _PUSH,  # twice as wide as the others
    "ant_fall_sparse": _FALL,
    "ant_fall_stochastic": _FALL,
}
"""Worlds with settings of their own."""


@dataclass(frozen=True, kw_only=True)
class GraphPanel(GoalPanel):
    """Settings of the graph, and of either walker."""

    LEVELS: ClassVar = (
        "ant_maze_u24",
        "ant_maze_u12",
        "ant_reacher",
        "ant_four_rooms",
        "ant_maze_bottleneck",
        "ant_gaps",
        "ant_maze_s",
        "ant_maze_w",
        "ant_maze_pi",
        "ant_maze_complex",
        "ant_maze",
        "ant_push",
        "ant_fall",
        "ant_push_sparse",
        "ant_push_stochastic",
        "ant_fall_sparse",
        "ant_fall_stochastic",
        "ant_four_rooms_sparse",
        "ant_key_chest",
        "ant_double_key_chest",
        "ogbench_ant_maze_medium",
        "ogbench_ant_maze_large",
        "ogbench_ant_maze_giant",
        "robotics_ant_maze_u",
        "robotics_ant_maze_medium",
        "robotics_ant_maze_large",
    )
    level: str = "ant_maze_u24"
    hierarchy: Literal["graph", "straight", "none"] = "graph"
    """graph: a graph of places hands down way-points. straight: the goal itself is the way-point,
    all else equal. none: the walker acts alone, paid for its distance from the goal, and sees where
    it is."""
    num_envs: int = 16
    steps: int = 1_000_000
    spacing: float | None = None
    """Distance between neighbouring places of the graph, in metres; None takes the world's own."""
    missed: float | None = None
    """Metres that a way-point missed costs: what an ant walks in that time; None takes the world's
    own."""
    horizon: int | None = None
    """Environment steps to a way-point, at most; None: 10 seconds."""
    stance: bool | None = None
    """True to ask for legs that point between the axes at way-points, for narrow gaps; None takes
    the world's own."""
    exploring: float | None = None
    """Fraction of episodes that head for a rarely visited place instead of the goal; None takes the
    world's own."""
    forgetting: float | None = None
    """Lowest weight of a new try in what the graph knows of an edge; None takes the world's own."""
    setbacks: bool | None = None
    """True if a way-point missed costs as much as the way has become longer, for walkers that have
    learned already; None takes the world's own."""
    discount: float | None = None
    """Discount factor of the walker; None takes the world's own."""
    learning_rate: float = 3e-4
    layers: tuple[int, ...] = (256, 256)
    evaluation_interval: int = 50_000

    @property
    def settings(self) -> WorldSettings:
        """The world's own settings, but for those that are given."""
        own = WORLDS.get(self.level, WorldSettings())
        if self.hierarchy == "none":
            own = replace(own, stance=False)  # asked for at way-points
        given = {each.name: getattr(self, each.name) for each in fields(WorldSettings)}
        return replace(own, **{name: value for name, value in given.items() if value is not None})

    @property
    def has_poses(self) -> bool:
        """True if the world can show an ant's pose."""
        return "shows_pose" in {field.name for field in fields(self.world().task)}

    @property
    def fixed_goal(self) -> tuple[float, ...]:
        """Elements of way-points behind those of a place."""
        if not self.has_poses:
            return ()
        return (UPRIGHT, STANCE) if self.settings.stance else (UPRIGHT,)

    @property
    def keys(self) -> list[str]:
        """Names of what an ant can take, seen behind what all ants see."""
        return [f"key_{number}" for number, _ in enumerate(getattr(self.world().task, "keys", ()))]

    @property
    def has_block(self) -> bool:
        """True if a block is pushed about, so that ways open and close."""
        return self.level.startswith(("ant_push", "ant_fall"))

    @property
    def hidden(self) -> tuple[str, ...]:
        """Names of what a walker does not see of what is behind what all ants see."""
        return (*self.keys, *(("block_x", "block_y", "block_z") if self.has_block else ()))

    @property
    def torso(self) -> rl.TorsoParameters:
        """Hidden layers behind what an ant sees and how far its way-point is away."""
        return replace(super().torso, keys=("observation", "desired_goal"))


@dataclass(frozen=True, kw_only=True)
class Panel(GraphPanel):
    """Settings to change with -cp."""

    symmetry: bool | None = None
    """True to know that an ant's legs are alike, and its left and right; None: where the world
    shows its pose, which that takes, below another level."""
    evaluation_interval: int = 100_000
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation."""
    rollout: int = 8192
    """Steps collected before each round of updates."""
    epochs: int = 10
    """Passes over a rollout."""
    minibatch: int = 256
    """Batch size."""


@dataclass(frozen=True, kw_only=True)
class TD3Panel(GraphPanel, ReplayPanel):
    """Settings to change with -cp."""

    epsilon: float = 0.2
    """Fraction of random actions while exploring."""
    noise: float = 0.1
    """Standard deviation of the noise on its other actions, in half-ranges of the action."""
    discount: float = 0.998
    never: float = 500.0
    """Decisions that not reaching a way-point any more counts as: a fall is worth minus that."""
    batch: int = 512
    updates_per_step: float = 0.5


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Find a way through a maze by walking it, with PPO."""
    can_be_symmetric = panel.has_poses and panel.hierarchy != "none"
    if panel.symmetry and not can_be_symmetric:
        why = (
            f"an ant that shows its pose, and those of {panel.level} can't"
            if not panel.has_poses
            else "way-points that ask for a pose, and there are none with hierarchy=none"
        )
        raise rl.ParameterError(f"symmetry=True needs {why}; set symmetry=False")
    is_symmetric = can_be_symmetric if panel.symmetry is None else panel.symmetry
    settings = panel.settings
    hidden = _hidden(panel).observation.get("observation", ())
    normalised = rl.ObservationNormalizationFilter(clip=10.0)
    walker = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(panel.rollout),
            epochs=panel.epochs,
            minibatch=panel.minibatch,
            discount=settings.discount,
            gae_lambda=panel.gae_lambda,
            recompute_advantages=True,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.05),
        ),
        network=rl.ActorCriticParameters(
            torso=replace(panel.torso, activation="tanh", orthogonal=True), initial_log_std=-0.7
        ),
        optimizer=rl.AdamParameters(
            learning_rate=panel.learning_rate, epsilon=1e-5, max_gradient_norm=0.5
        ),
        input_filter=rl.InputFilter(
            observation={"observation": (*hidden, normalised)},
            # Values of one size with any discount, or the critic's errors drown the policy's.
            reward=(
                rl.RewardRescaleFilter(factor=round(5.0 * max(1.0 - settings.discount, 1e-3), 6)),
            ),
        ),
        output_filter=rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-1.0, high=1.0),)),
        symmetry=rl.AntSymmetry(shows_axes=settings.stance) if is_symmetric else None,
    )
    return _experiment(panel, walker, reward="dense")


def TD3(panel: TD3Panel) -> rl.GraphManager:
    """Find a way through a maze by walking it, with TD3 and hindsight goals."""
    values = (-panel.never, 0.0)
    learner = rl.TD3AgentParameters(
        algorithm=rl.TD3AlgorithmParameters(
            discount=panel.discount, clip_targets=values, target_sync=rl.TargetSync(rate=0.02)
        ),
        learning=rl.LearningParameters(
            batch=panel.batch, updates_per_step=panel.updates_per_step, learning_starts=5_000
        ),
        learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        memory=rl.ReplayMemoryParameters(capacity=1_000_000),
        exploration=rl.EpsilonGreedyNoise(
            epsilon=rl.ConstantSchedule(value=panel.epsilon),
            noise=rl.GaussianNoise(scale=rl.ConstantSchedule(value=panel.noise)),
        ),
        actor=rl.ActorParameters(torso=panel.torso),
        critic=rl.CriticParameters(torso=panel.torso, bounds=values),
        actor_optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
        critic_optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
        normalise_observations=5.0,
        input_filter=_hidden(panel) if panel.has_poses else None,
    )
    walker = rl.HACAgentParameters(learner=learner, bound_values=False)
    return _experiment(panel, walker, reward="sparse")


def _experiment(
    panel: GraphPanel, walker: rl.AgentParameters, reward: Literal["sparse", "dense"]
) -> rl.GraphManager:
    """The graph above a walker that is paid for its way-points so; or the walker without it."""
    stance = panel.settings.stance
    if stance and not panel.has_poses:
        raise rl.ParameterError(
            f"stance=True needs an ant that shows its pose, and those of {panel.level} can't; set "
            "stance=False"
        )
    if stance and panel.hierarchy == "none":
        raise rl.ParameterError(
            "stance=True is asked for at way-points, and there are none with hierarchy=none; set "
            "stance=False"
        )
    shown = {
        "shows_pose": panel.has_poses,
        "shows_stance": stance,
        "observe_block": panel.has_block,
    }
    shown = {key: True for key, is_shown in shown.items() if is_shown}  # not all worlds can
    world = panel.world(**shown)
    goals = world.task.goal_space
    way_points = replace(world.task.subgoal_space, observed="relative", reward=reward)
    low = rl.LevelParameters(
        name="low",
        agent=walker,
        goal_space=way_points,
        horizon=panel.horizon or _steps(_SECONDS, world.task),
        goal_is_terminal=False,
    )
    levels: tuple[rl.LevelParameters, ...]
    match panel.hierarchy:
        case "graph":
            # Headed for as closely as a way-point, whatever a success is.
            near = replace(goals, threshold=tuple(map(min, goals.threshold, way_points.threshold)))
            planner = _planner(panel, near, world.task.conditions)
            levels = (rl.LevelParameters(name="graph", agent=planner, goal_space=near), low)
        case "straight":
            if panel.keys or panel.has_block:
                raise rl.ParameterError(
                    f"hierarchy=straight heads for places, and {panel.level} asks for more; set "
                    "hierarchy=graph or hierarchy=none"
                )
            script = rl.ScriptedAgentParameters(policy=straight)
            levels = (rl.LevelParameters(name="top", agent=script, goal_space=goals), low)
        case "none":
            alone = replace(goals, observed="relative", reward=reward)
            levels = (rl.LevelParameters(name="alone", agent=walker, goal_space=alone),)
    return rl.HRLGraphManager(
        rl.GraphParameters(
            levels=levels,
            environment=world,
            evaluation_environment=panel.evaluation_world(**shown),
            schedule=panel.schedule(),
            num_envs=panel.num_envs,
            validation=_validation(panel),
        )
    )


def straight(observation: rl.Observation, space: rl.Space) -> rl.Action:
    """The goals [R, G] as way-points [R, G + P], with the highest values of the pose's P parts.

    These are what a graph asks for, `UPRIGHT` and `STANCE`.
    """
    assert isinstance(space, spaces.Box)
    goals = observation["desired_goal"]
    way_points = np.tile(space.high, (len(goals), 1))
    way_points[:, : goals.shape[1]] = goals
    return way_points


def _planner(
    panel: GraphPanel, goals: rl.GoalSpace, conditions: rl.GoalSpace | None
) -> rl.GraphAgentParameters:
    """Plans from place to place, and from what else decides where one can go to the same."""
    settings = panel.settings
    spacing = [settings.spacing] * goals.size
    if panel.keys:
        spacing[-1] = len(panel.keys) / (len(panel.keys) + 1)  # a layer for each number of keys
    if conditions is not None:
        spacing += [2 * threshold for threshold in conditions.threshold]  # moved either way, or not
    return rl.GraphAgentParameters(
        places=rl.GridPlaces(spacing=tuple(spacing)),
        costs=rl.EdgeLengths(missed=settings.missed),
        forgetting=settings.forgetting,
        setbacks=settings.setbacks,
        exploring=settings.exploring,
        fixed_goal=panel.fixed_goal,
        conditions=conditions,
    )


def _hidden(panel: GraphPanel) -> rl.InputFilter:
    """Hides from a walker where it is and what else only the graph needs, if the world shows it."""
    is_below = panel.has_poses and panel.hierarchy != "none"
    return without_position(*panel.hidden) if is_below else rl.InputFilter()


def _steps(seconds: float, task: rl.GoalTask) -> int:
    """So many environment steps as last that long."""
    timestep: float = task.load().opt.timestep
    return round(seconds / (task.frame_skip * timestep))


def _validation(panel: GraphPanel) -> rl.ValidationParameters | None:
    if panel.hierarchy != "graph" or panel.level not in PUBLISHED:
        return None
    success_rate, steps = PUBLISHED[panel.level]
    return rl.ValidationParameters(success_rate=success_rate, within=rl.EnvironmentSteps(steps))
