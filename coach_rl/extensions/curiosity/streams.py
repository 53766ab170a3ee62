"""Streams of reward beside that of a level, each with returns and a critic of its own."""

from typing import Any

import torch
from torch import Tensor

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, UnitInterval
from coach_rl.functional.advantages import advantages_of_rows
from coach_rl.memories.batches import Rollout


@parameter_class
class RewardStream:
    """A stream of reward of which PPO learns the returns by themselves.

    Its advantages, by GAE with the agent's lambda, are added to those of the level's reward (Burda
    et al. 2018, arXiv:1810.12894, section 2.3).
    """

    name: NonEmpty[str] = "intrinsic"
    """Its name among what transitions keep, `streams/<name>`."""
    discount: UnitInterval = 0.99
    """Gamma, per decision."""
    episodic: bool = False
    """False: returns continue from the end of an episode to the row's next one."""
    weight: NonNegative[float] = 0.5
    """Factor on its advantages, where those of the level's reward have 1; that of the paper."""

    @property
    def column(self) -> str:
        """The name of its rewards among a transition's extras."""
        return f"streams/{self.name}"

    def learned(
        self,
        rollout: Rollout,
        grid: tuple[Tensor, Tensor, Tensor],
        values: tuple[Tensor, Tensor],
        algorithm: Any,
    ) -> tuple[Tensor, Tensor]:
        """Additions to advantages, and targets of the critic, [C] each; see `Stage.streams`.

        A stream that is not episodic bootstraps from the first value of the row's next episode.
        Where the rollout holds none of it, the value of the true last observation stands for that.
        """
        index, valid, ends = grid  # [T, N]
        value, after_ends = values  # [C], [K]
        terminated = rollout.terminated
        cut = ends
        if not self.episodic:
            over = (terminated | rollout.truncated)[index[:-1]] & valid[1:]  # [T - 1, N]
            cut = ends & ~torch.cat([over, torch.zeros_like(valid[:1])])
            terminated = torch.zeros_like(terminated)
        discount = torch.full(index.shape, self.discount, device=value.device)
        if algorithm.discount_by_duration:
            discount = discount ** rollout.duration[index]
        advantage = advantages_of_rows(
            index=index,
            valid=valid,
            ends=cut,
            reward=rollout.extras[self.column].to(torch.float32),
            value=value,
            value_after_ends=after_ends[cut[ends]],
            terminated=terminated,
            discount=discount,
            trace=algorithm.gae_lambda,
        )
        return self.weight * advantage, advantage + value
