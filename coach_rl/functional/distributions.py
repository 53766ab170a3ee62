"""The mathematics of action distributions, as functions of their parameters.

A distribution is described by one tensor of parameters [B, P]; the classes here are named groups of
pure functions of it, one group per kind of action space. Drawing actions is the acting side's
business: `coach_rl.exploration_policies.sampling`.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from torch import Tensor


class Distribution(Protocol):
    """A family of distributions over actions."""

    @property
    def parameter_size(self) -> int:
        """P, the parameters per action."""
        ...

    @property
    def log_std_size(self) -> int:
        """The number of log standard deviations, the last of them."""
        ...

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Log-probability (density) of actions, [B]."""
        ...

    def entropy(self, parameters: Tensor) -> Tensor:
        """Entropy in nats, [B]."""
        ...

    def kl(self, old: Tensor, new: Tensor) -> Tensor:
        """Kullback-Leibler divergence of `new` from `old`, KL(old || new), [B]."""
        ...


@dataclass(frozen=True)
class Categorical:
    """A choice among `size` actions; parameters are logits [B, size], actions int64 [B]."""

    size: int
    log_std_size: ClassVar[int] = 0

    @property
    def parameter_size(self) -> int:
        """One logit per action."""
        return self.size

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        log_prob = parameters.log_softmax(dim=-1)
        return log_prob.gather(-1, action.unsqueeze(-1)).squeeze(-1)

    def entropy(self, parameters: Tensor) -> Tensor:
        log_prob = parameters.log_softmax(dim=-1)
        return -(log_prob.exp() * log_prob).sum(dim=-1)

    def kl(self, old: Tensor, new: Tensor) -> Tensor:
        old_log_prob, new_log_prob = old.log_softmax(dim=-1), new.log_softmax(dim=-1)
        return (old_log_prob.exp() * (old_log_prob - new_log_prob)).sum(dim=-1)
