"""Terms that guide an actor's sub-goals beside the critic: adjacency (HRAC), landmarks (HIGL).

    TD3AgentParameters(guide=SubGoalGuideParameters())                                # HRAC
    SACAgentParameters(guide=SubGoalGuideParameters(landmarks=LandmarkParameters()))  # both

For the agent of any level that sends goals to a level below and has an actor and critics.
"""

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import ClassVar

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.agents.hierarchies.adjacency import Adjacency, AdjacencyParameters
from coach_rl.agents.hierarchies.critic_below import require_critic_below
from coach_rl.agents.hierarchies.landmarks import LandmarkParameters, LandmarkPlanner
from coach_rl.agents.hierarchies.novelty import Novelty
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.unfiltered import UnfilteredOutput
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.core.agents import AgentContext, LevelPlace, RowState
from coach_rl.core.errors import ConfigurationError, how_to_install
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import FloatArray, IntArray
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.seeding import integer_seed
from coach_rl.functional.adjacency import adjacency_penalty, embedded_distance
from coach_rl.memories.batches import TransitionBatch
from coach_rl.memories.replay_memory import ReplayMemory
from coach_rl.memories.row_history import RowHistory, UnreadSteps

LANDMARK = "landmark"
"""The extra of a batch under which the places stand that its first sub-goals are drawn to."""


@parameter_class
class SubGoalGuideParameters:
    """Terms of the actor's loss that keep sub-goals within reach of the level below."""

    adjacency: AdjacencyParameters = field(default_factory=AdjacencyParameters)
    """The constraint to places that the level below reaches in time."""
    landmarks: LandmarkParameters | None = None
    """Landmarks on the way to the goal; None: none."""

    def build(self, agent: FilteredAgent[RowState], context: AgentContext) -> "SubGoalGuide":
        """The guide of an agent; ConfigurationErrors name the level that does not fit."""
        low, memory = _level_below(agent, context.place)
        goal = context.place.sub_goal
        assert goal is not None
        owner = context.place.owner(agent.name)
        below = context.place.below
        steps = self.adjacency.steps or (None if below is None else below.horizon)
        if steps is None:
            raise ConfigurationError(
                f"{owner}: places are adjacent if they are fewer steps apart than the horizon of "
                "the level below, and it has none; give it one or set guide.adjacency.steps"
            )
        planner = None
        if self.landmarks is not None:
            _check_landmarks(agent, low, context.place)
            novelty = None
            if self.landmarks.novelty is not None:
                observed = low.observation_space.spaces.items()
                states = spaces.Dict({key: each for key, each in observed if key != GOAL_KEY})
                novelty = Novelty(
                    self.landmarks.novelty, observation_space=states, context=context, owner=owner
                )
            planner = LandmarkPlanner(
                self.landmarks,
                goal=goal,
                low=low,  # type: ignore[arg-type]  # `_check_landmarks` has looked at its learner
                store=memory.store,
                novelty=novelty,
                seed=integer_seed(context.seed, agent.name, "landmarks"),
            )
        adjacency = Adjacency(
            self.adjacency, size=goal.size, steps=steps, context=context, owner=owner
        )
        return SubGoalGuide(adjacency, steps=steps, goal=goal, memory=memory, planner=planner)


class SubGoalGuide(Saved):
    """Adds to an actor's loss what its sub-goals should keep to; see `learner.Guide`.

    Args:
        adjacency: Which places are adjacent.
        steps: Places fewer steps apart are.
        goal: The goals of the level below.
        memory: The memory of the agent of that level.
        planner: Chooses landmarks; None: there are none.
    """

    SAVED = ("adjacency", "_new", SavedAttribute("planner", optional=True))
    TIMED: ClassVar[Mapping[str, str]] = {"learn": "adjacency", "prepared": "landmarks"}

    def __init__(
        self,
        adjacency: Adjacency,
        *,
        steps: int,
        goal: GoalSpace,
        memory: ReplayMemory,
        planner: LandmarkPlanner | None,
    ) -> None:
        self.adjacency, self.planner = adjacency, planner
        self._steps, self._goal, self._history = steps, goal, memory.history
        self._new = UnreadSteps(memory.store)

    def prepared(self, batch: TransitionBatch) -> TransitionBatch:
        """The batch with what the actor's loss needs."""
        if self.planner is None:
            return batch
        count = self.planner.params.decisions
        seen = {key: values[:count].cpu().numpy() for key, values in batch.observation.items()}
        targets = torch.from_numpy(self.planner.targets(seen))
        landmark = targets.to(batch.action.device, non_blocking=True)
        return batch._replace(extras={**batch.extras, LANDMARK: landmark})

    def loss(self, action: Tensor, batch: TransitionBatch) -> tuple[Tensor, Numbers]:
        """The terms for the actor's sub-goals [B, G], and the metrics.

        The adjacency loss of Zhang et al. 2020, section 4.2, and the landmark loss of Kim et al.
        2021, section 4; nothing before adjacency has been learned.
        """
        adjacency, margin = self.adjacency, self.adjacency.params.margin
        here = self._achieved(batch)
        proposed = adjacency.embedded(here + action if self._goal.relative else action)
        penalty = adjacency_penalty(embedded_distance(adjacency.embedded(here), proposed), margin)
        loss, metrics = adjacency.params.weight * penalty, {"adjacency_penalty": penalty}
        if self.planner is not None:
            landmark = adjacency.embedded(batch.extras[LANDMARK])
            drawn = proposed[: len(landmark)]
            pull = adjacency_penalty(embedded_distance(landmark, drawn), margin)
            loss, metrics["landmark_loss"] = loss + self.planner.params.weight * pull, pull
        return adjacency.trained * loss, metrics

    def learn(self) -> None:
        """Learn from the steps of the level below, when that is due."""
        if len(self._new) >= self.adjacency.params.every:
            begins, ends = self._new.take(overlap=self._steps - 1)
            self.adjacency.learn(trajectories(self._history, self._goal, begins, ends))
        if self.planner is not None:
            self.planner.learn()

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last call."""
        planner = {} if self.planner is None else self.planner.metrics()
        return self.adjacency.metrics() | planner

    def _achieved(self, batch: TransitionBatch) -> Tensor:
        """The goals [B, G] that the batch's observations achieve."""
        values = batch.observation[self._goal.key].flatten(1).to(torch.float32)
        elements = self._goal.elements
        return values if elements is None else values[:, list(elements)]


