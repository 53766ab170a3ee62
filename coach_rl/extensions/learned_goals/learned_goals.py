"""Goal spaces that learn: a level's goals are latents of a network, and change as it learns.

    @parameter_class
    class Slow(LearnedGoalSpace):
        def build(self, context):
            return SlowGoals(self, context)

    class SlowGoals(LearnedGoals):
        SAVED = (SavedAttribute("encoder", policy=True), SavedAttribute("engine", policy=False))

        def latents(self, observation):                 # what an observation achieves
            return self.encoder.module(observation[self.key])

        def learn(self, batch):                         # after a gradient step of the level's agent
            self.engine.step(batch)
            return True                                 # it changed: the version rises

The graph builds them once for all its stacks. The level's agent owns their state: it saves them,
and sends them wherever its policy goes. docs/research.md has an example.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.agents.agent_rows import write_rows
from coach_rl.architectures.gradient_step import Objective
from coach_rl.architectures.hidden_states import require_memoryless
from coach_rl.architectures.latent_network import LatentNetwork
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.torso import AnyTorsoParameters
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, RunError, SpaceError, require
from coach_rl.core.goals import GOAL_KEY, GoalContext, GoalSpace, KeptForGoals
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import wrap_method
from coach_rl.core.ranges import UnitInterval
from coach_rl.core.records import Action, ActionRequest, Array, FloatArray, Observation, Outcome
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.seeding import integer_seed
from coach_rl.extensions.hindsight.hindsight_filters import require_unfiltered
from coach_rl.extensions.learned_goals.changing_goals import (
    AFTER,
    BEFORE,
    GIVEN,
    GIVEN_VERSION,
    GOAL,
    HAS_LATER,
    LATER,
    OF_GOALS,
    SENT,
    ChangingGoals,
    GoalColumnsPart,
    ScaledActionsPart,
)
from coach_rl.memories.batches import Tensors, under
from coach_rl.memories.transition_batch import TransitionBatch

if TYPE_CHECKING:
    from coach_rl.agents.off_policy_agent import OffPolicyAgent


class GoalBatch(NamedTuple):
    """B transitions of a level, as its goals learn from them; on the agent's device."""

    before: Tensors
    """Unfiltered observations that decisions were made on, [B, ...] each, by the keys that the
    goals read."""
    after: Tensors
    """Unfiltered observations that they led to."""
    goal: Tensor
    """[B, G] absolute goals, in hindsight where the memory relabels."""
    action: Tensor
    """[B, ...] as the agent chose them; empty where the action space is a Dict."""
    later: Tensors
    """Observations `ahead` decisions after those of `before`; empty where `ahead` is 0."""
    has_later: Tensor
    """Bool [B]: the episode lasted for so long, and the memory has it."""


