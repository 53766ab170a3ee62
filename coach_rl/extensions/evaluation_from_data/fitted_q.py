"""Fitted Q evaluation: a model of a policy's action values, from data (Le et al. 2019).

Q(s, a) is regressed on r + gamma sum_a' pi(a'|s') Q(s', a') (arXiv:1903.08738, algorithm 3; Ernst
et al. 2005 for the greedy policy), without the second term where an episode terminated. Where it
was cut off, the model continues.

There are two models: a network, and one that is linear in the observation, for each action of its
own, which is exact where observations are one-hot.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.architectures.continuous_control import CriticParameters, Critics
from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.architectures.optimizers import TargetSync
from coach_rl.architectures.torso import relu_torso
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.discrete_actions import choice_sizes, first_action
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.random_actions import uniform_size
from coach_rl.core.records import Array, FloatArray, IntArray, take
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import Space
from coach_rl.extensions.data.action_probabilities import has_numbers
from coach_rl.extensions.evaluation_from_data.judged_policy import JudgedData

ModelName = Literal["network", "linear"]
UPDATES = 5_000
"""Gradient updates of a network."""
BATCH = 256
"""Transitions of each."""
RIDGE = 1e-8
"""Weight of the penalty on squared coefficients of a linear model."""
_CPU = torch.device("cpu")

Values = Callable[[IntArray], tuple[FloatArray, FloatArray]]
"""A fitted model: from places in the data [M] to values of the policy there [M], and of the
actions that the data have there [M], 0 behind the ends of episodes."""


class FittingBatch(NamedTuple):
    """Transitions that a network is fitted to."""

    observation: dict[str, Tensor]
    """[B, ...] each."""
    action: Tensor
    """[B, A]."""
    reward: Tensor
    """[B], in the network's unit, with what its mean adds."""
    discount: Tensor
    """[B]; 0 where the episode terminated."""
    next_observation: dict[str, Tensor]
    """[B, ...] each."""
    next_actions: Tensor
    """Actions of the policy, [B, K, A]."""
    next_chances: Tensor
    """Their weights, [B, K]."""


def linear_coefficients(
    features: FloatArray,
    following: FloatArray,
    rewards: FloatArray,
    *,
    discount: float,
) -> FloatArray:
    """The fixed point of fitted Q evaluation with a linear model, [F].

    w solves phi^T (phi - gamma phi') w = phi^T r, where regressing on r + gamma phi' w gives w.

    Args:
        features: Of observations and actions, phi [N, F].
        following: Expected features of what came next, phi' [N, F]; 0 where it terminated.
        rewards: [N].
        discount: Gamma.
    """
    count = len(features)
    matrix = features.T @ (features - discount * following) / count
    matrix = matrix + RIDGE * np.eye(features.shape[1])
    return np.asarray(np.linalg.solve(matrix, features.T @ rewards / count))


def fitted_linear(data: JudgedData, among: IntArray, *, discount: float) -> Values:
    """A linear model, of observations as they are and a constant, for each action of its own.

    Args:
        data: The data.
        among: The transitions that it is fitted to.
        discount: Gamma.

    Raises:
        ConfigurationError: Actions, or parts of them, lie in a Box.
    """
    if has_numbers(data.action_space):
        raise ConfigurationError(
            f"a linear model has coefficients for each action, and the policy acts in "
            f"{data.action_space}; fit a network"
        )
    flat = [values.reshape(len(values), -1) for values in data.observation.values()]
    constant = np.ones((len(flat[0]), 1))
    seen = np.concatenate([*flat, constant], axis=1, dtype=np.float64)  # [N + E, O + 1]
    taken = coded(data.taken, data.action_space)  # [N, A]
    expected = np.zeros((len(seen), taken.shape[1]))  # [N + E, A]
    for begin in range(0, len(seen), BATCH):
        part = slice(begin, begin + BATCH)
        acted = coded(data.actions[part], data.action_space)
        expected[part] = np.einsum("mka,mk->ma", acted, data.chances[part])

    def features(places: IntArray, action: FloatArray) -> FloatArray:
        products = np.einsum("mo,ma->moa", seen[places], action)
        return np.asarray(products.reshape(len(places), seen.shape[1] * action.shape[1]))

    after = data.following[among]
    coefficients = linear_coefficients(
        features(among, taken[among]),
        np.where(data.continues[among, None], features(after, expected[after]), 0.0),
        data.rewards[among],
        discount=discount,
    )

    def values(places: IntArray) -> tuple[FloatArray, FloatArray]:
        inside = places < len(taken)
        own = taken[np.where(inside, places, 0)] * inside[:, None]
        return (
            features(places, expected[places]) @ coefficients,
            features(places, own) @ coefficients,
        )

    return values


