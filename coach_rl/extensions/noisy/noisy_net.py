"""NoisyNet: a DQN that explores by noise in its network (Fortunato et al. 2018, arXiv:1706.10295).

Every exploring row draws noise of its own for each decision; a gradient step draws three times, for
the online network, the target network, and the online network's choice of the next action
(section 3.1). Noise of a gradient step is the same for its whole batch, as in the paper.
"""

import math
from collections.abc import Mapping
from dataclasses import field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.agents.dqn_agent import (
    DQNAgentParameters,
    DQNLearner,
    MakeDQNLearner,
    learner_class,
    learners_of,
)
from coach_rl.agents.learner import ActingPolicy
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.architectures.numpy_policy import torch_forward
from coach_rl.architectures.q_network import QNetwork
from coach_rl.core.agents import RowState
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import ActionRequest, Array, FloatArray, IntArray, Observation
from coach_rl.core.saved import Saved, SavedNames
from coach_rl.core.seeding import generator
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies import AnyExplorationPolicy, ExplorationPolicyParameters
from coach_rl.exploration_policies.exploration_policy import Greedy
from coach_rl.extensions.noisy.noisy_layers import NOISE, NoisyLinear, NoisyQNetwork
from coach_rl.memories.transition_batch import TransitionBatch

CHOICE_NOISE = "network_noise_of_choice"
"""Key of the noise with which the online network chooses the next action."""


@parameter_class
class NoisyNet:
    """Exploration by noise in the layers behind a DQN's torso, whose scales are learned.

    The layers are those of `QNetworkParameters.streams` and the last one. Evaluations act with the
    mean weights.
    """

    initial_noise: NonNegative[float] = 0.5
    """sigma_0: standard deviations of weights and biases begin at this over the square root of the
    layer's inputs (section 3.2)."""
    policy: ExplorationPolicyParameters = field(default_factory=Greedy)
    """Choice by the values with noise; greedy in the paper."""

    def build(self, action_space: Space) -> AnyExplorationPolicy:
        """The choice by values with noise; SpaceError unless the space is Discrete."""
        if not isinstance(action_space, spaces.Discrete):
            raise SpaceError(
                f"NoisyNet explores by the action values of a DQN, not in {action_space}; for a "
                "Box take parameter_noise=ParameterNoise(), or an exploration policy of a Box"
            )
        return self.policy.build(action_space)


class NoisyRows(Saved):
    """Row state of a network with noise.

    Args:
        num_rows: N.
        size: E, the numbers of a draw.
        seed: Row i draws from the stream (seed, "network noise", i).
        actions: Row state of the exploration policy.
    """

    SAVED: ClassVar[SavedNames] = ("actions", "_generators")

    def __init__(self, *, num_rows: int, size: int, seed: int, actions: RowState) -> None:
        self.actions = actions
        self._size = size
        self._generators = [generator(seed, "network noise", row) for row in range(num_rows)]

    def draw(self, rows: IntArray) -> FloatArray:
        """The next noise f(e) of these rows, float32 [R, E]."""
        drawn = np.empty((len(rows), self._size), np.float32)
        for place, row in enumerate(rows.tolist()):
            self._generators[row].standard_normal(out=drawn[place], dtype=np.float32)
        return np.asarray(np.sign(drawn) * np.sqrt(np.abs(drawn)))


