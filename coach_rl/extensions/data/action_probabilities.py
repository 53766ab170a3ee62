"""Log-probabilities of the actions that agents send, with which data sets can be judged by others.

They are those of the action as the environment gets it: densities per unit of the environment's
Box, and where an agent's draws are clipped to a bound, the probability of all that lies beyond it.

    policy = policy_of(agent, observation, clock)        # of filtered observations [R, ...]
    if policy is not None and policy.has_probabilities:
        policy.log_prob(agent.output_filter.inverse(sent))

An extension whose agents draw actions in a way of its own registers it in a module that it offers:

    [offers]
    data = ["mine.probabilities"]
"""

import math
from dataclasses import dataclass
from functools import cache, singledispatch
from typing import Any, Protocol

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.agents.learner import ActingPolicy
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.ppo_agent import PPOAgent
from coach_rl.agents.sac_agent import SACAgentParameters
from coach_rl.configuration.extensions import import_offers
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.discrete_actions import FORBIDDEN, choice_sizes, first_action
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.records import (
    ALLOWED,
    Action,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Observation,
    take,
)
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies.box_noise import SquashedGaussianPolicy
from coach_rl.exploration_policies.discrete_policies import EpsilonGreedyPolicy
from coach_rl.levels.level_manager import LevelManager
from coach_rl.memories.batches import extra

ACTION_LOG_PROB = extra("action_log_prob")
"""Column of a data set: log-probability of each action that was sent, under who sent it, [T]."""
_LOG_SQRT_TWO_PI = 0.5 * math.log(2 * math.pi)
_NEAR_ONE = 1 - 1e-6
"""Squashed actions beyond, before scaling, count as at the bound, as float32 hardly distinguishes
them: they have the probability of all beyond, as actions that were clipped."""
ONE_OF_A_CONTINUUM = "a greedy policy in a Box takes one action of a continuum, which no data have"
"""The obstacle of greedy actions in a Box."""
MOST_LISTED = 64
"""Combinations of choices up to which expectations list all of them, and draw some beyond."""


class ActionDistribution(Protocol):
    """A policy's distribution in R observations; actions are in the agent's own space."""

    obstacle: str = ""
    """The reason why its probabilities can't be compared with others'; empty where they can."""

    @property
    def has_probabilities(self) -> bool:
        """False where there is an obstacle, such as one action of a continuum without a density."""
        return not self.obstacle

    def log_prob(self, action: Array) -> FloatArray:
        """Log-probability of an action for each observation, [R]; minus infinity for never."""
        ...

    def weighted_actions(self, draws: int, rng: np.random.Generator) -> tuple[Array, FloatArray]:
        """Actions [R, K, ...] and their weights [R, K], whose weighted means are expectations.

        Args:
            draws: Actions to draw where they cannot be listed.
            rng: Draws them.
        """
        ...


@dataclass(frozen=True)
class Choices(ActionDistribution):
    """Independent choices, each among some actions."""

    log_chances: tuple[FloatArray, ...]
    """Log-probabilities of each choice's actions, [R, n] each."""
    first: IntArray
    """The first action of each choice, or of the only one."""

    def log_prob(self, action: Array) -> FloatArray:
        count = len(self.log_chances)
        numbers = (np.asarray(action) - self.first).astype(np.int64).reshape(-1, count)  # [R, K]
        rows = np.arange(len(numbers))
        total = np.zeros(len(numbers))
        for choice, log_chances in enumerate(self.log_chances):
            total += log_chances[rows, numbers[:, choice]]
        return total

    def weighted_actions(self, draws: int, rng: np.random.Generator) -> tuple[Array, FloatArray]:
        sizes = [log_chances.shape[1] for log_chances in self.log_chances]
        return self._listed(sizes) if math.prod(sizes) <= MOST_LISTED else self._drawn(draws, rng)

    def _listed(self, sizes: list[int]) -> tuple[Array, FloatArray]:
        """All actions with their probabilities."""
        every = np.stack([each.ravel() for each in np.indices(sizes)], axis=-1)  # [K, choices]
        chances = np.exp(sum(log[:, every[:, n]] for n, log in enumerate(self.log_chances)))
        listed = every.reshape(-1, *self.first.shape) + self.first  # [K, ...]
        return np.broadcast_to(listed, (len(chances), *listed.shape)), np.asarray(chances)

    def _drawn(self, draws: int, rng: np.random.Generator) -> tuple[Array, FloatArray]:
        """Some actions, which have equal weights."""
        rows = len(self.log_chances[0])
        numbers = np.zeros((rows, draws, len(self.log_chances)), np.int64)
        for choice, log_chances in enumerate(self.log_chances):
            cumulative = np.exp(log_chances).cumsum(axis=1)
            uniform = rng.random((rows, draws)) * cumulative[:, -1:]
            for draw in range(draws):
                below = cumulative <= uniform[:, draw : draw + 1]
                numbers[:, draw, choice] = below.sum(axis=1)
        return numbers.reshape(rows, draws, *self.first.shape) + self.first, _equal(numbers)