def fitted_network(
    data: JudgedData,
    among: IntArray,
    *,
    discount: float,
    seed: int,
    updates: int = UPDATES,
) -> Values:
    """A network of two layers of 64, whose target follows it slowly.

    Args:
        data: The data.
        among: The transitions that it is fitted to.
        discount: Gamma.
        seed: For its weights and batches.
        updates: Gradient updates.

    Raises:
        DivergedError: Its numbers are no longer finite.
    """
    taken = coded(data.taken, data.action_space).astype(np.float32)
    unit = _unit_of_returns(data, discount)
    normaliser = ObservationNormaliser(data.observation_space, clip=10.0, device=_CPU)
    normaliser.update(take(data.observation, among))
    weights = torch.Generator().manual_seed(integer_seed(seed, "fitted q", "weights"))
    critic = Critics(
        CriticParameters(torso=relu_torso(64, 64)),
        data.observation_space,
        _box_around(taken, data),
        weights,
        normaliser,
    )
    network = NetworkWrapper(critic, device=_CPU, with_target=True)

    def loss(flat: Tensor, batch: FittingBatch, scalars: Numbers) -> tuple[Tensor, Numbers]:  # noqa: ARG001 - of all losses
        with torch.no_grad():
            after = _expected(network, network.target, batch)
            ahead = torch.where(batch.discount > 0, batch.discount * after, 0.0)
            target = batch.reward + ahead
        values = network.call(flat, batch.observation, batch.action)[0]
        error = (values - target).square().mean()
        return error, {"fitting_loss": error}

    engine = UpdateEngine(
        (Objective(network=network, loss=loss, optimizer=AdamParameters(learning_rate=1e-3)),),
        targets=((network, TargetSync(rate=0.02)),),
        owner="fitted Q evaluation",
    )
    rng = np.random.default_rng(integer_seed(seed, "fitted q", "batches"))
    for _ in range(updates):
        here = among[rng.integers(0, len(among), BATCH)]
        engine.step(_batch(data, here, taken, discount, unit))
    engine.require_finite()

    mean, std = unit

    def values(places: IntArray) -> tuple[FloatArray, FloatArray]:
        of_policy = np.zeros(len(places))
        of_data = np.zeros(len(places))
        for begin in range(0, len(places), 4 * BATCH):
            part = slice(begin, begin + 4 * BATCH)
            here = places[part]
            seen = _tensors(take(data.observation, here))
            inside = here < len(taken)
            with torch.inference_mode():
                of_policy[part] = _of_actions(
                    network, network.online, seen, _acted(data, here), data.chances[here]
                )
                own = network.call(
                    network.online, seen, torch.from_numpy(taken[np.where(inside, here, 0)])
                )
                of_data[part] = own[0].numpy()
        return of_policy * std + mean, (of_data * std + mean) * (places < len(taken))

    return values


def coded(actions: Array, space: Space) -> FloatArray:
    """Actions [..., A] as numbers: those of a Box as they are, of choices one-hot side by side."""
    if isinstance(space, spaces.Box):
        return actions.astype(np.float64)
    if isinstance(space, spaces.Tuple):  # mixed actions: its parts side by side
        ends = np.cumsum([uniform_size(part) for part in space.spaces])[:-1]
        split = zip(np.split(actions, ends, axis=-1), space.spaces, strict=True)
        return np.concatenate([coded(own, part) for own, part in split], axis=-1)
    sizes = choice_sizes(space)
    before = actions.shape[: actions.ndim - len(space.shape or ())]
    numbers = np.asarray(actions - first_action(space), np.int64).reshape(*before, len(sizes))
    parts = [np.eye(size)[numbers[..., choice]] for choice, size in enumerate(sizes)]
    return np.concatenate(parts, axis=-1)