def trajectories(
    history: RowHistory, goal: GoalSpace, begins: IntArray, ends: IntArray
) -> Iterator[FloatArray]:
    """The places [T, G] visited one step after the other, for each stretch without a break.

    A stretch continues from one sub-episode to the next, and ends where the world begins anew.

    Args:
        history: The history of the level below.
        goal: Its goals.
        begins: First steps of each row, [N].
        ends: Steps behind the last, [N].
    """
    for row, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        if begin == end:
            continue
        steps = np.arange(begin, end)
        rows = np.full(len(steps), row)
        seen = history.observations(rows, steps, (goal.key,))
        seen_next = {goal.key: history.next_observation(rows, steps, goal.key)}
        before, after = goal.turned(goal.achieved(seen)), goal.turned(goal.achieved(seen_next))
        breaks = (after[:-1] != before[1:]).any(axis=1).nonzero()[0] + 1
        for first, last in zip((0, *breaks), (*breaks, len(steps)), strict=True):
            yield np.concatenate((before[first:last], after[last - 1 : last]))


def _level_below(
    agent: FilteredAgent[RowState], place: LevelPlace
) -> tuple[OffPolicyAgent, ReplayMemory]:
    """The agent below and its memory, where sub-goals can be guided by it.

    Raises:
        ConfigurationError: There is none, or it does not keep what is needed.
    """
    owner, goal, low = place.owner(agent.name), place.sub_goal, place.agent_below
    if place.below is None or goal is None:
        raise ConfigurationError(
            f"{owner} has a guide, which is for sub-goals, and sends none to a level below; "
            "set guide=None"
        )
    place.require_standard_sub_goals(f"{owner}: its guide")
    below = f"{owner}: its guide learns from level '{place.below.name}' below, which"
    if place.below.frozen:
        raise ConfigurationError(f"{below} is frozen and remembers nothing; set guide=None")
    if not (isinstance(low, OffPolicyAgent) and isinstance(low.memory, ReplayMemory)):
        raise ConfigurationError(
            f"{below} needs an agent with a replay memory (TD3, DDPG or SAC), "
            f"got {type(low).__name__}"
        )
    if goal.key in low.input_filter.changed_keys:
        raise ConfigurationError(
            f"{below} changes '{goal.key}', where its achieved goals are, by its InputFilter; "
            "leave that out and hide the key from its networks with torso.keys"
        )
    if goal.key in agent.input_filter.changed_keys:
        raise ConfigurationError(
            f"{owner}: its InputFilter changes '{goal.key}', where achieved goals are, and its "
            "guide needs them as they are; use normalise_observations instead"
        )
    if not isinstance(agent.output_filter, UnfilteredOutput):
        raise ConfigurationError(
            f"{owner}: its guide needs sub-goals in the units of the level below; set "
            "output_filter=None"
        )
    return low, low.memory


def _check_landmarks(
    agent: FilteredAgent[RowState], low: OffPolicyAgent, place: LevelPlace
) -> None:
    """Raise `ConfigurationError` unless ways to goals can be planned by the critic below."""
    owner, goal, sub_goal = place.owner(agent.name), place.goal, place.sub_goal
    assert sub_goal is not None
    if importlib.util.find_spec("scipy") is None:
        raise ConfigurationError(
            f"{owner} needs scipy for the ways between landmarks; {how_to_install('graph')}"
        )
    wanted = agent.observation_space.spaces.get(GOAL_KEY)
    size = 0 if wanted is None else int(np.prod(wanted.shape or (1,)))
    if size != sub_goal.size or (goal is not None and goal.observed != "absolute"):
        raise ConfigurationError(
            f"{owner} plans ways to its goals over landmarks of the level below; goals must be "
            f"seen absolutely and have the {sub_goal.size} elements of those below, got {size}"
        )
    require_critic_below(owner, place)
    if agent.input_filter.changed_keys:
        raise ConfigurationError(
            f"{owner} shows its observations to the critic of agent '{low.name}', so its own "
            "InputFilter must not change them; got filters for "
            f"{', '.join(sorted(agent.input_filter.changed_keys))}"
        )