@dataclass(frozen=True)
class ClippedNormal(ActionDistribution):
    """Independent normals whose draws are clipped to a Box."""

    mean: FloatArray
    """[R, A]."""
    log_std: FloatArray
    """[R, A]."""
    box: spaces.Box
    """The agent's action space."""
    log_unit: FloatArray
    """Log of the environment's units per unit of the agent, [A]."""

    def log_prob(self, action: Array) -> FloatArray:
        log_std = self.log_std.astype(np.float64)
        standardised = (action.astype(np.float64) - self.mean) / np.exp(log_std)
        inside = -0.5 * standardised**2 - log_std - _LOG_SQRT_TWO_PI - self.log_unit
        return _with_bounds(
            inside, standardised, is_low=action <= self.box.low, is_high=action >= self.box.high
        )

    def weighted_actions(self, draws: int, rng: np.random.Generator) -> tuple[Array, FloatArray]:
        noise = rng.standard_normal((len(self.mean), draws, self.mean.shape[1]))
        drawn = self.mean[:, None] + np.exp(self.log_std)[:, None] * noise
        return np.clip(drawn, self.box.low, self.box.high).astype(np.float32), _equal(noise)


@dataclass(frozen=True)
class SquashedNormal(ActionDistribution):
    """Independent normals squashed by tanh into a Box (Haarnoja et al. 2018, appendix C)."""

    mean: FloatArray
    """[R, A], before squashing."""
    log_std: FloatArray
    """[R, A], before squashing."""
    box: spaces.Box
    """The agent's action space."""
    log_unit: FloatArray
    """Log of the environment's units per unit of the agent, [A]."""

    def log_prob(self, action: Array) -> FloatArray:
        half = (self.box.high.astype(np.float64) - self.box.low) / 2
        squashed = (action.astype(np.float64) - self.box.low) / half - 1
        unsquashed = np.arctanh(np.clip(squashed, -_NEAR_ONE, _NEAR_ONE))
        log_std = self.log_std.astype(np.float64)
        standardised = (unsquashed - self.mean) / np.exp(log_std)
        # log(1 - tanh(u)^2), which does not underflow
        log_slope = 2 * (math.log(2) - unsquashed - np.logaddexp(0, -2 * unsquashed))
        density = -0.5 * standardised**2 - log_std - _LOG_SQRT_TWO_PI - log_slope
        inside = density - np.log(half) - self.log_unit
        return _with_bounds(
            inside, standardised, is_low=squashed <= -_NEAR_ONE, is_high=squashed >= _NEAR_ONE
        )

    def weighted_actions(self, draws: int, rng: np.random.Generator) -> tuple[Array, FloatArray]:
        noise = rng.standard_normal((len(self.mean), draws, self.mean.shape[1]))
        drawn = np.tanh(self.mean[:, None] + np.exp(self.log_std)[:, None] * noise)
        actions = self.box.low + (self.box.high - self.box.low) / 2 * (drawn + 1)
        return actions.astype(np.float32), _equal(noise)


