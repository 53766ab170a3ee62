"""What agents are given by hand: contexts, requests, outcomes, transitions and batches."""

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.core.agents import AgentContext
from coach_rl.core.records import ActionRequest, Outcome, Transition
from coach_rl.core.runtime import Runtime
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.memories import TransitionBatch


def context(observed, action, *, num_envs=2, seed=0, planned=1000, **more):
    """A context with these spaces, on the CPU; `observed` may be a dict of spaces."""
    return AgentContext(
        spaces=EnvironmentSpaces(observation=spaces.Dict(observed), action=action),
        num_envs=num_envs,
        planned_steps=planned,
        runtime=Runtime(device="cpu", seed=seed),
        **more,
    )


def _column(values, count, dtype):
    return np.broadcast_to(np.asarray(values, dtype), (count,)).copy()


def _rows(rows, observation):
    return np.arange(len(next(iter(observation.values())))) if rows is None else rows


def request(observation, *, rows=None, starts=True, episode_start=None, greedy=False):
    """A request of rows, the first ones unless given; flags are one for all or one for each."""
    rows = _rows(rows, observation)
    fresh = starts if episode_start is None else episode_start
    starts, fresh, greedy = (_column(each, len(rows), np.bool_) for each in (starts, fresh, greedy))
    return ActionRequest(
        rows=rows, observation=observation, starts=starts, episode_start=fresh, greedy=greedy
    )


def outcome(observation, *, rows=None, reward=1.0, terminated=False, truncated=False, **changes):
    """The outcome of a decision of one step; numbers are one for all rows or one for each."""
    rows = _rows(rows, observation)
    count = len(rows)
    none = np.zeros(count, np.uint8)
    values = {
        "rows": rows,
        "observation": observation,
        "reward": _column(reward, count, np.float64),
        "terminated": _column(terminated, count, np.bool_),
        "truncated": _column(truncated, count, np.bool_),
        "duration": np.ones(count, np.int64),
        "end": none,
        "below": none.copy(),
        "tested": none > 0,
    }
    return Outcome(**{**values, **changes})


def transition(
    observation,
    action,
    after,
    *,
    rows=None,
    reward=1.0,
    terminated=False,
    truncated=False,
    duration=1,
    **more,
):
    """Transitions to the observations `after`; numbers are one for all rows or one for each."""
    rows = _rows(rows, observation)
    count = len(rows)
    return Transition(
        rows=rows,
        observation=observation,
        action=action,
        reward=_column(reward, count, np.float64),
        next_observation=after,
        terminated=_column(terminated, count, np.bool_),
        truncated=_column(truncated, count, np.bool_),
        duration=_column(duration, count, np.int64),
        **more,
    )


def transition_batch(observation, action, after, **columns):
    """A batch of transitions to the observations `after`, as a memory samples it.

    Columns are one number for all transitions or one for each; without them, rewards and discounts
    are 0, weights 1.
    """
    size = len(next(iter(observation.values())))
    given = {"reward": 0.0, "discount": 0.0, "weight": 1.0, **columns}
    for name in ("reward", "discount", "weight"):
        if not isinstance(given[name], torch.Tensor):
            given[name] = torch.full((size,), given[name])
    return TransitionBatch(
        observation=observation,
        action=action,
        next_observation=after,
        **{"position": torch.arange(size), **given},
    )


def stored_by(agent):
    """Every transition that an agent's memory receives, in a list that grows."""
    stored, store = [], agent.store

    def spied(transition):
        stored.append(transition)
        store(transition)

    agent.store = spied
    return stored
