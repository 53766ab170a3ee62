"""PPO once more, as the papers write it down: slow, one row after the other, in double precision.

Schulman et al. 2017 (arXiv:1707.06347, "PPO") and Schulman et al. 2016 (arXiv:1506.02438, "GAE").
Distributions and Adam are torch's own; nothing comes from `coach_rl` but the settings, the action
space, the first weights and the seed of the shuffle.
"""

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from plain_recurrence import CELLS
from torch import Tensor, nn
from torch.distributions import Categorical, Independent, Normal, kl_divergence
from torch.nn.functional import linear

from coach_rl.extensions.mixed_actions import MixedSpace


class PlainActorCritic:
    """Tanh layers, then a linear policy and a linear value; parameters by the names of the agent's.

    A policy of a Box has a mean that depends on the state and a deviation that does not (PPO,
    section 6.1). What an observation has beyond its first numbers is a mask of allowed actions.
    """

    SEEN = 3
    """Numbers of an observation that the networks see."""

    def __init__(self, named: dict[str, Tensor], action_space: spaces.Space) -> None:
        self.named = {name: nn.Parameter(value.double()) for name, value in named.items()}
        self.action_space = action_space
        is_shared = not any(name.startswith("critic_torso") for name in named)
        self.critic_torso = "actor_torso" if is_shared else "critic_torso"

    def parameters(self) -> list[Tensor]:
        return list(self.named.values())

    def layer(self, name: str, values: Tensor) -> Tensor:
        return linear(values, self.named[f"{name}.weight"], self.named[f"{name}.bias"])

    def features(self, torso: str, observation: Tensor) -> Tensor:
        first = torch.tanh(self.layer(f"{torso}.middleware.0", self.inputs(torso, observation)))
        return torch.tanh(self.layer(f"{torso}.middleware.2", first))

    def inputs(self, torso: str, observation: Tensor) -> Tensor:
        """What the dense layers get, [B, I]."""
        return observation[:, : self.SEEN]

    def masks(self, observation: Tensor) -> Tensor:
        """The masks, [B, M]; M is 0 where there are none."""
        return observation[:, self.SEEN :] > 0

    def value(self, observation: Tensor) -> Tensor:
        """[B]."""
        return self.layer("value_head", self.features(self.critic_torso, observation))[:, 0]

    def policy(self, observation: Tensor) -> "Policy":
        numbers = self.layer("policy_head", self.features("actor_torso", observation))
        if (mask := self.masks(observation)).shape[1]:
            logits, others = numbers.tensor_split([mask.shape[1]], dim=1)
            numbers = torch.cat([torch.where(mask, logits, -torch.inf), others], dim=1)
        match self.action_space:
            case spaces.Box():
                return Policy([Independent(Normal(numbers, self.named["log_std"].exp()), 1)])
            case spaces.Discrete():
                return Policy([Categorical(logits=numbers)])
            case MixedSpace(choices=discrete, groups=groups):
                sizes = [*discrete.nvec.tolist(), *(size for size, _ in groups)]
                pieces, count = numbers.split(sizes, dim=1), len(discrete.nvec)
                spread = self.named["log_std"].exp().split(sizes[count:])
                normals = zip(pieces[count:], spread, strict=True)
                parts = [Categorical(logits=logits) for logits in pieces[:count]]
                parts += [
                    Independent(Normal(mean, std.expand_as(mean)), 1) for mean, std in normals
                ]
                return Policy(parts, [None] * count + [owner for _, owner in groups])
        choices = numbers.split(self.action_space.nvec.tolist(), dim=1)
        return Policy([Categorical(logits=logits) for logits in choices])


