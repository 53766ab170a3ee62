"""Diversity is all you need: skills found without any reward (DIAYN).

SAC whose reward is how well a discriminator predicts the active skill from the next state
(Eysenbach et al. 2018, arXiv:1802.06070). docs/skills.md lists every detail and its source.
"""

from collections.abc import Mapping
from dataclasses import field
from functools import partial

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.sac_agent import (
    SACAgentParameters,
    SACAlgorithmParameters,
    SACBatch,
    SACLearner,
)
from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.hidden_states import require_memoryless
from coach_rl.architectures.latent_network import LatentNetwork
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.observation_normaliser import Normalise, ObservationNormaliser
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.architectures.torso import AnyTorsoParameters, relu_torso
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import ConfigurationError, SpaceError, require
from coach_rl.core.options import OPTION_KEY, OptionSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative
from coach_rl.extensions.skills.skill_losses import discrimination, diversity_reward
from coach_rl.memories.replay_parameters import ReplayMemoryParameters
from coach_rl.memories.transition_batch import TransitionBatch


@parameter_class
class DiscriminatorParameters:
    """The network that predicts the skill, and its inputs."""

    key: str = "observation"
    """The observation key that it sees."""
    elements: NonEmpty[tuple[NonNegative[int], ...]] | None = None
    """The elements of the (flattened) key that it sees; None: all of them. Skills differ in nothing
    else: the paper shows an ant's discriminator its position alone."""
    torso: AnyTorsoParameters = field(default_factory=lambda: relu_torso(256, 256))
    """Its layers, as wide as those of actor and critics."""


@parameter_class
class DIAYNAgentParameters(SACAgentParameters):
    """An agent of a level with options, which become skills that differ in where they lead."""

    algorithm: SACAlgorithmParameters = field(
        default_factory=lambda: SACAlgorithmParameters(
            learn_temperature=False, initial_temperature=0.1
        )
    )
    """SAC's settings, with the fixed temperature of the paper."""
    discriminator: DiscriminatorParameters = field(default_factory=DiscriminatorParameters)
    """The network that predicts the skill."""
    discriminator_optimizer: OptimizerParameters = field(
        default_factory=lambda: AdamParameters(learning_rate=3e-4)
    )
    """Optimiser of the discriminator."""

    def __post_init__(self) -> None:
        memory = self.memory
        require(
            not isinstance(memory, ReplayMemoryParameters) or memory.n_step == 1,
            "DIAYNAgentParameters.memory.n_step must be 1: rewards are made when transitions are "
            "drawn",
        )

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; ConfigurationError unless its level has options that it alone rewards."""
        space = None if context.place.level is None else context.place.level.goal_space
        if not isinstance(space, OptionSpace) or space.count < 2:
            raise ConfigurationError(
                f"agent '{self.name}' discriminates between options, and needs a level with "
                f"goal_space=OptionSpace(count=K), K at least 2, got {space}"
            )
        if OPTION_KEY not in context.spaces.observation.spaces:
            raise ConfigurationError(
                f"agent '{self.name}' discriminates between options, and '{OPTION_KEY}' is not "
                f"among its observations {sorted(context.spaces.observation.spaces)}; let it "
                "observe that, and act for all options"
            )
        if space.rewards:
            raise ConfigurationError(
                f"agent '{self.name}' makes the rewards of options itself, and OptionSpace.rewards "
                f"has {len(space.rewards)} functions; leave them out, or use SACAgentParameters"
            )
        make_learner = partial(DIAYNLearner, self)
        discount = self.algorithm.discount
        agent = self.AGENT(self, context, discount=discount, make_learner=make_learner)
        if agent.stages.adds_to_reward:
            raise ConfigurationError(
                f"agent '{self.name}' makes its rewards itself, and a bonus adds to others, which "
                "it does not learn from; leave out the bonus"
            )
        return agent


class Discriminator(LatentNetwork):
    """q(z | s) as logits, [B, K]."""

    def __init__(
        self,
        params: DiscriminatorParameters,
        space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> None:
        part = space.spaces.get(params.key)
        if not isinstance(part, spaces.Box) or params.key == OPTION_KEY:
            observed = sorted(set(space.spaces) - {OPTION_KEY})
            raise SpaceError(
                f"the discriminator's key '{params.key}' is not a Box that the agent observes; "
                f"observed: {observed}; set discriminator.key"
            )
        low, high = part.low.reshape(-1), part.high.reshape(-1)
        elements = list(params.elements or range(len(low)))
        if max(elements) >= len(low):
            raise SpaceError(
                f"discriminator.elements {params.elements} do not all lie in observation "
                f"'{params.key}' of {len(low)} elements"
            )
        seen = spaces.Box(low[elements], high[elements], dtype=np.float32)
        normalise: nn.Module = nn.Identity()
        if normaliser is not None and params.key in normaliser.mean:
            seen = spaces.Box(-normaliser.clip, normaliser.clip, (len(elements),), np.float32)
            normalise = Normalise(normaliser, params.key)
        super().__init__(
            params.torso,
            key=params.key,
            space=seen,
            size=int(np.prod(space[OPTION_KEY].shape or ())),
            rng=rng,
        )
        self.normalise = normalise
        self.register_buffer("elements", torch.tensor(elements), persistent=False)

    def forward(self, observation: Mapping[str, Tensor]) -> Tensor:
        assert isinstance(self.elements, Tensor)
        normal: Tensor = self.normalise(observation[self.key])
        return super().forward({self.key: normal.flatten(1)[:, self.elements]})


class DIAYNLearner(SACLearner):
    """SAC, and a discriminator that makes its rewards.

    Args:
        params: The agent's parameters.
        agent: The agent that learns by it.
    """

    def __init__(self, params: DIAYNAgentParameters, agent: OffPolicyAgent) -> None:
        seen, _, weights_rng, normaliser = agent.network_arguments
        network = Discriminator(params.discriminator, seen, weights_rng, normaliser)
        require_memoryless((network,), "the discriminator")
        self.discriminator = NetworkWrapper(network, device=agent.device)
        objective: Objective[SACBatch] = Objective(
            name="discriminator",
            network=self.discriminator,
            loss=self.discriminator_loss,
            optimizer=params.discriminator_optimizer,
        )
        super().__init__(params, agent, more=(objective,))
        self.networks["discriminator"] = self.discriminator

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        with torch.no_grad():
            logits = self.discriminator.call(self.discriminator.online, batch.next_observation)
            reward = diversity_reward(logits, _skill(batch))
        return super().learn_from_batch(batch._replace(reward=reward))

    def discriminator_loss(
        self,
        flat: Tensor,
        noisy: SACBatch,
        scalars: Numbers,
    ) -> tuple[Tensor, Numbers]:
        """Cross-entropy of the skills given the states they led to; metrics of both networks."""
        batch = noisy.transitions
        logits = self.discriminator.call(flat, batch.next_observation)
        loss, metrics = discrimination(logits, _skill(batch), batch.mean)
        return loss, {**metrics, "diversity_reward": batch.mean(batch.reward)}


def _skill(batch: TransitionBatch) -> Tensor:
    """The numbers of the active skills, int64 [B]."""
    return batch.observation[OPTION_KEY].argmax(dim=1)
