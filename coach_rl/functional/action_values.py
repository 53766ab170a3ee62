"""Values of all actions at once, [B, n] or, where an action has K numbers, [B, n, K]."""

from torch import Tensor


def dueling_values(value: Tensor, advantage: Tensor) -> Tensor:
    """Value plus advantage, less the mean advantage (Wang et al. 2016, arXiv:1511.06581, eq. 9).

    Args:
        value: Of the state, [B, 1, K].
        advantage: Of the actions, [B, n, K].

    Returns:
        [B, n, K].
    """
    return value + advantage - advantage.mean(dim=1, keepdim=True)


def of_actions(values: Tensor, action: Tensor) -> Tensor:
    """What belongs to one action each, [B, K].

    Args:
        values: [B, n, K].
        action: Counted from 0, int64 [B].
    """
    index = action.view(-1, 1, 1).expand(-1, 1, values.shape[-1])
    return values.gather(1, index).squeeze(1)
