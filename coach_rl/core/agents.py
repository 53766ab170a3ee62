"""Agents: their interface, their parameters, and what is known when one is built."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from gymnasium import spaces

from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.goals import GoalSpace, KeptForGoals
from coach_rl.core.infos import InfoWatch, Over
from coach_rl.core.interfaces import GoalPlace, Mark
from coach_rl.core.levels import LevelDescription
from coach_rl.core.parts import walk
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
)
from coach_rl.core.runtime import ON_CPU, Runtime
from coach_rl.core.signals import Signals
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State, Stateful


class RowState(Stateful, Protocol):
    """The state kept per row: pending observation, noise, hidden state, last choice."""


Rows = TypeVar("Rows", bound=RowState)
Held = TypeVar("Held", bound=RowState, contravariant=True)


@runtime_checkable
class FollowingRows(Protocol):
    """Row state that can replay decisions which an equal agent made in another process."""

    def decisions(self) -> State:
        """Return the decisions that each row made last, arrays [N, ...]."""
        ...

    def follow(self, decisions: State) -> None:
        """Use these as the next decisions of all rows: the result of `decisions` elsewhere."""
        ...


def following(rows: RowState, owner: str) -> FollowingRows:
    """The row state, if it can follow decisions made elsewhere; ConfigurationError if not."""
    if not isinstance(rows, FollowingRows):
        raise ConfigurationError(
            f"the agent of '{owner}' cannot repeat decisions that were made elsewhere: its row "
            f"state ({type(rows).__name__}) has no decisions() and follow(); see "
            "docs/control_flow.md"
        )
    return rows


def require_own_mask(agent: "AnyAgent", acting: "AnyAgent") -> None:
    """Raise `SpaceError` where an agent takes the mask of another for that of its own choices.

    Args:
        agent: An agent that chooses what the other does.
        acting: The other.
    """
    for key in sorted(_own_keys(agent) & _own_keys(acting)):
        raise SpaceError(
            f"the observation '{key}' is the action mask of those that act below, and has as "
            "many entries as there are choices here; set action_mask=None for the agent that "
            "chooses, or name the key of its own mask"
        )


def _own_keys(agent: "AnyAgent") -> set[str]:
    """The observation keys about the choices of an agent, and of those that it consists of."""
    found: set[str] = set()
    for part in walk(agent):
        if part.is_agent:
            found.update(getattr(part.value, "own_keys", ()))
    return found


def require_whole_policies(agents: Mapping[str, "AnyAgent"]) -> None:
    """Raise `ConfigurationError` where a policy may lack a part of the state that an agent saves.

    Other processes and runs get the policy alone. A class outside this package has to declare for
    each attribute in `SAVED` whether acting needs it, and write no `state_dict` of its own without
    a `policy_state_dict`.

    Args:
        agents: By their level's name, or those that an agent consists of by theirs.
    """
    for name, agent in agents.items():
        require_whole_policies(getattr(agent, "members", {}))
        for kind in type(agent).__mro__:
            if kind.__module__.startswith("coach_rl.") or "policy_state_dict" in vars(kind):
                break
            unknown = [
                each if isinstance(each, str) else each.name
                for each in vars(kind).get("SAVED", ())
                if isinstance(each, str) or each.policy is None
            ]
            if "state_dict" in vars(kind) or unknown:
                what = "state_dict" if "state_dict" in vars(kind) else f"SAVED: {unknown[0]}"
                raise ConfigurationError(
                    f"agent of '{name}': {kind.__name__} saves state of its own ({what}), and "
                    "processes and runs that load the agent need to know if acting needs it; "
                    "write SavedAttribute(name, policy=True) in SAVED, or policy=False"
                )


@dataclass(frozen=True, kw_only=True)
class TrainingReport:
    """The report of one round of learning."""

    training_steps: int
    """Gradient updates made."""
    metrics: Mapping[str, float]
    """The metrics to log, by their names in docs/metrics.md; empty until a report is due."""
    members: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The same of each agent that it consists of, by name; empty where the agent is but one."""


