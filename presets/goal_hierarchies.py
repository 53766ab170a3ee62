"""Hierarchies in worlds with goals, for presets: stacks of HAC, or one agent alone.

Meant to be imported by presets, the shipped ones and yours.
"""

from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal

import coach_rl as rl
from coach_rl.presets.panels import hrl, noisy, value_bounds


def without_position(*more: str) -> rl.InputFilter:
    """A filter that hides an ant's own position from the lowest level.

    A step to the left is the same everywhere. The level's memory keeps `achieved_goal`, which its
    networks may leave out.

    Args:
        more: Names of further elements at the end of the observation, hidden as well.
    """
    hidden = rl.ObservationReductionBySubPartsNameFilter(
        names=(*rl.ANT_OBSERVED, *more), sub_parts=("x", "y", *more), method="discard"
    )
    return rl.InputFilter(observation={"observation": (hidden,)})


WITHOUT_POSITION = without_position()
"""The filter for most worlds."""
POINT_MAZES = (
    *(f"point_maze_{maze}" for maze in ("u", "medium", "large", "four_rooms")),
    *(f"ogbench_point_maze_{size}" for size in ("medium", "large", "giant")),
    *(f"robotics_point_maze_{size}" for size in ("u", "medium", "large")),
)
"""The point mazes, by level."""
ANT_MAZES = tuple(
    f"ant_maze_{maze}" for maze in ("u24", "u12", "s", "w", "pi", "bottleneck", "complex")
)
"""The ant mazes of DHRL and BEAG, by level."""


@dataclass(frozen=True, kw_only=True)
class GoalPanel:
    """Settings of all presets with hierarchies in goal worlds."""

    LEVELS: ClassVar[tuple[str, ...]]
    level: str
    """The goal world."""
    num_envs: int = 8
    """Environments in parallel."""
    steps: int
    """Environment steps to train for."""
    learning_rate: float = 1e-3
    """Learning rate of actors and critics."""
    layers: tuple[int, ...]
    """Sizes of the hidden layers."""
    evaluation_interval: int
    """Environment steps between evaluations."""

    def world(self, **kwargs: object) -> "rl.GoalWorldParameters":
        """The goal world with these fields; UnknownNameError for a world of other presets."""
        if self.level not in self.LEVELS:
            raise rl.UnknownNameError(
                "level", self.level, self.LEVELS, "`coach describe PRESET` lists them"
            )
        return rl.GoalWorldParameters(level=self.level, kwargs=kwargs)

    def evaluation_world(self, **kwargs: object) -> "rl.GoalWorldParameters":
        """The same with its goals of evaluations, where they differ from those of training."""
        return self.world(**kwargs, **({"targets": "evaluation"} if self.has("targets") else {}))

    def has(self, setting: str) -> bool:
        """Return whether the goal world has a setting of this name."""
        return setting in {field.name for field in fields(self.world().task)}

    @property
    def torso(self) -> rl.TorsoParameters:
        """The hidden layers."""
        return rl.TorsoParameters(middleware=self.layers, activation="relu", orthogonal=False)

    def schedule(self, heatup: int = 0) -> rl.ScheduleParameters:
        """The schedule, with random steps at the start (`heatup`)."""
        return rl.ScheduleParameters(
            heatup=rl.EnvironmentSteps(heatup),
            training=rl.EnvironmentSteps(self.steps),
            evaluation_interval=rl.EnvironmentSteps(self.evaluation_interval),
            evaluation_episodes=rl.EnvironmentEpisodes(50),
        )


@dataclass(frozen=True, kw_only=True)
class ReplayPanel(GoalPanel):
    """Settings where the lowest level learns from a replay memory."""

    discount: float = 0.98
    """Discount factor per decision of a level."""
    batch: int = 256
    """Batch size."""
    updates_per_step: float = 0.25
    """Gradient steps per environment step, at the lowest level."""


