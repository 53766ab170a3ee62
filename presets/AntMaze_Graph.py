"""A graph of places plans the way of ants through mazes and rooms; below, an agent learns to walk.

The upper level plans: it learns which way-points the lower level reaches, and takes the shortest
way to the goal. The lower level is PPO, rewarded for being near its way-point; `AntMaze_Graph_TD3`
has TD3 with hindsight goals instead, which needs fewer steps for its first success and far more
time. Either observes its distance to the way-point and not its own position, so that a step learned
anywhere works everywhere; and a way-point must be held by an ant on its feet, so that diving at it
brings no reward.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from gymnasium import spaces

import coach_rl as rl
from coach_rl.presets.goal_hierarchies import GoalPanel, ReplayPanel, without_position
from coach_rl.presets.panels import arrives, hrl, noisy, with_given

PUBLISHED = {
    "ant_maze_u12": arrives(0.951, within=1_000_000),
    "ant_maze_u24": arrives(0.911, within=1_000_000),
    "ant_maze_bottleneck": arrives(0.387, within=1_000_000),
    "ant_maze_complex": arrives(0.401, within=4_000_000),
}
"""DHRL's success rates and environment steps (Lee et al. 2022), by world."""
UPRIGHT = 1.0
"""Vertical component of the ant's own axis at a way-point."""
STANCE = 1.0
"""Legs that point between the axes, at a way-point with a stance."""
_SECONDS = 10.0
"""Time for a way-point."""


@dataclass(frozen=True, kw_only=True)
class WorldSettings:
    """Settings that depend on the world; `GraphPanel` documents them."""

    spacing: float = 2.0
    missed: float = 10.0
    exploring: float = 0.2
    forgetting: float = 0.2
    setbacks: bool = False
    stance: bool = False
    discount: float = 0.98


_GAPS = WorldSettings(spacing=1.6, stance=True)
_LONG = WorldSettings(spacing=4.0, missed=20.0, discount=0.998)
_PUSH = WorldSettings(forgetting=0.05, setbacks=True)
_KEYS = WorldSettings(exploring=0.05, forgetting=0.4, discount=0.998)
_ROWS = (
    ("ant_maze_u24 ant_maze_u12 ant_reacher ant_four_rooms", WorldSettings()),
    ("ant_maze_bottleneck ant_gaps", _GAPS),
    ("ant_maze_s ant_maze_w ant_maze_pi ant_maze_complex", _LONG),
    ("ant_maze", WorldSettings()),
    ("ant_push ant_fall ant_push_sparse ant_push_stochastic", _PUSH),
    ("ant_fall_sparse ant_fall_stochastic", replace(_PUSH, spacing=1.0)),
    ("ant_four_rooms_sparse", WorldSettings()),
    ("ant_key_chest ant_double_key_chest", _KEYS),
    ("ogbench_ant_maze_medium ogbench_ant_maze_large ogbench_ant_maze_giant", WorldSettings()),
    ("robotics_ant_maze_u robotics_ant_maze_medium robotics_ant_maze_large", WorldSettings()),
)
WORLDS = {level: settings for levels, settings in _ROWS for level in levels.split()}
"""Settings by world; docs/algorithms/graph_ants.md has the reasons."""


@dataclass(frozen=True, kw_only=True)
class GraphPanel(GoalPanel):
    """Settings of the graph, and of either walker."""

    LEVELS: ClassVar = tuple(WORLDS)
    level: str = "ant_maze_u24"
    hierarchy: Literal["graph", "straight", "none"] = "graph"
    """graph: a graph of places sends way-points. straight: the goal itself is the way-point, all
    else equal. none: the walker acts alone, rewarded by its distance from the goal, and observes
    its own position."""
    num_envs: int = 16
    steps: int = 1_000_000
    spacing: float | None = None
    """Distance between neighbouring places of the graph, in metres; None takes the world's own."""
    missed: float | None = None
    """Cost of a missed way-point in metres: what an ant walks in that time; None takes the world's
    own."""
    horizon: int | None = None
    """Environment steps to a way-point, at most; None: 10 seconds."""
    stance: bool | None = None
    """If True, legs must point between the axes at way-points, for narrow gaps; None takes the
    world's own."""
    exploring: float | None = None
    """Fraction of episodes to a rarely visited place instead of the goal; None takes the world's
    own."""
    forgetting: float | None = None
    """Lowest weight of a new attempt in the averages of an edge; None takes the world's own."""
    setbacks: bool | None = None
    """If True, a missed way-point costs the length that the way has gained, for walkers that have
    learned already; None takes the world's own."""
    discount: float | None = None
    """Discount factor of the walker; None takes the world's own."""
    learning_rate: float = 3e-4
    layers: tuple[int, ...] = (256, 256)
    evaluation_interval: int = 50_000

    @property
    def settings(self) -> WorldSettings:
        """The world's own settings, replaced by those that are given."""
        own = WORLDS.get(self.level, WorldSettings())
        if self.hierarchy == "none":
            own = replace(own, stance=False)  # part of way-points
        return with_given(own, self)

    @property
    def has_poses(self) -> bool:
        """True if observations of the world can include an ant's pose."""
        return self.has("shows_pose")

    @property
    def hides_position(self) -> bool:
        """True if the walker observes a way-point with a pose instead of its own position."""
        return self.has_poses and self.hierarchy != "none"

    def require_poses(self, **switches: bool | None) -> None:
        """Raise `ParameterError` if a switch is on and there are no way-points with poses."""
        for name, is_on in switches.items():
            if is_on and not self.has_poses:
                why = f"an ant that shows its pose, and those of {self.level} can't"
            elif is_on and self.hierarchy == "none":
                why = "way-points with a pose, and there are none with hierarchy=none"
            else:
                continue
            raise rl.ParameterError(f"{name}=True needs {why}; set {name}=False")

    @property
    def fixed_goal(self) -> tuple[float, ...]:
        """Elements of way-points behind those of a place."""
        if not self.has_poses:
            return ()
        return (UPRIGHT, STANCE) if self.settings.stance else (UPRIGHT,)

    @property
    def keys(self) -> list[str]:
        """Names of the elements of the observation for keys, behind those of all ants."""
        return [f"key_{number}" for number, _ in enumerate(getattr(self.world().task, "keys", ()))]

    @property
    def has_block(self) -> bool:
        """True if a block can be pushed, which opens and closes ways."""
        return self.level.startswith(("ant_push", "ant_fall"))

    @property
    def torso(self) -> rl.TorsoParameters:
        """Hidden layers on the observation and the relative way-point."""
        return replace(super().torso, keys=("observation", "desired_goal"))