@dataclass
class Policy:
    """Independent distributions: one, or one for each part of an action."""

    parts: list[torch.distributions.Distribution]
    owners: list[tuple[int, int] | None] | None = None
    """The choice, and its value, that each part is an argument of."""

    def log_prob(self, action: Tensor) -> Tensor:
        if len(self.parts) == 1:
            return self.parts[0].log_prob(action)
        total, at = 0, 0
        for part, owner in zip(self.parts, self.owners or [None] * len(self.parts), strict=True):
            if isinstance(part, Categorical):
                taken, at = action[:, at], at + 1
            else:
                size = part.event_shape[0]
                taken, at = action[:, at : at + size], at + size
            counts = 1 if owner is None else action[:, owner[0]] == owner[1]
            total = total + counts * part.log_prob(taken)
        return total

    def entropy(self) -> Tensor:
        return self.expected([part.entropy() for part in self.parts])

    def expected(self, terms: list[Tensor]) -> Tensor:
        """The sum of the parts' terms, those of arguments as often as their choice is made."""
        total = 0
        for term, owner in zip(terms, self.owners or [None] * len(terms), strict=True):
            total = total + (term if owner is None else term * self.chance(*owner))
        return total

    def chance(self, choice: int, value: int) -> Tensor:
        return self.parts[choice].probs[:, value]


def kl(old: Policy, new: Policy) -> Tensor:
    """KL(old || new), [B]."""
    return old.expected([kl_divergence(a, b) for a, b in zip(old.parts, new.parts, strict=True)])


@dataclass
class Step:
    """A decision and what came of it."""

    row: int
    observation: np.ndarray
    action: np.ndarray
    """As drawn, counted from the space's first action."""
    log_prob: Tensor
    """Under the policy that acted."""
    acted: PlainActorCritic
    """The networks that acted."""
    reward: float = 0.0
    next_observation: np.ndarray | None = None
    terminated: bool = False
    truncated: bool = False
    duration: int = 1
    begins: bool = False
    """The agent's episode begins here."""
    state: dict[str, Tensor] | None = None
    """Of recurrent networks: the hidden state it was decided in, [H] by torso."""