@dataclass(frozen=True, kw_only=True)
class HACPanel(ReplayPanel):
    """Settings of hierarchical actor-critic."""

    hierarchy: Literal["hac", "none"] = "hac"
    """hac: levels. none: one agent acts alone, all else equal."""
    levels: Literal[2, 3] = 2
    """Number of levels of the hierarchy."""
    hindsight: bool = True
    """If True, it learns from other goals as well; False is the control, all else equal."""
    upper_updates_per_step: float = 4.0
    """Gradient steps per decision of the level above it."""
    epsilon: float = 0.2
    """Probability of a random action while exploring, at the lowest level."""
    exploration: Literal["epsilon_greedy", "epsilon_z_greedy"] = "epsilon_greedy"
    """epsilon_greedy: a random action lasts for one step. epsilon_z_greedy: for a random time."""
    noise: float = 0.1
    """Standard deviation of the noise on its other actions, in half-ranges of the action."""
    testing_rate: float = 0.3
    """Fraction of sub-goals that are tested."""
    layers: tuple[int, ...] = (128, 128, 128)

    @property
    def ratio(self) -> float:
        """Transitions with hindsight goals for each one with the goal it had."""
        return 3.0 if self.hindsight else 0.0


@dataclass(frozen=True, kw_only=True)
class SubGoalLearning:
    """Settings of the levels above the lowest, which learn to choose sub-goals by SAC."""

    entropy: float = -2.0
    """Target entropy in nats; the remaining spread must fit the thresholds of the sub-goals."""
    temperature: float = 1.0
    """Initial temperature; a higher one keeps the sub-goals spread out for longer."""
    temperature_learning_rate: float = 3e-4
    """Learning rate of the temperature."""
    starts: int = 1_000
    """Decisions before learning starts: the level below should be able to do something by then."""
    candidates: int = 0
    """Sub-goals of either kind that a greedy decision chooses among by the critic. 0 takes the
    policy's mean, which is enough where there is only one way."""


def hac_experiment(
    panel: HACPanel,
    world: "rl.GoalWorldParameters",
    *,
    horizons: tuple[int, ...],
    subgoals: tuple[rl.GoalSpace, ...],
    upper: SubGoalLearning,
    validation: rl.ValidationParameters | None,
    planner: rl.AgentParameters | None = None,
    planner_at: int = 0,
    hidden: rl.InputFilter | None = None,
    evaluation_world: "rl.GoalWorldParameters | None" = None,
) -> rl.GraphManager:
    """HAC in a goal world, or one agent of the same kind alone.

    Args:
        panel: The preset's settings.
        world: The goal world.
        horizons: Decisions of each level's sub-episodes at most, top first.
        subgoals: The goal spaces of the levels below the top.
        upper: Learning of the levels above the lowest.
        validation: The acceptance test, if there is one.
        planner: An agent that plans, for one of the levels above the lowest; None: all learn.
        planner_at: Number of that level, from 0 for the top.
        hidden: Hides observations from the lowest of several levels; None: nothing.
        evaluation_world: The world of evaluations; None where it is the same.
    """
    goals = world.task.goal_space
    if panel.hierarchy == "none":
        alone = rl.LevelParameters(
            name="alone", agent=_lowest_agent(panel, bounded=False), goal_space=goals
        )
        return hrl(
            panel,
            (alone,),
            world,
            panel.schedule(),
            evaluation_environment=evaluation_world,
            validation=validation,
        )
    # A level decides less often than the one below it, so it learns more from each decision.
    agents: list[rl.AgentParameters] = [
        _upper_agent(panel, upper, factor=4.0**height) for height in reversed(range(len(subgoals)))
    ]
    if planner is not None:
        agents[planner_at] = planner
    names = {2: ("top", "low"), 3: ("top", "middle", "low")}[panel.levels]
    stack = tuple(
        rl.LevelParameters(name=name, agent=agent, goal_space=space, horizon=horizon)
        for name, agent, space, horizon in zip(
            names,
            (*agents, _lowest_agent(panel, bounded=True, hidden=hidden)),
            (goals, *subgoals),
            horizons,
            strict=True,
        )
    )
    return rl.HACGraphManager(
        rl.HACGraphParameters(
            stack=stack,
            environment=world,
            evaluation_environment=evaluation_world,
            testing_rate=panel.testing_rate,
            schedule=panel.schedule(),
            num_envs=panel.num_envs,
            validation=validation,
        )
    )