@parameter_class
class LearnedGoalSpace(GoalSpace):
    """Goals in a space that is learned; a subclass builds the `LearnedGoals`.

    `low`, `high`, `threshold`, `relative` and `reach` are those of the learned space, of as many
    elements as it has; `key` is the observation that it is learned from.
    """

    bounds_rate: UnitInterval | None = None
    """Rate at which the bounds follow the smallest and the largest latents of batches; actions of
    the level above are between -1 and 1 then. None: low and high stay as they are."""
    recomputed: bool = True
    """If True, rewards, ends and goals that are stored are recomputed when they are drawn, where
    the goals have learned since. False uses them as they were."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        require(
            self.elements is None and not self.angles,
            f"{name} has goals in a learned space, which are no elements of an observation and no "
            f"angles; leave out elements and angles, got {self.elements} and {self.angles}",
        )
        require(
            not callable(self.reward),
            f"{name}.reward must be 'sparse' or 'dense', got {self.reward_named.partition('=')[2]};"
            " override LearnedGoals.judge with other rewards, which can be recomputed",
        )
        require(
            not self.ages,
            f"{name} has goals in a learned space, which have no times; leave these out",
        )
        require(
            self.bounds_rate is None or self.reach is None,
            f"{name}.bounds_rate learns how far goals may be away, and reach={self.reach} fixes "
            "it; leave one of them out",
        )

    @abstractmethod
    def build(self, context: GoalContext) -> "LearnedGoals":
        """The goals that the levels of a graph share, in training and in evaluations."""

    def achieved(self, observation: Observation) -> FloatArray:
        """Raise `ConfigurationError`: only goals that are built achieve anything."""
        raise ConfigurationError(
            f"{type(self).__name__} describes goals that learn; use what its build() returns, "
            "as the levels of a graph do"
        )


class KeptGoals(ChangingGoals):
    """Goals that change, of which an agent's replay memory keeps what judging them again needs."""

    def attach(self, agent: "OffPolicyAgent") -> KeptForGoals:
        """Parts that the agent's memory keeps; also passes on what the agent learns from.

        Raises:
            ConfigurationError: Filters or a bonus of the agent contradict the goals.
        """
        if not self.learns:
            return super().attach(agent)
        require_unfiltered(agent, frozenset(), "its memory, as its goals learn,")
        act = agent.act
        learn = agent.learn_from_batch
        raw = self._raw(agent)

        def acted(row_state: Any, request: ActionRequest, clock: Clock) -> Action:
            rows = request.rows
            shown = request.observation[GOAL_KEY]
            if GOAL_KEY in row_state.pending:  # the goals may have changed since it was shown
                row_state.pending[GOAL_KEY][rows] = shown
            action: Action = act(row_state, request, clock)
            given: dict[str, Array] = {
                GIVEN: self.seen(shown, request.observation).astype(np.float32, copy=False),
                GIVEN_VERSION: np.full(len(rows), self.version, np.int64),
            }
            write_rows(row_state.choice, rows, given, len(row_state.heatup))
            return action

        def learn_from_batch(batch: TransitionBatch) -> object:
            own = under(OF_GOALS, batch.extras)
            rest = {name: own_ for name, own_ in batch.extras.items() if OF_GOALS not in name}
            learned = learn(batch._replace(extras=rest))
            self.learned_from(batch, own, raw)
            return learned

        wrap_method(agent, "act", acted)
        wrap_method(agent, "learn_from_batch", learn_from_batch)
        extras = (*_keep_raw(agent, raw), GIVEN, GIVEN_VERSION)
        return super().attach(agent)._replace(extras=extras, parts=(GoalColumnsPart(),))

    def learned_from(self, batch: TransitionBatch, own: Tensors, raw: tuple[str, ...]) -> None:
        """Take note of a batch that the level's agent has learned from.

        Args:
            batch: As the agent got it.
            own: Extras of the goals.
            raw: The keys that are kept unfiltered.
        """

    def _raw(self, agent: "OffPolicyAgent") -> tuple[str, ...]:
        """The keys that have to be kept unfiltered, as the agent sees something else."""
        seen = agent.observation_space.spaces
        changed = agent.input_filter.changed_keys
        return tuple(key for key in self.keys if key in changed or key not in seen)


class ScaledGoals(ChangingGoals):
    """Goals of which actions of the level above, between -1 and 1, choose within bounds that move.

    A subclass that is not always scaled overrides `is_scaled`.
    """

    @property
    def is_scaled(self) -> bool:
        """True if actions of the level above are between -1 and 1."""
        return True

    @property
    def space(self) -> spaces.Box:
        """The action space of the level above; between -1 and 1 where bounds move."""
        if not self.is_scaled:
            return super().space
        return spaces.Box(-1, 1, (self.size,), np.float32)

    @property
    def shown(self) -> dict[str, spaces.Box]:
        """The spaces under which the level's agent sees its goal, by observation key."""
        if not self.is_scaled:
            return super().shown
        return {key: spaces.Box(-np.inf, np.inf, (self.size,), np.float32) for key in super().shown}

    def target(self, action: Array, observation: Observation) -> FloatArray:
        return super().target(self.meant(action), observation)

    def asked_by(self, goal: FloatArray, observation: Observation) -> FloatArray:
        return self.scaled(super().asked_by(goal, observation))

    def attach_above(self, agent: "OffPolicyAgent") -> KeptForGoals:
        """Parts that the memory of the agent one level up keeps, where bounds move."""
        if not self.is_scaled:
            return KeptForGoals()
        act = agent.act

        def acted(row_state: Any, request: ActionRequest, clock: Clock) -> Action:
            action = act(row_state, request, clock)
            assert not isinstance(action, dict), "a level's goal is one array"
            kept: dict[str, Array] = {SENT: self.meant(action)}
            write_rows(row_state.choice, request.rows, kept, len(row_state.heatup))
            return action

        wrap_method(agent, "act", acted)
        parts = (ScaledActionsPart(self),) if self.recomputes else ()
        return KeptForGoals(extras=(SENT,), parts=parts)

    def scaled(self, sent: FloatArray) -> FloatArray:
        """Actions of the level above [R, G] that stand for these goals or displacements now."""
        if not self.is_scaled:
            return sent
        middle, half = self.scale
        return np.asarray(np.clip((sent - middle) / np.maximum(half, 1e-8), -1, 1), np.float32)

    def meant(self, action: FloatArray) -> FloatArray:
        """The goals or displacements that actions of the level above [R, G] stand for."""
        if not self.is_scaled:
            return action
        middle, half = self.scale
        return np.asarray(middle + action * half, np.float32)

    @property
    def scale(self) -> tuple[Any, Any]:
        """Middle and half width of what actions of the level above stand for, where that moves.

        Absolute goals: of the bounds. Displacements: at most the largest.
        """
        low, high = self.bounds
        return (0.0, self._farthest) if self.relative else ((low + high) / 2, (high - low) / 2)


