"""The message about a gradient step that is not sound: what broke, and what may help."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from coach_rl.architectures.gradient_step import JUDGED
from coach_rl.architectures.network_wrapper import NetworkWrapper

ADVICE = (
    "Lower the learning rate, scale the rewards down with a reward filter, or clip gradients "
    "(max_gradient_norm), and start a new run"
)


PAY = ("reward", "target")
"""Columns of a batch by which the scale of rewards is seen; reported first."""


MOST_COLUMNS = 4
"""Columns of the last batch that are reported."""


@dataclass(frozen=True, kw_only=True)
class Learner:
    """A network and how it is trained."""

    name: str
    """Name of its objective; empty if there is only one."""
    network: NetworkWrapper
    learning_rate: float
    """Current learning rate."""
    max_gradient_norm: float | None
    """None never clips."""


def diagnosis(
    owner: str,
    *,
    faults: Mapping[str, tuple[int, float]],
    learners: Sequence[Learner],
    batch: Mapping[str, Tensor],
    answer: float | None = None,
    skipped: int = 0,
) -> str:
    """One line: the first number that was not finite, what else is not, how it learns, advice.

    Args:
        owner: Whose networks they are, e.g. "agent 'ppo' of level 'main'".
        faults: Metrics that were not finite: gradient step and value, the first one first.
        learners: All networks.
        batch: The last batch it learned from, by column; empty before the first.
        answer: An output of a network that is not finite; None where none was evaluated.
        skipped: Gradient steps in a row that have been skipped for such numbers.
    """
    found = []
    for metric, (step, value) in list(faults.items())[:1]:
        name = metric.removeprefix(JUDGED)
        found.append(f"at gradient step {step:,} its {name} was {value}, the first such number")
    if skipped:
        found.append(f"steps skipped in a row: {skipped:,}")
    broken = [each for each in learners if not torch.isfinite(each.network.online).all()]
    found += [_broken(each) for each in broken]
    if answer is not None:
        sound = "" if broken else " though its parameters are finite"
        found.append(f"its network answers {answer}{sound}")
    circumstances = [*(_settings(each) for each in learners), *_columns(batch)]
    return f"{owner} has diverged: {'; '.join(found)}. {'; '.join(circumstances)}. {ADVICE}"


def _broken(learner: Learner) -> str:
    network = learner.network
    bad = int((~torch.isfinite(network.online)).sum())
    first = next(
        name
        for name, values in network.named(network.online).items()
        if not torch.isfinite(values).all()
    )
    of = f" of {learner.name}" if learner.name else ""
    return f"{bad} of {network.size} parameters{of} are not finite, '{first}' among them"


def _settings(learner: Learner) -> str:
    norm = learner.max_gradient_norm
    name = f"{learner.name}'s learning rate" if learner.name else "Learning rate"
    clips = "not clipped" if norm is None else f"clipped at {norm:g}"
    return f"{name} {learner.learning_rate:g}, gradients {clips}"


def _columns(batch: Mapping[str, Tensor]) -> list[str]:
    """The largest absolute number of some columns: those of rewards, then the largest ones."""
    largest = {
        name: float(column.abs().max())
        for name, column in batch.items()
        if column.is_floating_point() and column.numel()
    }
    size = {name: math.inf if math.isnan(number) else number for name, number in largest.items()}
    names = sorted(largest, key=lambda name: (name.rpartition("/")[2] not in PAY, -size[name]))
    held = ", ".join(f"{name} up to {largest[name]:g}" for name in names[:MOST_COLUMNS])
    return [f"the last batch held {held}"] if held else []