class NoisyPolicy(ActingPolicy[NoisyRows]):
    """Acts by a network with noise; where rows do not explore, by its mean weights.

    Args:
        network: The online network.
        device: Where it is.
        exploration: Turns action values into actions.
    """

    def __init__(
        self, network: NoisyQNetwork, device: torch.device, exploration: AnyExplorationPolicy
    ) -> None:
        super().__init__(torch_forward(network.advance, device), exploration)
        self._network = network

    @property
    def explores(self) -> bool:
        """True: its network has noise."""
        return True

    def new_rows(self, num_envs: int, seed: int) -> NoisyRows:
        return NoisyRows(
            num_rows=num_envs,
            size=self._network.noise_size,
            seed=seed,
            actions=self.exploration.new_rows(num_envs, seed),
        )

    def observed(self, row_state: NoisyRows, request: ActionRequest) -> Observation:
        """The observation with the noise of exploring rows, 0 for others; as it is for none."""
        explores = ~request.greedy
        if not explores.any():
            return request.observation
        noise = np.zeros((len(explores), self._network.noise_size), np.float32)
        noise[explores] = row_state.draw(request.rows[explores])
        return {**request.observation, NOISE: noise}

    def explore(
        self, row_state: NoisyRows, request: ActionRequest, outputs: FloatArray, clock: Clock
    ) -> Array:
        return self.exploration.explore(
            row_state.actions, request.rows, outputs, starts=request.starts, clock=clock
        )

    def metrics(self, clock: Clock) -> dict[str, float]:
        """The policy's, and the mean scale of the noise times the root of a layer's inputs."""
        layers = [each for each in self._network.modules() if isinstance(each, NoisyLinear)]
        scales = [each.weight_noise.abs().mean() * math.sqrt(each.inputs) for each in layers]
        return super().metrics(clock) | {
            "exploration/network_noise": float(torch.stack(scales).mean())
        }


class NoisyLearner(DQNLearner):
    """A network of action values with noise."""

    choosing: Mapping[str, str] = {"key": CHOICE_NOISE}

    def __init__(self, params: DQNAgentParameters, agent: OffPolicyAgent) -> None:
        settings = params.exploration
        assert isinstance(settings, NoisyNet), "the class that this learner is registered for"
        taken = sorted({NOISE, CHOICE_NOISE} & agent.observation_space.spaces.keys())
        if taken:
            raise SpaceError(
                f"agent '{params.name}' observes a '{taken[0]}', the name of its network's noise; "
                "give the observation key another name"
            )
        self.make_network = partial(NoisyQNetwork, initial_noise=settings.initial_noise)
        super().__init__(params, agent)
        module: Any = self.network.module
        if not module.noise_size:
            raise ConfigurationError(
                f"agent '{params.name}' explores by NoisyNet, and its network has no layer of ours "
                "behind the torso; set ModuleParameters.last_layer"
            )
        self._draw = partial(agent.noise, 3, module.noise_size)
        self.acting = NoisyPolicy(module, agent.device, self.acting.exploration)

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        return super().learn_from_batch(self.with_noise(batch))

    def with_noise(self, batch: TransitionBatch) -> TransitionBatch:
        """The batch with fresh noise [1, E] beside its observations."""
        own, judging, choosing = _scaled(self._draw()).unsqueeze(1)
        return batch._replace(
            observation={**batch.observation, NOISE: own},
            next_observation={**batch.next_observation, NOISE: judging, CHOICE_NOISE: choosing},
        )


def noisy_learner(params: DQNAgentParameters, agent: OffPolicyAgent) -> DQNLearner:
    """The learner of a DQN whose network has noise, by its action space.

    Raises:
        ConfigurationError: A variant for this kind of space has another network.
    """
    kind = learner_class(agent)
    has_usual_network = issubclass(kind, DQNLearner) and kind.make_network is QNetwork
    if not has_usual_network:
        raise ConfigurationError(
            f"agent '{params.name}' learns in {agent.action_space} by {kind.__name__}, whose "
            "network knows no noise; leave out NoisyNet, or derive it from DQNLearner with its "
            "QNetwork"
        )
    made: DQNLearner = type(f"Noisy{kind.__name__}", (NoisyLearner, kind), {})(params, agent)
    return made


@learners_of.register
def _(exploration: NoisyNet) -> MakeDQNLearner:  # noqa: ARG001 - its class chose the function
    return noisy_learner


def _scaled(noise: Tensor) -> Tensor:
    """f(e) = sign(e) sqrt(|e|) of standard normal numbers."""
    return noise.sign() * noise.abs().sqrt()