def _acted(data: JudgedData, places: IntArray) -> Array:
    """The policy's actions in places [M] as numbers, [M, K, A] float32."""
    return coded(data.actions[places], data.action_space).astype(np.float32)


def _unit_of_returns(data: JudgedData, discount: float) -> tuple[float, float]:
    """Mean and standard deviation of the data's returns from each decision on."""
    rewards = data.padded(data.rewards)
    returns = np.zeros_like(rewards)
    ahead = np.zeros(len(rewards))
    for step in reversed(range(rewards.shape[1])):
        ahead = rewards[:, step] + discount * ahead
        returns[:, step] = ahead
    known = returns[data.padded(np.ones(len(data.recorded))) > 0]
    return float(known.mean()), float(known.std()) or 1.0


def _box_around(taken: Array, data: JudgedData) -> spaces.Box:
    """A Box with the actions of data and policy; the policy's own, or [0, 1] of choices.

    Args:
        taken: The actions of the data as numbers, [N, A].
        data: The data.
    """
    space = data.action_space
    size = taken.shape[-1]
    if not has_numbers(space):
        return spaces.Box(0.0, 1.0, (size,), np.float32)
    if isinstance(space, spaces.Box) and space.is_bounded():
        return space
    acted = _acted(data, np.arange(len(data.actions))).reshape(-1, size)
    low = np.minimum(taken.min(axis=0), acted.min(axis=0))
    high = np.maximum(taken.max(axis=0), acted.max(axis=0))
    return spaces.Box(low, np.maximum(high, low + 1e-3), dtype=np.float32)


def _batch(
    data: JudgedData,
    here: IntArray,
    taken: Array,
    discount: float,
    unit: tuple[float, float],
) -> FittingBatch:
    """A batch; the network is to give (Q - mean) / std, whose target follows from that of Q."""
    mean, std = unit
    after = data.following[here]
    discounts = discount * data.continues[here]
    return FittingBatch(
        observation=_tensors(take(data.observation, here)),
        action=torch.from_numpy(taken[here]),
        reward=_float((data.rewards[here] + discounts * mean - mean) / std),
        discount=_float(discounts),
        next_observation=_tensors(take(data.observation, after)),
        next_actions=torch.from_numpy(_acted(data, after)),
        next_chances=_float(data.chances[after]),
    )


def _expected(network: NetworkWrapper, flat: Tensor, batch: FittingBatch) -> Tensor:
    """The policy's values of next observations, [B]."""
    size = batch.next_chances.shape[1]
    seen = {key: each.repeat_interleave(size, 0) for key, each in batch.next_observation.items()}
    values: Tensor = network.call(flat, seen, batch.next_actions.flatten(0, 1))[0]
    return (values.view(-1, size) * batch.next_chances).sum(dim=1)


def _of_actions(
    network: NetworkWrapper,
    flat: Tensor,
    seen: dict[str, Tensor],
    actions: Array,
    chances: FloatArray,
) -> FloatArray:
    """The policy's values of observations, [M], by its actions [M, K, A] and their weights."""
    size = chances.shape[1]
    repeated = {key: each.repeat_interleave(size, 0) for key, each in seen.items()}
    values = network.call(flat, repeated, torch.from_numpy(actions).flatten(0, 1))[0]
    return np.asarray((values.view(-1, size).numpy() * chances).sum(axis=1))


def _tensors(arrays: dict[str, Array]) -> dict[str, Tensor]:
    return {key: torch.from_numpy(values) for key, values in arrays.items()}


def _float(numbers: FloatArray) -> Tensor:
    return torch.from_numpy(numbers.astype(np.float32))
