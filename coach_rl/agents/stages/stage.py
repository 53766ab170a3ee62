"""Stages between what an agent's level shows and what the agent's policy sees, and back.

Observations enter through the stages of an agent, the outermost first; actions leave through them,
the innermost first. What a stage keeps with transitions, or of rows, is its own:

    class TimesTen(Stage):
        def leave(self, row_state, rows, action, observation):
            return action * 10

    class StrongPPO(PPOAgent):
        STAGES = (StageKind(order=INSIDE, build=lambda at: TimesTen()),)

A stage overrides the methods that it needs; the others are never called. Those that the agents here
may have are in `agents/stages`, a file each.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from gymnasium import spaces
from torch import Tensor

from coach_rl.agents.agent_rows import AnyAgentRows
from coach_rl.architectures.output_rules import Forward, OutputRule
from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
)
from coach_rl.core.spaces import Space
from coach_rl.core.state import State
from coach_rl.memories.batches import Rollout
from coach_rl.memories.transition_batch import TransitionBatch

OUTSIDE = 30
INSIDE = 70
"""Orders of stages around the filters of an agent: they are shown what the level shows, with one
observation space for all symmetric situations, or what the filters make of that."""


RewardStream = Callable[
    [Rollout, tuple[Tensor, Tensor, Tensor], tuple[Tensor, Tensor], Any], tuple[Tensor, Tensor]
]
"""A stream of reward beside that of the level, with returns and a critic of its own in PPO.

Function from a rollout [C, ...], the `index`, `valid` and `ends` of `advantages_of_rows` [T, N],
the critic's values [C] and its values after ends [K], and `PPOAlgorithmParameters`, to what is
added to the advantages [C], and the critic's targets [C]."""


class Stage:
    """A stage of an agent; a kind of stage overrides what it needs."""

    output_rules: tuple[OutputRule, ...] = ()
    """Rules for the outputs of the networks that the agent acts and learns with."""
    kept: Mapping[str, Space] = {}
    """Spaces of what it adds to filtered observations for memories to keep, which networks don't
    observe."""
    extras: tuple[str, ...] = ()
    """Names of the extras that it adds to transitions, for memories to keep."""
    needed: tuple[str, ...] = ()
    """Names of extras of the policy's choices that random choices in HEATUP need as well."""
    own_keys: frozenset[str] = frozenset()
    """Keys of the level's observation that are about this agent's choices alone."""
    saved: Mapping[str, object] = {}
    """Objects with a state, by its key in the agent's."""
    acts_by_saved: bool = False
    """True if acting needs what it saves."""
    adds_to_reward: bool = False
    """True if agents learn from other rewards than what filters make of those of their level."""
    streams: tuple[RewardStream, ...] = ()
    """Streams of reward for PPO, whose rewards it keeps with transitions."""
    conditions: Mapping[str, str] = {}
    """Conditions of a policy, by the key under which they are saved with it."""
    is_stateless: bool = True
    """True if observations can enter out of turn, with `{}` for their memory."""
    single: str = ""
    """The reason why it is shown whole observations that nothing remembers; empty: it isn't."""
    remembers: str = ""
    """The name of what remembers earlier observations, and a remedy; empty: nothing does."""

    def shown(self, space: spaces.Dict) -> spaces.Dict:
        """The space of the observations behind it, of those before it."""
        return space

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        """Fresh memory of rows by name, [N, ...] each, which is saved with them."""
        return {}

    def prepare(self, row_state: AnyAgentRows) -> None:
        """Prepare a fresh state of rows."""

    def begin(self, row_state: AnyAgentRows, request: ActionRequest) -> None:
        """Prepare for (sub-)episodes that start, before their first observations enter."""

    def enter(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        """The observations for the next stage, [R, ...] each.

        Args:
            memory: What the `new_rows` of all stages made, [N, ...] each.
            rows: [R].
            observation: [R, ...] each; a goal alone where one is received in an episode.
            starts: Where an episode starts, [R].
            learn: Whether to update statistics.
        """
        return observation

    def check(self, observation: Observation, rows: IntArray, clock: Clock) -> None:
        """Raise an error where an agent can't act on entered observations, or value them.

        Args:
            observation: [R, ...] each, behind all stages.
            rows: [R].
            clock: For the message.
        """

    def acting(self, forward: Forward) -> Forward:
        """The function by which the policy acts, of the one further inside."""
        return forward

    def choose(self, choice: dict[str, Array]) -> None:
        """Add extras to a choice of the policy."""

    def leave(
        self, row_state: AnyAgentRows, rows: IntArray, action: Action, observation: Observation
    ) -> Action:
        """The actions [R, ...] that the next stage on the way out gets.

        Args:
            row_state: The state of the agent's rows.
            rows: [R].
            action: From the stage further inside.
            observation: As the level showed it, [R, ...] each.
        """
        return action

    def reward(
        self, row_state: AnyAgentRows, outcome: Outcome, reward: FloatArray, *, learn: bool
    ) -> FloatArray:
        """The rewards [R] that the next stage on the way in gets.

        Args:
            row_state: The state of the agent's rows.
            outcome: Of the decisions, unfiltered.
            reward: From the stage further outside.
            learn: Whether the agent learns from them, and statistics are updated.
        """
        return reward

    def store(self, observation: Observation, extras: dict[str, Array], outcome: Outcome) -> None:
        """Change what a transition keeps, [R, ...] each.

        Args:
            observation: What the decisions were made on.
            extras: What is kept with the decisions.
            outcome: Of the decisions, unfiltered.
        """

    def advance(self, row_state: AnyAgentRows, rows: IntArray) -> None:
        """Follow decisions of rows [R] that were answered, once their transitions are stored."""

    def cut_off(self, row_state: AnyAgentRows, rows: IntArray) -> None:
        """End the episodes of rows [R] whose open decisions have no outcome."""

    def refreshed(self, batch: TransitionBatch) -> TransitionBatch:
        """The batch from a replay memory that is learned from, of the one that was drawn."""
        return batch

    def rollout_order(self, order: Any) -> Any:
        """The order in which PPO learns from rollouts, in place of a `FlatBatches`."""
        return order


AnyStage = TypeVar("AnyStage", bound=Stage)


@dataclass(frozen=True, kw_only=True)
class StageBuild:
    """The agent that a stage is built for."""

    name: str
    """The agent's name."""
    params: Any
    """The agent's parameters, of which each kind reads its own."""
    context: AgentContext
    """Settings known when the agent is built."""
    observation_space: spaces.Dict
    """The space that the stage is shown."""
    action_space: Space
    """The space that the policy acts in."""
    output_filter: OutputFilter
    """The user's OutputFilter."""
    networks: tuple[Any, ...] = ()
    """The networks that the agent acts and learns with, torch modules."""


@dataclass(frozen=True, kw_only=True)
class StageKind:
    """A kind of stage: where it stands, and how it is built."""

    order: int
    """Its place: stages of a lower one are further outside."""
    build: Callable[[StageBuild], Stage | None]
    """The stage of an agent; None where the agent needs none."""
    option: str = ""
    """The parameter that enables it, without which it isn't built; empty: `build` decides."""
    check_policy: Callable[[State, State, StageBuild], None] = lambda *_: None
    """Raise `SpaceError` where a saved policy, first, has other conditions than the agent's own."""

    def is_wanted(self, params: object) -> bool:
        """True if an agent's parameters may enable it."""
        return not self.option or bool(getattr(params, self.option, None))
