"""Hierarchical actor-critic (Levy et al. 2019, arXiv:1712.00948): what makes an agent one of HAC.

The agent of a HAC level is a DDPG, TD3 or SAC agent that learns from its level's goals in hindsight
and, above the lowest level, from hindsight actions and tested sub-goals. docs/algorithms/hac.md
lists every detail and its source.
"""

from dataclasses import field, replace
from functools import cached_property

from coach_rl.agents.ddpg_agent import DDPGAgentParameters, DDPGAlgorithmParameters
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.sac_agent import SACAgentParameters
from coach_rl.agents.td3_agent import TD3AgentParameters
from coach_rl.architectures.optimizers import TargetSync
from coach_rl.core.agents import AgentContext, LevelPlace
from coach_rl.core.clock import ConstantSchedule
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.levels import LevelDescription
from coach_rl.core.parameter_classes import LearnerParameters, parameter_class, with_values
from coach_rl.core.ranges import NonNegative
from coach_rl.exploration_policies import EpsilonGreedyNoise, GaussianNoise
from coach_rl.extensions.hac.hindsight_actions import HindsightActionParameters
from coach_rl.extensions.hindsight.hindsight import HindsightParameters, Strategy
from coach_rl.memories.replay_parameters import ReplayMemoryParameters

_DEFAULT_NAME = "agent"