class PlainPPO:
    """Takes in the same decisions as a new `PPOAgent`, and learns from them as it should."""

    kind = PlainActorCritic

    def __init__(self, agent) -> None:
        self.settings = agent.params.algorithm
        self.max_gradient_norm = agent.params.optimizer.max_gradient_norm
        named = agent.network.named(agent.network.online)
        self.model = self.kind(named, agent.action_space)
        self.first_action = getattr(agent.action_space, "start", 0)
        optimizer = agent.params.optimizer
        self.adam = torch.optim.Adam(
            self.model.parameters(), optimizer.learning_rate, optimizer.betas, optimizer.epsilon
        )
        self.shuffle = copy.deepcopy(agent.shuffle)
        self.kl_coefficient = self.settings.initial_kl_coefficient
        self.targets_so_far = []
        self.rollout: list[Step] = []
        self.frozen = copy.deepcopy(self.model)

    def decide(self, row: int, observation, action) -> Step:
        """A decision under today's policy."""
        counted = np.asarray(action) - self.first_action
        step = Step(row, observation, counted, torch.zeros(()), self.frozen)
        with torch.no_grad():
            policy = self.model.policy(self.seen([step]))
            step.log_prob = policy.log_prob(torch.from_numpy(counted[None]))[0]
        return step

    def begin(self, row: int, *, reset: bool) -> None:
        """A row is about to decide, for the first time in its episode if `reset`."""

    def pass_over(self, row: int, observation) -> None:
        """A row decides at random."""

    def seen(self, steps: list[Step]):
        """What the networks get when these decisions are made."""
        return doubles([step.observation for step in steps])

    def seen_after(self, steps: list[Step]):
        """What the networks get after them."""
        return doubles([step.next_observation for step in steps])

    def learned_from(self, steps: list[Step]):
        """What the networks get when they learn from these decisions of the rollout."""
        return self.seen(steps)

    def minibatches(self) -> list[list[int]]:
        """Numbers of the decisions of each gradient step of an epoch."""
        size = min(self.settings.minibatch, self.settings.rollout.count)
        order = self.shuffle.permutation(len(self.rollout)).tolist()
        return [order[at : at + size] for at in range(0, len(order) - size + 1, size)]

    def learn(self) -> dict[str, float]:
        """A round of updates on the rollout, which is empty afterwards; means of its metrics."""
        settings = self.settings
        action = torch.from_numpy(np.array([step.action for step in self.rollout]))
        old_log_prob = torch.stack([step.log_prob for step in self.rollout])
        said = []
        for epoch in range(settings.epochs):
            if epoch == 0 or settings.recompute_advantages:
                old_value, advantage, target = self.estimates()
            if epoch == 0:
                explained = 1 - float((target - old_value).var() / target.var())
            of_epoch = []
            for chosen in self.minibatches():
                steps = [self.rollout[number] for number in chosen]
                of_epoch.append(
                    self.gradient_step(
                        self.learned_from(steps),
                        action[chosen],
                        old_log_prob[chosen],
                        steps,
                        advantage[chosen],
                        old_value[chosen],
                        target[chosen],
                    )
                )
            said += of_epoch
            limit = settings.stop_at_kl
            if limit is not None and np.mean([each["approx_kl"] for each in of_epoch]) > limit:
                break
        metrics = {name: float(np.mean([each[name] for each in said])) for name in said[0]}
        metrics["explained_variance"] = explained
        if settings.objective == "kl":
            metrics["kl_coefficient"] = self.adapt()
        self.rollout = []
        self.frozen = copy.deepcopy(self.model)
        return metrics

    def estimates(self) -> tuple[Tensor, Tensor, Tensor]:
        """Values in the critic's scale, advantages, and targets in the critic's scale, [M] each.

        GAE, equation 16: A_t is the sum over l of (gamma lambda)^l delta_{t+l}, with delta_t =
        r_t + gamma V(s_{t+1}) - V(s_t). V(s_{t+1}) is 0 behind a termination, and the sum ends
        with an episode and with the rollout.
        """
        settings, scale = self.settings, self.scale()
        with torch.no_grad():
            value = self.model.value(self.seen(self.rollout))
            after = self.model.value(self.seen_after(self.rollout))
        advantage = torch.zeros(len(self.rollout), dtype=torch.float64)
        for row in {step.row for step in self.rollout}:
            following = 0.0
            for number in reversed(range(len(self.rollout))):
                step = self.rollout[number]
                if step.row != row:
                    continue
                gamma = settings.discount
                if settings.discount_by_duration:
                    gamma = settings.discount**step.duration
                next_value = 0.0 if step.terminated else scale * float(after[number])
                delta = step.reward + gamma * next_value - scale * float(value[number])
                if step.terminated or step.truncated:
                    following = 0.0
                following = delta + gamma * settings.gae_lambda * following
                advantage[number] = following
        target = advantage + scale * value
        self.targets_so_far += target.tolist()
        return value, advantage, target / scale

    def scale(self) -> float:
        """What the critic's outputs are multiplied with to be returns (docs/algorithms/ppo.md)."""
        if not self.settings.scale_returns or not self.targets_so_far:
            return 1.0
        return math.sqrt(np.var(self.targets_so_far) + 1e-8)

    def gradient_step(
        self, observation, action, old_log_prob, steps, advantage, old_value, target
    ) -> dict[str, float]:
        """Ascend equation 9 of PPO, whose first term is equation 7 or 8."""
        settings = self.settings
        if settings.normalise_advantage:
            advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
        policy = self.model.policy(observation)
        log_ratio = policy.log_prob(action) - old_log_prob
        ratio = log_ratio.exp()
        if settings.objective == "clip":
            clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
            surrogate = torch.min(ratio * advantage, clipped * advantage).mean()
            divergence = (ratio - 1 - log_ratio).mean()
            outside = ((ratio < 1 - settings.clip) | (ratio > 1 + settings.clip)).double().mean()
        else:
            divergence = kl(self.acting_policy(steps), policy).mean()
            surrogate = (ratio * advantage).mean() - self.kl_coefficient * divergence
            outside = torch.zeros(())
        value = self.model.value(observation)
        error = (value - target) ** 2
        if settings.value_clip is not None:
            near = value.clamp(old_value - settings.value_clip, old_value + settings.value_clip)
            error = torch.max(error, (near - target) ** 2)
        value_loss, entropy = error.mean() / 2, policy.entropy().mean()
        objective = (
            surrogate
            - settings.value_coefficient * value_loss
            + settings.entropy_coefficient * entropy
        )
        self.adam.zero_grad()
        (-objective).backward()
        limit = self.max_gradient_norm or math.inf
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), limit)
        self.adam.step()
        return {
            "policy_loss": -surrogate.item(),
            "value_loss": value_loss.item(),
            "entropy": entropy.item(),
            "approx_kl": divergence.item(),
            "clip_fraction": outside.item(),
            "gradient_norm": norm.item(),
        }

    def adapt(self) -> float:
        """The next beta, by the divergence after the round (PPO, section 4)."""
        with torch.no_grad():
            new = self.model.policy(self.learned_from(self.rollout))
            divergence = kl(self.acting_policy(self.rollout), new).mean()
        if divergence < self.settings.kl_target / 1.5:
            self.kl_coefficient /= 2
        elif divergence > self.settings.kl_target * 1.5:
            self.kl_coefficient *= 2
        return self.kl_coefficient

    def acting_policy(self, steps: list[Step]) -> Policy:
        """The distributions that each of these decisions was drawn from."""
        with torch.no_grad():
            policies = [step.acted.policy(self.seen([step])) for step in steps]
            each = [policy.parts for policy in policies]
        joined = []
        for parts in zip(*each, strict=True):
            if isinstance(parts[0], Categorical):
                joined.append(Categorical(logits=torch.cat([part.logits for part in parts])))
            else:
                mean = torch.cat([part.base_dist.loc for part in parts])
                deviation = torch.cat([part.base_dist.scale for part in parts])
                joined.append(Independent(Normal(mean, deviation), 1))
        return Policy(joined, policies[0].owners)


