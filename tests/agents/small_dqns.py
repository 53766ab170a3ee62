"""Small DQNs of every head and kind of network, and batches for them."""

import numpy as np
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.architectures.q_network import MeanHead
from coach_rl.core.records import ALLOWED
from coach_rl.extensions.distributional.heads import CategoricalHead, QuantileHead
from tests.agents.decisions import context, outcome, request, transition_batch
from tests.agents.plain_learners import SEEN, TRAIN

HEADS = {
    "mean": MeanHead(),
    "quantiles": QuantileHead(count=5),
    "categorical": CategoricalHead(atoms=11, low=-1.5, high=2.5),
}
NETWORKS = {
    "plain": {},
    "streams": {"streams": (5,)},
    "dueling": {"dueling": True},
    "dueling streams": {"dueling": True, "streams": (5,)},
}


def parameters(
    head="mean", network=None, algorithm=None, *, layers=(7, 6), recurrence=None, **changes
):
    """Parameters of a DQN that learns fast; `changes` are of the agent."""
    given = {
        "learning": rl.LearningParameters(batch=16, learning_starts=1),
        "memory": rl.ReplayMemoryParameters(capacity=2_000),
        "optimizer": rl.AdamParameters(learning_rate=0.02, epsilon=1e-4),
        "update_mode": "eager",
    }
    torso = rl.TorsoParameters(middleware=layers, activation="relu", recurrence=recurrence)
    return rl.DQNAgentParameters(
        algorithm=rl.DQNAlgorithmParameters(**(algorithm or {})),
        network=rl.QNetworkParameters(torso=torso, head=HEADS[head], **(network or {})),
        **{**given, **changes},
    )


def sizes_of(actions):
    """Numbers of actions of each choice."""
    return tuple(np.atleast_1d(getattr(actions, "nvec", getattr(actions, "n", None))).tolist())


def build(params, actions, *, masked=False, num_envs=1, seed=0):
    """An agent that sees 3 numbers, and masks of its actions if they are wanted."""
    shown = {"action_mask": spaces.MultiBinary(sum(sizes_of(actions)))} if masked else {}
    return params.build(context({**SEEN.spaces, **shown}, actions, num_envs=num_envs, seed=seed))


def masks_of(sizes, rows, rng):
    """Random masks [rows, M] that allow one action or more of each choice."""
    masks = []
    for size in sizes:
        mask = rng.random((rows, size)) < 0.4
        mask[np.arange(rows), rng.integers(size, size=rows)] = True
        masks.append(mask)
    return np.concatenate(masks, axis=1)


def batches(count, actions, *, seed=0, masked=False, size=12, dtype=np.float32):
    """As a memory with n-step returns and priorities gives them: some terminated, all weighted.

    Rewards are multiples of a fifth, so that many a moved atom of C51 falls on another or beyond
    the ends.
    """
    rng = np.random.default_rng(seed)
    sizes = sizes_of(actions)

    def column(values):
        return torch.from_numpy(np.asarray(values).astype(dtype))

    def seen():
        masks = {ALLOWED: torch.from_numpy(masks_of(sizes, size, rng))} if masked else {}
        return {"x": column(rng.normal(size=(size, 3)))} | masks

    for _ in range(count):
        chosen = actions.start + rng.integers(0, sizes, (size, len(sizes)))  # [B, choices]
        yield transition_batch(
            seen(),
            torch.from_numpy(chosen.reshape(size, *actions.shape)),
            seen(),
            reward=column(rng.integers(-15, 16, size) / 5),
            discount=column(rng.choice([0.9, 0.0, 0.9**3], size)),
            weight=column(0.2 + rng.random(size)),
        )


def masked_decisions(agent, steps, after_step=lambda step: None):
    """How often each action was taken, [M], by 50 rows under masks that no decision breaks."""
    actions = agent.action_space
    sizes = sizes_of(actions)
    begins = np.cumsum((0, *sizes[:-1]))  # the first column of each choice
    state = agent.new_rows(50, seed=0)
    rng = np.random.default_rng(0)
    counts = np.zeros(sum(sizes))

    def shown():
        seen = {"x": rng.normal(size=(50, 3)).astype(np.float32)}
        return seen | {"action_mask": masks_of(sizes, 50, rng).astype(np.int8)}

    seen = shown()
    for step in range(steps):
        mask = seen["action_mask"] > 0
        greedy = rng.random(50) < 0.2
        action = agent.act(state, request(seen, starts=step == 0, greedy=greedy), TRAIN)
        seen = shown()
        agent.observe(state, outcome(seen), TRAIN)
        columns = action - actions.start + begins  # [50, choices]
        assert np.take_along_axis(mask, columns, axis=1).all()
        np.add.at(counts, columns, 1)
        after_step(step)
    return counts
