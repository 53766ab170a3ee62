"""Points where data pass, of a graph, of agents, and of their parts; see `data_points`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.ppo_agent import PPOAgent
from coach_rl.architectures.gradient_step import JUDGED, as_arrays, mapped, named_tensors
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.parts import declared, walk
from coach_rl.core.records import Array, EnvResponse, Observation, Transition
from coach_rl.extensions.looking.data_points import (
    DataPoint,
    Observer,
    after_calls,
    before_calls,
    flat,
)
from coach_rl.graph_managers.graph import Graph
from coach_rl.memories.batches import Columns, Minibatch
from coach_rl.memories.samplers import SamplerChain, SamplerUnit
from coach_rl.memories.transition_batch import TransitionBatch

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
_ANSWERED = ("observation", "reward", "terminated", "truncated", "duration")
Points = Mapping[str, Sequence[DataPoint]]
"""Points by the level's name; those of the simulators under the empty name."""


def points_of_graph(graph: Graph) -> Points:
    """The points of a graph with a stack to train in."""
    simulators = graph.training.simulators
    space = simulators.spaces.observation.spaces

    def answered(answer: EnvResponse) -> dict[str, Array]:
        if not len(answer):
            return {}
        return flat({name: getattr(answer, name) for name in _ANSWERED})

    environment = DataPoint(
        name="environment",
        watch=after_calls(simulators, "recv", answered),
        spaces=flat({"observation": space}),
    )
    agents = {name: points_of(agent) for name, agent in graph.agents.items()}
    return {"": [environment], **{name: points for name, points in agents.items() if points}}


def points_of(agent: object) -> list[DataPoint]:
    """The points of an agent and its parts, with the name of the agent that they belong to.

    Where two parts have points of one name, the second gets its part's name in front.
    """
    found: list[DataPoint] = []
    for part in walk(agent):
        name = getattr(part.agent, "name", "")
        for each in _own(part.value):
            taken = {(other.agent, other.name) for other in found}
            point = replace(each, agent=each.agent or name)
            if (point.agent, point.name) in taken:
                point = replace(point, name=f"{part.name}/{point.name}")
            found.append(point)
    return found


def _own(value: object) -> list[DataPoint]:
    """The points of an object without its parts."""
    found: list[DataPoint] = []
    if isinstance(value, FilteredAgent):
        found += points_of_filters(value)
    if isinstance(value, OffPolicyAgent):
        found += points_of_replay(value)
    if isinstance(value, PPOAgent):
        found += points_of_rollouts(value)
    if isinstance(value, UpdateEngine):
        found += points_of_updates(value)
    for functions in declared(type(value), "POINTS"):
        for function in functions:
            found += function(value)
    return found


def points_of_filters(agent: FilteredAgent[Any]) -> list[DataPoint]:
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


def points_of_replay(agent: OffPolicyAgent) -> list[DataPoint]:
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


def points_of_rollouts(agent: PPOAgent) -> list[DataPoint]:
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


def points_of_updates(engine: UpdateEngine[Any]) -> list[DataPoint]:
    """Points at the numbers of each step, at its samples, and at the networks after it."""

    def numbers(names: tuple[str, ...], values: Tensor) -> dict[str, Array]:
        plain = (name.removeprefix(JUDGED) for name in names)
        return dict(zip(plain, values.cpu().numpy(), strict=True))

    def of(kind: str) -> Callable[..., dict[str, Array]]:
        return lambda *_, **__: {
            path.removeprefix(f"{kind}/"): values
            for path, values in engine.learned().items()
            if path.startswith(f"{kind}/")
        }

    watched = {
        "update": before_calls(engine._metrics, "add", numbers),
        "update/samples": after_calls(
            engine, "step", lambda per_sample, *_, **__: as_arrays(per_sample)
        ),
        "update/parameters": after_calls(engine, "step", of("parameters")),
        "update/gradients": after_calls(engine, "step", of("gradients")),
    }
    return [DataPoint(name=name, watch=watch) for name, watch in watched.items()]


def _made_by(unit: SamplerUnit, sampler: SamplerChain) -> Callable[[Observer], None]:
    def named(made: Columns) -> dict[str, Array]:
        return {path.strip("/"): values for path, values in as_arrays(made).items()}

    return lambda observe: sampler.watch(unit.name, lambda made: observe(lambda: named(made)))