@dataclass(frozen=True)
class EvenInBox(ActionDistribution):
    """Evenly anywhere in a bounded Box, as in HEATUP."""

    rows: int
    """R."""
    box: spaces.Box
    """The agent's action space."""
    log_unit: FloatArray
    """Log of the environment's units per unit of the agent, [A]."""

    def log_prob(self, action: Array) -> FloatArray:
        width = self.box.high.astype(np.float64) - self.box.low
        return np.full(len(action), -float((np.log(width) + self.log_unit).sum()))

    def weighted_actions(self, draws: int, rng: np.random.Generator) -> tuple[Array, FloatArray]:
        uniform = rng.random((self.rows, draws, len(self.box.low)))
        drawn = self.box.low + uniform * (self.box.high - self.box.low)
        return drawn.astype(np.float32), _equal(uniform)


@dataclass(frozen=True)
class OneAction(ActionDistribution):
    """One action for each observation, out of a continuum, or drawn from what is not known."""

    action: Array
    """[R, ...]."""
    obstacle: str = ONE_OF_A_CONTINUUM

    def log_prob(self, action: Array) -> FloatArray:
        is_it = (action == self.action).reshape(len(action), -1).all(axis=1)
        return np.where(is_it, np.inf, -np.inf)

    def weighted_actions(
        self,
        draws: int,  # noqa: ARG002 - there is one
        rng: np.random.Generator,  # noqa: ARG002
    ) -> tuple[Array, FloatArray]:
        return self.action[:, None], np.ones((len(self.action), 1))


@dataclass(frozen=True)
class Discretised(ActionDistribution):
    """Choices that an OutputFilter makes of a Box: probabilities of few actions, not densities.

    Other actions of the Box would be counted as the choices that they are nearest to.
    """

    choices: ActionDistribution
    """The distribution of the agent's actions."""
    obstacle: str = (
        "an OutputFilter makes choices of a Box, whose probabilities can't be compared with "
        "densities in it"
    )

    def log_prob(self, action: Array) -> FloatArray:
        return self.choices.log_prob(action)

    def weighted_actions(self, draws: int, rng: np.random.Generator) -> tuple[Array, FloatArray]:
        return self.choices.weighted_actions(draws, rng)


def has_numbers(space: Space) -> bool:
    """True where actions, or parts of them, lie in a Box."""
    match space:
        case spaces.Dict():
            return any(map(has_numbers, space.spaces.values()))
        case spaces.Tuple():
            return any(map(has_numbers, space.spaces))
    return isinstance(space, spaces.Box)


def policy_of(agent: object, observation: Observation, clock: Clock) -> ActionDistribution | None:
    """The distribution of an agent's actions now; None where it is not known.

    Args:
        agent: The agent.
        observation: Filtered, [R, ...] each, as `AgentRows.pending` has it.
        clock: Its clock; without exploration it acts greedily.
    """
    _import_offers()
    explores = clock.phase is not Phase.TEST or clock.samples
    policy = _policy_of(agent, observation, clock, explores=explores)
    is_discretised = isinstance(agent, FilteredAgent) and _is_discretised(agent)
    return Discretised(policy) if is_discretised and policy is not None else policy


@cache
def _import_offers() -> None:
    """Import once what extensions offer."""
    import_offers("data")


def recorded_log_prob(
    level: LevelManager, action: Action, rows: IntArray, clock: Clock
) -> FloatArray | None:
    """Log-probabilities [R] of actions just sent; None where they are not known, or have none.

    Args:
        level: The level that has sent them, alone above the environment.
        action: The actions, as the environment gets them.
        rows: Where, [R].
        clock: That of its stack.
    """
    agent = level.agent
    clock = clock.of_level(level.name)
    is_greedy = clock.phase is Phase.TEST and not clock.samples
    if is_greedy or not isinstance(agent, FilteredAgent):
        return None
    observation = take(level.agent_rows.pending, rows)
    is_random = clock.phase is Phase.HEATUP
    policy = (
        random_policy_of(agent, observation, len(rows))
        if is_random
        else policy_of(agent, observation, clock)
    )
    if policy is None or not policy.has_probabilities:
        return None
    return policy.log_prob(in_agents_space(agent, action))


def in_agents_space(agent: FilteredAgent[Any], action: Action) -> Array:
    """Actions that were sent, as the agent's policy counts them, [R, ...]."""
    inverse = agent.output_filter.inverse(action)
    assert not isinstance(inverse, dict), "policies with probabilities act in one space"
    return inverse