class RecurrentActorCritic(PlainActorCritic):
    """The same behind a recurrent layer, on histories: a state by torso and what is seen since."""

    @property
    def torsos(self) -> set[str]:
        return {"actor_torso", self.critic_torso}

    def inputs(self, torso: str, histories: list) -> Tensor:
        return torch.stack([self.outputs(torso, *history) for history in histories])

    def masks(self, histories: list) -> Tensor:
        return doubles([observations[-1][self.SEEN :] for _, observations in histories]) > 0

    def outputs(self, torso: str, states: dict[str, Tensor], observations: list) -> Tensor:
        state = states[torso]
        for observation in observations:
            seen = torch.from_numpy(observation[: self.SEEN]).double()
            output, state = self.cell(torso, seen, state)
        return output

    def state_size(self, torso: str) -> int:
        weights = self.of_cell(torso)
        if "gate.bias" in weights:
            return len(weights["gate.bias"])
        if "bias" in weights:
            return (weights["bias"].shape[1] - 1) * weights["query.weight"].shape[1] + 1
        size = weights["weight_hh"].shape[1]
        return 2 * size if len(weights["weight_hh"]) == 4 * size else size

    def of_cell(self, torso: str) -> dict[str, Tensor]:
        prefix = f"{torso}.embedder.recurrence.cell."
        return {
            name.removeprefix(prefix): value
            for name, value in self.named.items()
            if name.startswith(prefix)
        }

    def cell(self, torso: str, seen: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Output and state after an observation, as the papers of the layers write it."""
        weights = self.of_cell(torso)
        if "gate.bias" in weights:  # Feng et al. 2024, section 3.1
            z = torch.sigmoid(weights["gate.weight"] @ seen + weights["gate.bias"])
            new = weights["candidate.weight"] @ seen + weights["candidate.bias"]
            after = (1 - z) * state + z * new
            return after, after
        if "bias" in weights:
            return self.attended(weights, seen, state)
        gates = len(weights["bias_hh"]) // weights["weight_hh"].shape[1]
        return CELLS[gates](weights, seen, state)

    def attended(self, weights, seen: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Attention over the inputs that are known, head by head."""
        heads, window = weights["bias"].shape
        known = int(state[-1])
        past = state[:-1].view(window - 1, len(seen))
        inputs = torch.cat([past[window - 1 - known :], seen[None]])
        query, keys, values = (
            each @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
            for name, each in (("query", seen), ("key", inputs), ("value", inputs))
        )
        size = len(query) // heads
        found = []
        for head in range(heads):
            own = slice(head * size, (head + 1) * size)
            score = keys[:, own] @ query[own] / size**0.5
            weight = (score + weights["bias"][head, window - len(inputs) :]).softmax(dim=0)
            found.append(weight @ values[:, own])
        output = weights["whole.weight"] @ torch.cat(found) + weights["whole.bias"]
        kept = torch.cat([past[1:], seen[None]]).flatten()
        return output, torch.cat([kept, torch.tensor([min(known + 1.0, window - 1)])])


class RecurrentPPO(PlainPPO):
    """PPO with recurrent networks: each decision is learned from by passing over its sequence."""

    kind = RecurrentActorCritic

    def __init__(self, agent) -> None:
        super().__init__(agent)
        self.states: dict[int, dict[str, Tensor]] = {}
        self.cut: set[int] = set()  # rows whose next decision follows on none
        self.place: dict[int, list[Step]] = {}  # by id of a step, the sequence up to it

    def begin(self, row: int, *, reset: bool) -> None:
        if reset:
            sizes = {torso: self.model.state_size(torso) for torso in self.model.torsos}
            self.states[row] = {
                torso: torch.zeros(size, dtype=torch.float64) for torso, size in sizes.items()
            }
            self.cut.add(row)

    def pass_over(self, row: int, observation) -> None:
        self.advance(row, observation)
        self.cut.add(row)

    def decide(self, row: int, observation, action) -> Step:
        step = super().decide(row, observation, action)
        step.begins = row in self.cut
        self.cut.discard(row)
        self.advance(row, observation)
        return step

    def advance(self, row: int, observation) -> None:
        seen = torch.from_numpy(observation[: self.model.SEEN]).double()
        with torch.no_grad():
            self.states[row] = {
                torso: self.model.cell(torso, seen, state)[1]
                for torso, state in self.states[row].items()
            }

    def seen(self, steps: list[Step]) -> list:
        for step in steps:
            if step.state is None:
                step.state = self.states[step.row]
        return [(step.state, [step.observation]) for step in steps]

    def seen_after(self, steps: list[Step]) -> list:
        """In the state that the row's next decision is made in, as long as it is known."""
        after = []
        for number, step in enumerate(steps):
            later = (each for each in steps[number + 1 :] if each.row == step.row)
            following = next(later, None)
            if step.truncated or step.terminated or following is None or following.begins:
                after.append((step.state, [step.observation, step.next_observation]))
            else:
                after.append((following.state, [step.next_observation]))
        return after

    def learned_from(self, steps: list[Step]) -> list:
        sequences = [self.place[id(step)] for step in steps]
        return [(each[0].state, [step.observation for step in each]) for each in sequences]

    def minibatches(self) -> list[list[int]]:
        numbers = {id(step): number for number, step in enumerate(self.rollout)}
        sequences: list[list[Step]] = []
        for row in sorted({step.row for step in self.rollout}):
            before = None
            for step in (step for step in self.rollout if step.row == row):
                is_cut = before is None or before.terminated or before.truncated or step.begins
                if is_cut or len(sequences[-1]) == self.settings.sequence:
                    sequences.append([])
                sequences[-1].append(step)
                self.place[id(step)] = list(sequences[-1])
                before = step
        wanted = min(self.settings.minibatch, self.settings.rollout.count)
        size = max(1, round(wanted * len(sequences) / len(self.rollout)))
        order = self.shuffle.permutation(len(sequences)).tolist()
        return [
            [numbers[id(step)] for place in order[at : at + size] for step in sequences[place]]
            for at in range(0, len(order) - size + 1, size)
        ]


def doubles(rows: list) -> Tensor:
    return torch.from_numpy(np.array(rows, np.float64))
