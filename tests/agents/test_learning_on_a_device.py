"""Learning stays on its device: rehearsed on torch's meta device, which has no data to read back.

There any tensor that was left on the host, and any number that the host asks for, is an error; on a
GPU the first would be one too and the second a wait for the device, which cannot be captured.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from decisions import transition
from gymnasium import spaces
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import coach_rl as rl
from coach_rl.architectures.gradient_step import named_tensors
from coach_rl.architectures.q_network import ReturnHead
from coach_rl.memories import Minibatch, RolloutBatch, TransitionBatch
from tests.agents.decisions import context

DEVICE = torch.device("meta")
OBSERVATION = spaces.Dict({"observation": spaces.Box(-1, 1, (5,), np.float32)})
BOX, CHOICES = spaces.Box(-1, 1, (2,), np.float32), spaces.Discrete(3)
DIALS = spaces.MultiDiscrete([3, 2])
ROWS = 32
CLIPPED = rl.AdamParameters(max_gradient_norm=0.5, l2=1e-4)


class HostTensors(TorchDispatchMode):
    """Counts operations that see or make a tensor on the host; a 0-d one may be read."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: Counter[str] = Counter()

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        leaves = tree_leaves((args, kwargs, result))
        if any(isinstance(each, Tensor) and each.ndim and each.is_cpu for each in leaves):
            self.operations[str(func)] += 1
        return result


def dqn(head: ReturnHead) -> rl.DQNAgentParameters:
    return rl.DQNAgentParameters(network=rl.QNetworkParameters(head=head, dueling=True))


def empty(*shape: int) -> Tensor:
    return torch.empty(ROWS, *shape, device=DEVICE)


def actions(space: spaces.Space) -> Tensor:
    if isinstance(space, spaces.Box):
        return empty(2)
    return empty(*space.shape).to(torch.int64)


def transitions(space: spaces.Space) -> TransitionBatch:
    return TransitionBatch(
        observation={"observation": empty(5)},
        action=actions(space),
        reward=empty(),
        discount=empty(),
        next_observation={"observation": empty(5)},
        weight=empty(),
        position=empty(),
    )


def rollout(space: spaces.Space) -> RolloutBatch:
    return RolloutBatch(
        observation={"observation": empty(5)},
        action=actions(space),
        log_prob=empty(),
        advantage=empty(),
        target=empty(),
        value=empty(),
        policy=None,
    )


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    ("params", "action", "noises"),
    [
        pytest.param(rl.DDPGAgentParameters(), BOX, 0, id="ddpg"),
        pytest.param(
            rl.DDPGAgentParameters(
                algorithm=rl.DDPGAlgorithmParameters(
                    clip_targets=(-50.0, 0.0), action_penalty=1.0, huber=1.0
                ),
                actor_optimizer=CLIPPED,
                critic_optimizer=CLIPPED,
                normalise_observations=5.0,
            ),
            BOX,
            0,
            id="ddpg_with_options",
        ),
        pytest.param(
            rl.DDPGAgentParameters(
                actor_optimizer=rl.AdamWParameters(),
                critic_optimizer=rl.RMSpropParameters(momentum=0.9, centered=True),
            ),
            BOX,
            0,
            id="ddpg_with_other_optimisers",
        ),
        pytest.param(rl.TD3AgentParameters(), BOX, 1, id="td3"),
        pytest.param(rl.SACAgentParameters(), BOX, 2, id="sac"),
        pytest.param(
            rl.SACAgentParameters(algorithm=rl.SACAlgorithmParameters(learn_temperature=False)),
            BOX,
            2,
            id="sac_temperature_kept",
        ),
        pytest.param(rl.SACAgentParameters(), CHOICES, 0, id="sac_choice"),
        pytest.param(rl.SACAgentParameters(), DIALS, 0, id="sac_choices"),
        pytest.param(dqn(rl.MeanHead()), CHOICES, 0, id="dqn"),
        pytest.param(dqn(rl.QuantileHead()), DIALS, 0, id="dqn_branches"),
        pytest.param(dqn(rl.QuantileHead()), CHOICES, 0, id="dqn_quantiles"),
        pytest.param(dqn(rl.CategoricalHead(low=-1.0, high=1.0)), CHOICES, 0, id="dqn_categories"),
    ],
)
def test_off_policy_learning_leaves_the_device_for_nothing_but_noise(
    params: rl.OffPolicyAgentParameters, action: spaces.Space, noises: int
):
    agent = params.build(
        replace(context(OBSERVATION, action), runtime=rl.Runtime(device="meta", seed=0))
    )
    with HostTensors() as host:
        for _ in range(4):  # both of TD3's variants of a step
            outputs = agent.learn_from_batch(transitions(action))
    # Noise is drawn on the host, the same for every device, and sent.
    sent = {"aten.randn.generator": 4 * noises, "aten._to_copy.default": 4 * noises}
    assert host.operations == Counter(sent)
    assert {value.device for value in outputs.values()} == {DEVICE}


@pytest.mark.parametrize("action", [BOX, CHOICES], ids=["box", "choices"])
def test_ppo_learning_never_leaves_the_device(action: spaces.Space):
    agent = rl.PPOAgentParameters().build(
        replace(context(OBSERVATION, action), runtime=rl.Runtime(device="meta", seed=0))
    )
    agent.engine.set_scalars(clip=0.2, kl_coefficient=1.0)
    with HostTensors() as host:
        index = torch.empty(8, dtype=torch.int64, device=DEVICE)
        agent.learn_from_batch(Minibatch(rollout(action), index))
    assert not host.operations


def test_batches_out_of_a_memory_on_the_device_lie_there():
    memory = rl.ReplayMemoryParameters(capacity=64, storage="device").build(
        observation_space=OBSERVATION,
        action_space=BOX,
        num_envs=2,
        device=DEVICE,
        seed=0,
        discount=0.99,
    )
    for step in range(10):
        seen, action = {"observation": np.zeros((2, 5), np.float32)}, np.zeros((2, 2), np.float32)
        memory.add(transition(seen, action, seen, truncated=step == 9))
    batch = memory.sample(16)
    assert {column.device for column in named_tensors(batch).values()} == {DEVICE}
    assert batch.next_observation["observation"].shape == (16, 5)