def random_policy_of(
    agent: FilteredAgent[Any], observation: Observation, rows: int
) -> ActionDistribution | None:
    """The distribution of its actions in HEATUP; None in an unbounded Box, or a mixed space."""
    space = agent.action_space
    sizes = choice_sizes(space)
    if sizes and isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        allowed = observation.get(ALLOWED, np.ones((rows, sum(sizes)), np.bool_))
        choices = choices_of(space, np.where(allowed, 0.0, FORBIDDEN))
        return Discretised(choices) if _is_discretised(agent) else choices
    log_unit = _log_unit(agent.output_filter)
    if isinstance(space, spaces.Box) and space.is_bounded() and log_unit is not None:
        return EvenInBox(rows, space, log_unit)
    return None


def _is_discretised(agent: FilteredAgent[Any]) -> bool:
    """True where an agent has choices alone, and its environment takes numbers."""
    return has_numbers(agent.acts_in) and not has_numbers(agent.action_space)


@singledispatch
def _policy_of(
    agent: object,  # noqa: ARG001 - its class chooses the function
    observation: Observation,  # noqa: ARG001
    clock: Clock,  # noqa: ARG001
    *,
    explores: bool,  # noqa: ARG001
) -> ActionDistribution | None:
    """The distribution of `policy_of` by the class of the agent; None for those not known."""
    return None


@_policy_of.register
def _(
    agent: PPOAgent,
    observation: Observation,
    clock: Clock,  # noqa: ARG001 - PPO's policy has no schedule
    *,
    explores: bool,
) -> ActionDistribution | None:
    parameters = agent.policy(observation)
    if explores:
        return drawn_from(agent, parameters)
    greedy = agent.sampler.greedy(parameters)[0] + first_action(agent.action_space)
    return always(agent.action_space, greedy)


@_policy_of.register
def _(
    agent: OffPolicyAgent, observation: Observation, clock: Clock, *, explores: bool
) -> ActionDistribution | None:
    acting = agent.learner.acting
    outputs = acting.outputs(observation)
    if not explores:
        return always(agent.action_space, acting.greedy(observation, outputs))
    # In training, another class may let others decide in its place.
    decides = clock.phase is Phase.TEST or type(agent).act is OffPolicyAgent.act
    is_plain = decides and (
        type(acting).explore is ActingPolicy.explore
        and type(acting).observed is ActingPolicy.observed
    )
    return exploring(acting.exploration, agent, outputs, clock) if is_plain else None


@singledispatch
def exploring(
    exploration: object,  # noqa: ARG001 - its class chooses the function
    agent: OffPolicyAgent,  # noqa: ARG001
    outputs: FloatArray,  # noqa: ARG001
    clock: Clock,  # noqa: ARG001
) -> ActionDistribution | None:
    """The distribution of an off-policy agent that explores, by the class of its exploration.

    None for one that is not known, such as noise that depends on that of the decision before.

    Args:
        exploration: The exploration policy.
        agent: Its agent.
        outputs: Its network's, [R, P].
        clock: For schedules.
    """
    return None


@exploring.register
def _(
    exploration: EpsilonGreedyPolicy, agent: OffPolicyAgent, outputs: FloatArray, clock: Clock
) -> ActionDistribution:
    """Epsilon spread evenly over the allowed actions, the rest on the greedy one.

    Where nothing is allowed, as behind the end of an episode, the greedy one has all.
    """
    epsilon = exploration.metrics(clock)["exploration/epsilon"]
    is_allowed = outputs > FORBIDDEN / 2  # [R, n]
    counts = is_allowed.sum(axis=1, keepdims=True)
    chances = epsilon * is_allowed / np.maximum(counts, 1)
    rest = 1 - epsilon * (counts[:, 0] > 0)
    chances[np.arange(len(outputs)), outputs.argmax(axis=1)] += rest
    with np.errstate(divide="ignore"):
        return Choices((np.log(chances),), first_action(agent.action_space))