class LearnedGoals(ScaledGoals, KeptGoals, Saved):
    """A level's goals, with networks that learn.

    A subclass lists its networks, optimisers and counters in `SAVED`, and for each whether
    judging needs it (`policy`). Its rewards are those of `GoalSpace.judge`, unless it overrides
    that; `uses_before = True` if they depend on what was achieved before a decision, too.

    Args:
        params: The description.
        context: What is known when the goals are built.
    """

    SAVED: ClassVar[SavedNames] = (
        SavedAttribute("version", policy=True),
        SavedAttribute("_range", key="bounds", optional=True, policy=True),
    )
    TIMED: ClassVar[Mapping[str, str]] = {"learned": "goal_space"}
    action_changes = achieved_changes = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for each in vars(cls).get("SAVED", ()):
            if isinstance(each, str) or each.policy is None:
                name = each if isinstance(each, str) else each.name
                raise ConfigurationError(
                    f"{cls.__name__}.SAVED: other processes, and runs that load the agent, judge "
                    f"by these goals, and '{name}' does not show if they need it; write "
                    f"SavedAttribute('{name}', policy=True), or policy=False"
                )

    def __init__(self, params: LearnedGoalSpace, context: GoalContext) -> None:
        GoalSpace.__init__(
            self, **{each.name: getattr(params, each.name) for each in fields(GoalSpace)}
        )
        self.params = params
        self._context = context
        self.recomputes = params.recomputed
        self.device = torch.device(context.runtime.device)
        """Device of the networks."""
        self.version = 0
        self._range: FloatArray | None = None
        if params.bounds_rate is not None:
            self._range = np.array((params.low, params.high), np.float32)

    def build(self, context: GoalContext) -> "LearnedGoals":
        """Equal goals that have learned nothing."""
        return self.params.build(context)

    def new_network(self, torso: AnyTorsoParameters, name: str) -> NetworkWrapper:
        """A network from the observation `key` to latents, whose weights are drawn by a name."""
        context = self._context
        self.check(context.observation)
        module = LatentNetwork(
            torso,
            key=self.key,
            space=context.observation[self.key],
            size=self.size,
            rng=torch.Generator().manual_seed(integer_seed(context.runtime.seed, name)),
        )
        require_memoryless((module,), "a goal space")
        return NetworkWrapper(module, device=self.device)

    def new_engine(self, *objectives: Objective[GoalBatch]) -> UpdateEngine[GoalBatch]:
        """The engine that learns by these objectives."""
        owner = f"the goals of level '{self._context.level}'"
        return UpdateEngine(objectives, owner=owner, runtime=self._context.runtime)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @abstractmethod
    def latents(self, observation: Mapping[str, Tensor]) -> Tensor:
        """Achieved goals [B, G] of unfiltered observations [B, ...] each."""

    @abstractmethod
    def learn(self, batch: GoalBatch) -> bool:
        """Learn from a batch of the level; called after each gradient step of its agent.

        Returns:
            Whether anything changed that goals are judged by.
        """

    def metrics(self) -> dict[str, float]:
        """Return metrics of learning since the last call, by name; logged as goal_space/NAME."""
        return {}

    def parts(self) -> Mapping[str, object]:
        """The saved networks and engines by name."""
        return {
            name.lstrip("_"): value
            for name in _saved_names(type(self))
            if hasattr(value := getattr(self, name), "state_dict")
        }

    def achieved(self, observation: Observation) -> FloatArray:
        """The latents of observations, float32 [R, G]."""
        with torch.no_grad():
            tensors = {key: _tensor(observation[key]).to(self.device) for key in self.keys}
            return np.asarray(self.latents(tensors).cpu().numpy(), np.float32)

    def learned(self, batch: GoalBatch) -> None:
        """Learn from a batch of the level, and count the change."""
        changed = self.learn(batch)
        if not isinstance(changed, bool | np.bool_):
            raise RunError(
                f"{type(self).__name__}.learn must return whether anything changed that goals are "
                f"judged by, True or False, got {changed!r:.80}"
            )
        rate = self.params.bounds_rate
        if changed and rate and self._range is not None:
            with torch.no_grad():
                latents = self.latents(batch.after).cpu().numpy()
            self._range += rate * (np.stack((latents.min(0), latents.max(0))) - self._range)
        self.version += int(changed)

    def check(self, observation_space: spaces.Dict) -> None:
        """Raise `SpaceError` where an observation key is missing."""
        for key in self.keys:
            if key not in observation_space.spaces:
                raise SpaceError(
                    f"{type(self).__name__} reads the observation key '{key}', which is not there; "
                    f"observed: {', '.join(sorted(observation_space.spaces))}"
                )

    def check_given(self, observation_space: spaces.Dict) -> None:
        """Raise `SpaceError`: an environment gives no goals in a learned space."""
        raise SpaceError(
            "the goals of the top level come from the environment, which knows nothing of a "
            f"learned space; use a GoalSpace there, and {type(self.params).__name__} below it"
        )

    @property
    def is_scaled(self) -> bool:
        """True if bounds are learned."""
        return self._range is not None

    def descriptions(self) -> list[str]:
        low = min(self.low)
        high = max(self.high)
        relative = ", as changes" if self.relative else ""
        return [
            f"{self.size} latents of {type(self).__name__} in [{low:.4g}, {high:.4g}] by "
            f"'{self.key}'{relative}"
        ]

    def obstacle(self, agent: object) -> str | None:
        if getattr(agent, "goals", None) is self:
            return None
        return (
            f"{type(self).__name__} learns from the replay memory of the level's agent, and "
            f"{type(agent).__name__} has none of that kind; use DDPG, TD3, SAC or DQN there, or a "
            "GoalSpace"
        )

    def attach(self, agent: "OffPolicyAgent") -> KeptForGoals:
        metrics = agent.metrics

        def all_metrics(clock: Clock) -> dict[str, float]:
            own = {f"goal_space/{name}": value for name, value in self.metrics().items()}
            return metrics(clock) | own | {"goal_space/version": float(self.version)}

        wrap_method(agent, "metrics", all_metrics)
        return super().attach(agent)

    def learned_from(self, batch: TransitionBatch, own: Tensors, raw: tuple[str, ...]) -> None:
        self.learned(self._batch(batch, own, raw))

    def _batch(self, batch: TransitionBatch, own: Tensors, raw: tuple[str, ...]) -> GoalBatch:
        """The part of a batch that the goals learn from."""
        names = (each.removeprefix(OF_GOALS) for each in (BEFORE, AFTER, LATER))
        before, after, later = (under(name, own) for name in names)
        goal = own[GOAL.removeprefix(OF_GOALS)]
        return GoalBatch(
            before={
                key: before[key] if key in raw else batch.observation[key] for key in self.keys
            },
            after={
                key: after[key] if key in raw else batch.next_observation[key] for key in self.keys
            },
            goal=goal,
            action=batch.action,
            later=later,
            has_later=own.get(
                HAS_LATER.removeprefix(OF_GOALS), torch.zeros(len(goal), dtype=torch.bool)
            ),
        )

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bound of each goal element as they are now, float32 [G] each."""
        if self._range is None:
            return np.array(self.low, np.float32), np.array(self.high, np.float32)
        return self._range[0], self._range[1]

    @property
    def _widest(self) -> FloatArray:
        low, high = self.bounds
        return high - low

    @property
    def _farthest(self) -> FloatArray:
        return self._widest if self.reach is None else np.array(self.reach, np.float32)


def _tensor(values: Array) -> Tensor:
    """Values as memories keep them: float64 becomes float32."""
    dtype = np.float32 if values.dtype == np.float64 else values.dtype
    return torch.from_numpy(np.ascontiguousarray(values, dtype))


def _saved_names(kind: type) -> list[str]:
    """The attributes that a class and its bases save."""
    listed = [each for base in reversed(kind.__mro__) for each in vars(base).get("SAVED", ())]
    return [each if isinstance(each, str) else each.name for each in listed]


def _keep_raw(agent: "OffPolicyAgent", keys: tuple[str, ...]) -> tuple[str, ...]:
    """Let an agent keep unfiltered observations under these keys; the names of the extras."""
    if not keys:
        return ()
    act = agent.act
    observe = agent.observe

    def acted(row_state: Any, request: ActionRequest, clock: Clock) -> Action:
        action: Action = act(row_state, request, clock)
        raw = {f"{BEFORE}{key}": request.observation[key] for key in keys}
        write_rows(row_state.choice, request.rows, raw, len(row_state.heatup))
        return action

    def observed(row_state: Any, outcome: Outcome, clock: Clock) -> None:
        raw = {f"{AFTER}{key}": outcome.observation[key] for key in keys}
        write_rows(row_state.choice, outcome.rows, raw, len(row_state.heatup))
        observe(row_state, outcome, clock)

    wrap_method(agent, "act", acted)
    wrap_method(agent, "observe", observed)
    return tuple(f"{when}{key}" for when in (BEFORE, AFTER) for key in keys)