@parameter_class
class HACAgentParameters(LearnerParameters):
    """An agent of a HAC level.

    Its place in the stack sets the goals and horizons of its level and of the level below.
    Defaults: those of the paper's code.
    """

    name: str = _DEFAULT_NAME
    """The agent's name in logs and files."""
    learner: DDPGAgentParameters | TD3AgentParameters | SACAgentParameters = field(
        default_factory=lambda: DDPGAgentParameters(
            algorithm=DDPGAlgorithmParameters(discount=0.98, target_sync=TargetSync(rate=1.0)),
            exploration=EpsilonGreedyNoise(
                epsilon=ConstantSchedule(value=0.2),
                noise=GaussianNoise(scale=ConstantSchedule(value=0.2)),
            ),
        )
    )
    """The off-policy agent that learns, with its networks, exploration and memory. HAC sets some of
    its fields itself; leave these at their defaults: its name, its memory's relabelling and, under
    `bound_values`, its critic's bounds. The paper has no target networks, which is a target_sync
    with a rate of 1.
    """
    strategy: Strategy = "future"
    """Source of the hindsight goals: the future of the same sub-episode."""
    ratio: NonNegative[float] = 3.0
    """Transitions with hindsight goals for each one with the goal it had."""
    actions: HindsightActionParameters | None = field(default_factory=HindsightActionParameters)
    """Display of sub-goals in batches above the lowest level; None: as they were sent."""
    bound_values: bool = True
    """If True, values are squashed between minus the level's horizon and 0, and their targets are
    clipped to that range, as in the authors' program; a learner's own clip_targets stay in force.
    Where goals have a time the range is that of their rewards, 0 to 1.
    """

    def __post_init__(self) -> None:
        memory = self.learner.memory
        bounds = self.learner.critic.bounds
        require(
            isinstance(memory, ReplayMemoryParameters),
            "HACAgentParameters.learner needs ReplayMemoryParameters as memory, "
            f"got {type(memory).__name__}",
        )
        assert isinstance(memory, ReplayMemoryParameters)
        require(
            self.learner.name in (self.name, _DEFAULT_NAME),
            f"HACAgentParameters.learner.name must be HACAgentParameters.name, '{self.name}', "
            f"got '{self.learner.name}'; set HACAgentParameters.name",
        )
        require(
            memory.relabelling is None,
            "HACAgentParameters.learner.memory.relabelling must be None, "
            f"got {memory.relabelling}; set HACAgentParameters.strategy and ratio, and actions for "
            "hindsight actions",
        )
        require(
            bounds is None or not self.bound_values,
            "HACAgentParameters.learner.critic.bounds must be None, "
            f"got {bounds}: the level's horizon bounds values; for bounds of your own set "
            "HACAgentParameters.bound_values=False",
        )
        require(
            not (self.bound_values and isinstance(self.learner, SACAgentParameters)),
            "SAC's values count entropy, which no bound from the rewards holds for; "
            "set HACAgentParameters.bound_values=False",
        )
        replace(memory, relabelling=self.hindsight)  # raises an error for draws that do not fit

    @cached_property
    def hindsight(self) -> HindsightParameters:
        """The hindsight goals, which are terminal where they are at the agent's level."""
        return HindsightParameters(strategy=self.strategy, ratio=self.ratio)

    def obstacle_to_learning(self, *, num_envs: int, steps: int, heatup: int) -> str | None:
        learner = with_values(self.learner, name=self.name)
        return learner.obstacle_to_learning(num_envs=num_envs, steps=steps, heatup=heatup)

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The learner with HAC's memory and bounds; ConfigurationErrors name the level."""
        return self.learner_at(context.place).build(context)

    def learner_at(
        self, place: LevelPlace
    ) -> DDPGAgentParameters | TD3AgentParameters | SACAgentParameters:
        """The learner's parameters at a place in a stack.

        Raises:
            ConfigurationError: The level has no goals, or nothing to bound values by.
        """
        name = "" if place.level is None else f"level '{place.level.name}': "
        if place.level is None or place.goal is None:
            raise ConfigurationError(f"{name}a HAC agent's level needs a goal_space")
        memory = self.learner.memory
        assert isinstance(memory, ReplayMemoryParameters)
        actions = () if place.sub_goal is None or self.actions is None else (self.actions,)
        ends = place.level.goal_is_terminal
        hindsight = with_values(self.hindsight, goal_ends_episode=ends)
        memory = with_values(memory, relabelling=hindsight, parts=(*memory.parts, *actions))
        learner = with_values(self.learner, name=self.name, memory=memory)
        if self.bound_values:
            bounds = self._bounds(name, place.level, place)
            critic = with_values(learner.critic, bounds=bounds)
            learner = with_values(learner, critic=critic)
        return learner

    def _bounds(self, name: str, level: LevelDescription, place: LevelPlace) -> tuple[float, float]:
        """The lowest and highest value at a level with goals; ConfigurationError if not known."""
        goal = place.goal
        if goal is not None and (own := goal.overridden("judge", "verdict")):
            raise ConfigurationError(
                f"{name}values are bounded by sparse rewards, and {type(goal).__name__}.{own[0]} "
                "makes others; set HACAgentParameters.bound_values=False"
            )
        returns = None if goal is None else goal.returns(level.horizon)
        if returns is None:
            if goal is not None and goal.reward != "sparse":
                raise ConfigurationError(
                    f"{name}values are bounded by what rewards of sparse goals add up to, and its "
                    f"goals have others ({goal.reward_named}); set "
                    "HACAgentParameters.bound_values=False, or make them 'sparse'"
                )
            raise ConfigurationError(
                f"{name}values are bounded by the level's horizon, and it has none; "
                "give it one or set HACAgentParameters.bound_values=False"
            )
        low, high = returns
        if low == 0 and place.sub_goal is not None:
            low = -1.0  # of a missed test, see HindsightActionParameters.penalty
        rewards: dict[str, float | None] = {}
        for part in level.parts:
            rewards |= part.rewards()
        if self.actions is not None and place.sub_goal is not None:
            rewards["HindsightActionParameters.penalty"] = self.actions.penalty
        for what, reward in rewards.items():
            if reward is not None and not low <= reward <= high:
                raise ConfigurationError(
                    f"{name}values are bounded by {low:g} and {high:g}, and {what} is {reward:g}; "
                    "choose one in between, or set HACAgentParameters.bound_values=False"
                )
        return low, high