class Agent(Stateful, Protocol[Rows]):
    """Chooses actions, stores the transitions that follow, learns from them.

    rows = agent.new_rows(num_envs=8, seed=0)    # owned and saved by the level that acts
    action = agent.act(rows, ActionRequest(...), clock)
    ...                                          # the environment answers
    agent.observe(rows, Outcome(...), clock)
    report = agent.train(clock)
    """

    def new_rows(self, num_envs: int, seed: int) -> Rows:
        """A fresh row state for a stack of that size; row i draws from the stream (seed, i).

        Each evaluation begins with one of the same seed.
        """
        ...

    def act(self, row_state: Rows, request: ActionRequest, clock: Clock) -> Action:
        """Choose for the rows of the request and keep the choice in the row state.

        Args:
            row_state: What `new_rows` made.
            request: Which rows wait for a decision, and what they see.
            clock: Phase and counters of the calling stack.

        Returns:
            The actions for the environment [R, ...], through clipping and the OutputFilter.
        """
        ...

    def observe(self, row_state: Rows, outcome: Outcome, clock: Clock) -> None:
        """Make a transition of each decision that was answered; stored unless in TEST."""
        ...

    def cut_off(self, row_state: Rows, rows: IntArray, clock: Clock) -> None:
        """Drop the open decisions of these rows.

        Their simulators failed, or the agent is frozen for a time; these decisions have no outcome,
        or, of a frozen agent, one that it observes in TEST. The last transition that is stored of a
        row was the end of its episode, truncated; the next one begins another.
        """
        ...

    def restart_rows(self, row_state: Rows) -> None:
        """Drop the open episodes of all rows, which restart after a gap.

        Transitions stored from now on must not continue those stored before; random streams and
        statistics continue.
        """
        ...

    def train(self, clock: Clock) -> TrainingReport | None:
        """Learn if it is due; None when nothing was due."""
        ...

    def policy_state_dict(self) -> State:
        """Return the part of `state_dict` that `load_policy` loads."""
        ...

    def load_policy(self, state: State) -> None:
        """Load the policy of an equal agent.

        Loads networks, those of targets included, and the statistics of filters and normalisers;
        memory, counters and optimisers stay as they are.

        Args:
            state: What that agent's `state_dict` or `policy_state_dict` returned.

        Raises:
            SpaceError: It is another kind of agent, or its networks have other shapes.
        """
        ...


@runtime_checkable
class EndingAgent(Protocol[Held]):
    """An agent that decides itself where its option or goal ends.

    It is refused at the top, under goals with a time, and where it does not have its level alone.
    With an attribute `ends_by_chance = True` it returns chances, and the level draws the ends.
    """

    def ends(
        self, row_state: Held, rows: IntArray, observation: Observation, clock: Clock
    ) -> Array:
        """Return where the option or goal ends, [R] bool; called before `observe` of the decisions.

        Chances, float [R] from 0 to 1, of an agent with `ends_by_chance`.

        Args:
            row_state: What `new_rows` made.
            rows: [R].
            observation: What the decisions led to, with the option in it, [R, ...] each.
            clock: Phase and counters of the calling stack.
        """
        ...


@runtime_checkable
class ValuingAgent(Protocol):
    """An agent with a critic of actions, which others may read."""

    def critic_for(self, owner: str) -> "ActionCritic":
        """The critic; ConfigurationError unless it can value observations out of turn.

        Args:
            owner: What reads it, for messages.
        """
        ...


class ActionCritic(Protocol):
    """A critic of actions, as levels and agents around its agent read it."""

    def values(self, observation: Observation, action: Array | None = None) -> FloatArray:
        """The values [R] of actions, those of the lower critic.

        Args:
            observation: Unfiltered, as its level shows them, [R, ...] each.
            action: [R, ...] as they are sent; None: the greedy ones.
        """
        ...

    def greedy_actions(self, observation: Observation) -> Array:
        """The greedy actions [R, ...], as they are sent, for unfiltered observations."""
        ...