@dataclass(frozen=True, kw_only=True)
class Panel(GraphPanel):
    """Settings to change with -cp."""

    symmetry: bool | None = None
    """If True, the agent uses the symmetry of an ant's legs and sides, which takes poses; None: in
    worlds with poses, below another level."""
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
    """Decisions to which a way-point that can't be reached any more amounts; a fall is worth minus
    that."""
    batch: int = 512
    updates_per_step: float = 0.5


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Find a way through a maze by walking it, with PPO."""
    panel.require_poses(symmetry=panel.symmetry)
    is_symmetric = panel.hides_position if panel.symmetry is None else panel.symmetry
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
        exploration=noisy(panel.epsilon, panel.noise),
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
    """The graph above a walker with this reward for way-points; or the walker without a graph."""
    stance = panel.settings.stance
    panel.require_poses(stance=stance)
    switches = {
        "shows_pose": panel.has_poses,
        "shows_stance": stance,
        "observe_block": panel.has_block,
    }
    shown = {name: True for name, is_on in switches.items() if is_on}  # not all worlds can
    world = panel.world(**shown)
    goals = world.task.goal_space
    way_points = replace(world.task.subgoal_space, observed="relative", reward=reward)
    low = rl.LevelParameters(
        name="low",
        agent=walker,
        goal_space=way_points,
        horizon=panel.horizon or _steps(world.task),
        goal_is_terminal=False,
    )
    levels: tuple[rl.LevelParameters, ...]
    match panel.hierarchy:
        case "graph":
            # Approached as closely as a way-point, however large the radius of success.
            near = replace(goals, threshold=tuple(map(min, goals.threshold, way_points.threshold)))
            planner = _planner(panel, near, world.task.conditions)
            levels = (rl.LevelParameters(name="graph", agent=planner, goal_space=near), low)
        case "straight":
            if panel.keys or panel.has_block:
                raise rl.ParameterError(
                    f"hierarchy=straight sends places, and goals of {panel.level} are more; set "
                    "hierarchy=graph or hierarchy=none"
                )
            script = rl.ScriptedAgentParameters(policy=straight)
            levels = (rl.LevelParameters(name="top", agent=script, goal_space=goals), low)
        case "none":
            alone = replace(goals, observed="relative", reward=reward)
            levels = (rl.LevelParameters(name="alone", agent=walker, goal_space=alone),)
    return hrl(
        panel,
        levels,
        world,
        panel.schedule(),
        evaluation_environment=panel.evaluation_world(**shown),
        validation=PUBLISHED.get(panel.level) if panel.hierarchy == "graph" else None,
    )


def straight(observation: rl.Observation, space: rl.Space) -> rl.Action:
    """The goals [R, G] as way-points [R, G + P], with the highest values of the pose's P parts."""
    assert isinstance(space, spaces.Box)
    goals = observation["desired_goal"]
    way_points = np.tile(space.high, (len(goals), 1))
    way_points[:, : goals.shape[1]] = goals
    return way_points


def _planner(
    panel: GraphPanel, goals: rl.GoalSpace, conditions: rl.GoalSpace | None
) -> rl.GraphAgentParameters:
    """A graph over places, and over the other conditions that open and close ways."""
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
    """Hides from a walker its position, and what only the graph needs."""
    if not panel.hides_position:
        return rl.InputFilter()
    block = ("block_x", "block_y", "block_z") if panel.has_block else ()
    return without_position(*panel.keys, *block)


def _steps(task: rl.GoalTask) -> int:
    """Environment steps of the time for a way-point."""
    timestep: float = task.load().opt.timestep
    return round(_SECONDS / (task.frame_skip * timestep))