@exploring.register
def _(
    exploration: SquashedGaussianPolicy,  # noqa: ARG001 - its class chose the function
    agent: OffPolicyAgent,
    outputs: FloatArray,
    clock: Clock,  # noqa: ARG001
) -> ActionDistribution | None:
    log_unit = _log_unit(agent.output_filter)
    space = agent.action_space
    assert isinstance(space, spaces.Box), "squashed normals act in a Box"
    assert isinstance(agent.params, SACAgentParameters), "the policy of soft actor-critic"
    if log_unit is None:
        return None
    mean, log_std = np.split(outputs, 2, axis=1)
    log_std = np.clip(log_std, *agent.params.actor.log_std_bounds)
    return SquashedNormal(mean, log_std, space, log_unit)


def drawn_from(agent: FilteredAgent[Any], parameters: FloatArray) -> ActionDistribution | None:
    """Draws from the distribution of PPO's policies with these parameters, [R, P].

    None for mixed actions, and where an OutputFilter isn't linear.
    """
    space = agent.action_space
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return choices_of(space, parameters)
    log_unit = _log_unit(agent.output_filter)
    if not isinstance(space, spaces.Box) or log_unit is None:
        return None
    mean, log_std = np.split(parameters, 2, axis=1)
    return ClippedNormal(mean, log_std, space, log_unit)


def choices_of(space: Space, logits: FloatArray) -> Choices:
    """Choices by logits [R, P] of all of them in a row."""
    parts = np.split(logits.astype(np.float64), np.cumsum(choice_sizes(space))[:-1], axis=1)
    shifted = [part - part.max(axis=1, keepdims=True) for part in parts]
    log_chances = [part - np.log(np.exp(part).sum(axis=1, keepdims=True)) for part in shifted]
    return Choices(tuple(log_chances), first_action(space))


def always(space: Space, action: Array) -> ActionDistribution | None:
    """Greedy actions [R, ...]: each has the probability 1, or no density; None for mixed ones."""
    if isinstance(space, spaces.Box):
        return OneAction(np.clip(action, space.low, space.high))
    if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return None
    sizes = choice_sizes(space)
    numbers = (action - first_action(space)).reshape(len(action), len(sizes))
    log_chances = []
    for number, size in enumerate(sizes):
        is_it = np.arange(size) == numbers[:, number : number + 1]
        log_chances.append(np.where(is_it, 0.0, -np.inf))
    return Choices(tuple(log_chances), first_action(space))


def _log_unit(output: OutputFilter) -> FloatArray | None:
    """Log of the environment's units per unit of the agent, [A]; None where it isn't constant."""
    space = output.agent_space
    if not isinstance(space, spaces.Box) or len(space.shape) != 1:
        return None
    is_finite = np.isfinite(space.low) & np.isfinite(space.high)
    low = np.where(is_finite, space.low, -1.0)
    high = np.where(is_finite, space.high, 1.0)
    corners = np.stack([low, (low + high) / 2, high]).astype(space.dtype)
    sent = output.apply(corners)
    if isinstance(sent, dict) or sent.shape != corners.shape:
        return None
    sent = sent.astype(np.float64)
    width = sent[2] - sent[0]
    if (width <= 0).any() or (np.abs(2 * sent[1] - sent[0] - sent[2]) > 1e-4 * width).any():
        return None
    return np.asarray(np.log(width / (high - low)))


def _with_bounds(
    inside: FloatArray, standardised: FloatArray, *, is_low: BoolArray, is_high: BoolArray
) -> FloatArray:
    """Log-probabilities of actions, [R]: at a bound of an element that of all beyond it.

    Args:
        inside: Log-densities of elements between the bounds, [R, A].
        standardised: Elements as standard normal numbers, [R, A].
        is_low: Where an element is at its lower bound, [R, A].
        is_high: Where it is at the upper one.
    """
    below = _log_cumulative(standardised)
    above = _log_cumulative(-standardised)
    each = np.where(is_low, below, np.where(is_high, above, inside))
    return np.asarray(each.sum(axis=1))


def _log_cumulative(standardised: FloatArray) -> FloatArray:
    """Log of the standard normal's distribution function, element by element."""
    return np.asarray(torch.special.log_ndtr(torch.from_numpy(standardised)).numpy())


def _equal(drawn: Array) -> FloatArray:
    """Equal weights of draws [R, K, A], [R, K]."""
    rows, draws, _ = drawn.shape
    return np.full((rows, draws), 1 / draws)