@runtime_checkable
class PacedAgent(Protocol):
    """An agent that knows how long its policy stays as it is."""

    is_on_policy: bool
    """True if it learns only from what its newest policy did."""

    def decisions_until_training(self) -> int:
        """Return how many decisions, over all rows, it makes at least before training is due."""
        ...


@runtime_checkable
class DrawnAgent(Protocol[Held]):
    """An agent that plans decisions on goals of the level below, with something to draw of it."""

    def planning(self, row_state: Held) -> dict[str, float]:
        """Return figures of its plans for a stack since the last call; names in docs/metrics.md."""
        ...

    def marks(self, row_state: Held, row: int, place: GoalPlace) -> Sequence[Mark]:
        """Return what to draw into a frame of a row.

        Args:
            row_state: What `new_rows` made.
            row: Which row is filmed.
            place: From a goal of the level below to its position in the scene.
        """
        ...


@runtime_checkable
class NamedDecisions(Protocol[Held]):
    """An agent that names what in it has made a decision; films show that."""

    def acting(self, row_state: Held, row: int) -> str:
        """Return what made the latest decision of a row; `none` before there was one."""
        ...


@runtime_checkable
class LastingDecisions(Protocol[Held]):
    """An agent with decisions that last beyond the answers of its level."""

    def freeze(self, row_state: Held, rows: IntArray, clock: Clock) -> None:
        """Drop the open decisions of rows [R] from what is learned: the agent is frozen for a time.

        It continues to act on the newest observations, and remembers the earlier ones.
        """
        ...


AnyAgent: TypeAlias = Agent[Any]
"""An agent with any row state; only the agent itself reads it."""


def freeze(agent: AnyAgent, row_state: RowState, rows: IntArray, clock: Clock) -> None:
    """Drop the open decisions of rows [R] of an agent that is frozen from now on.

    Its later transitions don't continue the earlier ones.
    """
    stop = agent.freeze if isinstance(agent, LastingDecisions) else agent.cut_off
    stop(row_state, rows, clock)


@dataclass(frozen=True, kw_only=True)
class LevelPlace:
    """The place of an agent in a stack. By default it is alone, without goals of its own."""

    level: LevelDescription | None = None
    """Its own level."""
    below: LevelDescription | None = None
    """The level that its decisions are sent to; None for the simulator."""
    agent_below: AnyAgent | None = None
    """The agent of that level."""
    lasting: str = ""
    """The reason why its decisions last through states that are not stored, for messages; empty:
    they don't."""

    def owner(self, agent: str) -> str:
        """An agent of that name at this place, for messages: "agent 'ppo' of level 'main'"."""
        of = "" if self.level is None else f" of level '{self.level.name}'"
        return f"agent '{agent}'{of}"

    @property
    def goal(self) -> GoalSpace | None:
        """The goals by which it is rewarded; None where the environment rewards it."""
        space = None if self.level is None else self.level.goal_space
        return space if isinstance(space, GoalSpace) else None

    @property
    def sub_goal(self) -> GoalSpace | None:
        """The goals it sends to the level below; None for options and actions of the simulator."""
        space = None if self.below is None else self.below.goal_space
        return space if isinstance(space, GoalSpace) else None

    def attach_goals(self, agent: AnyAgent) -> KeptForGoals:
        """Attach an agent to the goals of its level, and to those that it sets for the one below.

        Returns:
            What it keeps for both.
        """
        kept = KeptForGoals() if self.goal is None else self.goal.attach(agent)
        if self.sub_goal is None:
            return kept
        return kept.and_above(self.sub_goal.attach_above(agent))

    def require_single_decisions(self, what: str) -> None:
        """Raise `ConfigurationError` where decisions last until an agent acts again.

        Args:
            what: What needs each decision to lead to the state that is stored with it.
        """
        if self.lasting:
            raise ConfigurationError(
                f"{self.lasting}, through states that it does not store, and {what}; leave that "
                "out, or give the agent a level of its own"
            )

    def require_untimed_sub_goals(self, owner: str) -> None:
        """Raise `ConfigurationError` where the level below has goals with a time.

        Args:
            owner: The agent whose goals have no time.
        """
        if self.below is not None and self.sub_goal is not None and self.sub_goal.ages:
            raise ConfigurationError(
                f"{owner} sets goals without a time, and the goals of level "
                f"'{self.below.name}' have a time; give that level a GoalSpace"
            )

    def require_sub_goals_as_actions(self, owner: str, *, restated: bool = False) -> None:
        """Raise `ConfigurationError` where goals of the level below are no actions of its `space`.

        Args:
            owner: What turns goals that were achieved, or planned, into actions.
            restated: Whether it restates them in today's bounds.
        """
        goal = self.sub_goal
        if goal is not None and (goal.achieved_changes or (goal.action_changes and not restated)):
            raise ConfigurationError(
                f"{owner} keeps goals that the level below achieved, and {type(goal).__name__} "
                "moves them as it learns or follows a curriculum; give the level below a "
                "GoalSpace, and no curriculum of reach or bounds"
            )
        if goal is None or goal.overridden("asked_in_hindsight"):
            return
        if goal.space.shape != (goal.sent_size,):
            raise ConfigurationError(
                f"{owner} turns goals of the level below into actions of shape "
                f"({goal.sent_size},), and {type(goal).__name__}.space takes actions of shape "
                f"{goal.space.shape}; override asked_in_hindsight() to return those, or leave "
                "`space` as it is"
            )


