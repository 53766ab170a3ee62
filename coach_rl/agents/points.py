"""Points of agents where data pass; see `core.data_points`."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from coach_rl.agents.learner import Learner
from coach_rl.agents.stages.stage import Stages
from coach_rl.architectures.gradient_step import as_arrays, mapped, named_tensors
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.data_points import (
    DataPoint,
    Observer,
    after_calls,
    before_calls,
    flat,
)
from coach_rl.core.records import Array, Observation, Transition
from coach_rl.core.spaces import Space
from coach_rl.memories.batches import Columns, Minibatch, TransitionBatch
from coach_rl.memories.replay_memory import ReplayMemory
from coach_rl.memories.samplers import SamplerChain, SamplerUnit

AGE_IN_DECISIONS = "age_in_decisions"
"""Column of a batch: decisions of a transition's row since that one."""
AGE_IN_UPDATES = "age_in_updates"
"""Column of a minibatch: gradient steps since the policy that acted."""
_KEPT = (
    "observation",
    "action",
    "reward",
    "next_observation",
    "terminated",
    "truncated",
    "duration",
    "extras",
)


class FilteringAgent(Protocol):
    """An agent whose filters have points."""

    stages: Stages
    """The stages that its observations enter through."""
    observation_space: spaces.Dict
    """The space of its filtered observations."""
    acts_in: Space
    """The space of the actions that it sends."""


class ReplayAgent(Protocol):
    """An agent that learns from a memory by a learner."""

    memory: ReplayMemory
    """Its memory."""
    learner: Learner
    """Its learner."""


class RolloutAgent(Protocol):
    """An agent that learns from rollouts by gradient steps."""

    engine: UpdateEngine[Any]
    """Takes the gradient steps."""
    training_steps: int
    """Gradient steps of the rounds that are over."""


def points_of_filters(agent: FilteringAgent) -> list[DataPoint]:
    """Points at the filters of an agent, and where its transitions are stored."""
    observed = agent.observation_space.spaces

    def filtered(observation: Observation, *_: object, **__: object) -> Observation:
        whole = observed.keys() <= observation.keys()  # not a goal alone
        return {key: observation[key] for key in observed} if whole else {}

    def stored_reward(transition: Transition) -> dict[str, Array]:
        return {"": transition.reward}

    def stored(transition: Transition) -> dict[str, Array]:
        return flat({name: getattr(transition, name) for name in _KEPT})

    return [
        DataPoint(
            name="filter/observation",
            watch=after_calls(agent.stages, "enter", filtered),
            spaces=observed,
        ),
        DataPoint(name="filter/reward", watch=before_calls(agent, "store", stored_reward)),
        DataPoint(
            name="filter/action",
            watch=after_calls(agent, "act", lambda action, *_: flat({"": action})),
            spaces=flat({"": agent.acts_in}),
        ),
        DataPoint(
            name="memory",
            watch=before_calls(agent, "store", stored),
            spaces=flat({"observation": observed, "next_observation": observed}),
        ),
    ]


def points_of_replay(agent: ReplayAgent) -> list[DataPoint]:
    """Points at the sampler of a replay memory, at batches and at the network."""
    learner = agent.learner
    sampler = agent.memory.sampler
    store = agent.memory.store

    def learned_from(batch: TransitionBatch) -> dict[str, Array]:
        columns = as_arrays(named_tensors(batch))
        positions = columns["position"]
        newest = store.counts[store.rows_of(positions)] - 1
        return columns | {AGE_IN_DECISIONS: newest - store.steps_of(positions)}

    return [
        *(
            DataPoint(name=f"sampler/{each.name}", watch=_made_by(each, sampler))
            for each in sampler.units
        ),
        DataPoint(
            name="batch",
            watch=before_calls(learner, "learn_from_batch", learned_from),
            ages=(AGE_IN_DECISIONS,),
        ),
        DataPoint(
            name="network",
            watch=after_calls(learner.acting, "outputs", lambda outputs, *_: {"": outputs}),
            is_acting=True,
        ),
    ]


def points_of_rollouts(agent: RolloutAgent) -> list[DataPoint]:
    """Points at minibatches of a rollout, and at the network."""

    def learned_from(minibatch: Minibatch) -> dict[str, Array]:
        batch = mapped(lambda column: column[minibatch.positions], minibatch.rollout)
        age = agent.engine.steps - agent.training_steps
        ages = np.full(len(minibatch.positions), age, np.int64)
        return {**as_arrays(named_tensors(batch)), AGE_IN_UPDATES: ages}

    return [
        DataPoint(
            name="batch",
            watch=before_calls(agent, "learn_from_batch", learned_from),
            ages=(AGE_IN_UPDATES,),
        ),
        DataPoint(
            name="network",
            watch=after_calls(agent, "policy", lambda made, *_: {"": made}),
            is_acting=True,
        ),
    ]


def _made_by(unit: SamplerUnit, sampler: SamplerChain) -> Callable[[Observer], None]:
    def named(made: Columns) -> dict[str, Array]:
        return {path.strip("/"): values for path, values in as_arrays(made).items()}

    return lambda observe: sampler.watch(unit.name, lambda made: observe(lambda: named(made)))