def hindsight_ddpg(
    panel: ReplayPanel,
    *,
    updates: float,
    learning_starts: int,
    exploration: "rl.EpsilonGreedyNoise | rl.EpsilonZGreedy",
    bounded: bool,
) -> rl.DDPGAgentParameters:
    """DDPG for a level of HAC.

    Args:
        panel: The preset's settings.
        updates: Gradient steps per decision.
        learning_starts: Decisions before learning starts.
        exploration: Its exploration policy.
        bounded: Whether the level's horizon bounds its values; otherwise targets are clipped.
    """
    adam = rl.AdamParameters(learning_rate=panel.learning_rate)
    return rl.DDPGAgentParameters(
        algorithm=rl.DDPGAlgorithmParameters(
            discount=panel.discount,
            target_sync=rl.TargetSync(rate=0.01),
            clip_targets=None if bounded else value_bounds(panel.discount),
        ),
        learning=rl.LearningParameters(
            batch=panel.batch, updates_per_step=updates, learning_starts=learning_starts
        ),
        memory=rl.ReplayMemoryParameters(capacity=1_000_000),
        exploration=exploration,
        actor=rl.ActorParameters(torso=panel.torso),
        critic=rl.CriticParameters(torso=panel.torso),
        actor_optimizer=adam,
        critic_optimizer=adam,
        normalise_observations=5.0,
    )


def _lowest_agent(
    panel: HACPanel, *, bounded: bool, hidden: rl.InputFilter | None = None
) -> rl.HACAgentParameters:
    """DDPG, which acts in the simulator and doesn't observe what is `hidden`."""
    exploration: rl.EpsilonGreedyNoise | rl.EpsilonZGreedy = noisy(panel.epsilon, panel.noise)
    if panel.exploration == "epsilon_z_greedy":
        exploration = rl.EpsilonZGreedy(epsilon=exploration.epsilon, noise=exploration.noise)
    learner = hindsight_ddpg(
        panel,
        updates=panel.updates_per_step,
        learning_starts=1_000,
        exploration=exploration,
        bounded=bounded,
    )
    learner = replace(
        learner,
        learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.1),
        input_filter=hidden,
    )
    return rl.HACAgentParameters(learner=learner, ratio=panel.ratio, bound_values=bounded)


def _upper_agent(
    panel: HACPanel, upper: SubGoalLearning, *, factor: float
) -> rl.HACAgentParameters:
    """SAC, which chooses sub-goals, with `factor` times the panel's updates per decision.

    Good sub-goals lie on narrow ridges of the critic with valleys between them, which a
    deterministic actor does not cross: with DDPG the upper level stays where it was first rewarded.
    """
    adam = rl.AdamParameters(learning_rate=panel.learning_rate)
    learner = rl.SACAgentParameters(
        algorithm=rl.SACAlgorithmParameters(
            discount=panel.discount,
            target_sync=rl.TargetSync(rate=0.01),
            target_entropy=upper.entropy,
            initial_temperature=upper.temperature,
        ),
        learning=rl.LearningParameters(
            batch=panel.batch,
            updates_per_step=panel.upper_updates_per_step * factor,
            learning_starts=upper.starts,
        ),
        memory=rl.ReplayMemoryParameters(capacity=1_000_000),
        actor=rl.ActorParameters(torso=panel.torso),
        critic=rl.CriticParameters(torso=panel.torso),
        actor_optimizer=adam,
        critic_optimizer=adam,
        temperature_optimizer=rl.AdamParameters(learning_rate=upper.temperature_learning_rate),
        learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.1),
        normalise_observations=5.0,
        greedy_candidates=upper.candidates,
    )
    return rl.HACAgentParameters(learner=learner, ratio=panel.ratio, bound_values=False)