def explores(agent: AnyAgent) -> bool:
    """True if an agent, or one that it consists of, may act otherwise in training than greedily."""
    return any(each.is_agent and getattr(each.value, "explores", False) for each in walk(agent))


ALONE = LevelPlace()
"""The place of an agent without goals whose decisions go to the simulator."""


@dataclass(frozen=True, kw_only=True)
class AgentContext:
    """Context known only when an agent is built."""

    spaces: EnvironmentSpaces
    """The spaces of its level."""
    num_envs: int
    """N of the stack it trains in."""
    planned_steps: int = 0
    """Decisions it is sure to make in the whole run, over all rows."""
    place: LevelPlace = ALONE
    """The agent's place in the stack."""
    decision_infos: Mapping[str, Over] = field(default_factory=dict)
    """Rules by which infos of steps become those of a decision, by name."""
    runtime: Runtime = ON_CPU
    """The run's settings and services, with the agent's own seed and signals."""

    def info_watch(self, agent: str) -> InfoWatch:
        """The watch over the infos from which an agent of that name learns."""
        return InfoWatch(self.decision_infos, self.place.owner(agent))

    @property
    def device(self) -> str:
        """Device of the networks, in PyTorch's words."""
        return self.runtime.device

    @property
    def seed(self) -> int:
        """Seed for everything random in the agent."""
        return self.runtime.seed

    @property
    def signals(self) -> Signals:
        """Channel for numbers that the agent and its filters show in the logs."""
        return self.runtime.signals


class AgentParameters(Protocol):
    """A frozen description of an agent."""

    @property
    def name(self) -> str:
        """The agent's name in logs and paths."""
        ...

    def build(self, context: AgentContext) -> AnyAgent:
        """The agent; SpaceError if it doesn't support the spaces of its level."""
        ...


class Symmetry(Protocol):
    """Map from a situation to the canonical one of its class, row by row; stateless."""

    @property
    def observation_space(self) -> spaces.Dict:
        """The space of the observations that `canonical` returns."""
        ...

    @property
    def description(self) -> str:
        """Identity of the symmetry, saved with the agent, whose numbers are valid only under it."""
        ...

    def canonical(self, observation: Observation) -> Observation:
        """Canonical observations, [R, ...] each, including the agent's goal."""
        ...

    def restored(self, action: Action, observation: Observation) -> Action:
        """Actions [R, ...] for the body, from those chosen for the canonical observations.

        Args:
            action: Behind the OutputFilter.
            observation: As `canonical` takes them.
        """
        ...


class SymmetryParameters(Protocol):
    """A frozen description of a Symmetry."""

    def build(self, context: AgentContext) -> Symmetry:
        """The symmetry of what an agent sees; SpaceError or ConfigurationError if it has none."""
        ...
