"""Filters of observations as functions of tensors."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.core.running_statistics import RunningStatistics
from coach_rl.filters import (
    InputStage,
    ObservationClippingFilter,
    ObservationNormalizationFilter,
    ObservationReductionBySubPartsNameFilter,
    ObservationStackingFilter,
)


@singledispatch
def torch_filter(_params: object, _stage: InputStage, /) -> Callable[..., Any] | None:
    """A filter as a function of tensors [R, ...]; None where there is none.

    One that remembers something is a function of values, memory [R, ...] and where episodes begin,
    and returns the memory after it too.

    Args:
        _params: The filter's description.
        _stage: The filter as it was built.
    """
    return None


@torch_filter.register
def _clipping(params: ObservationClippingFilter, stage: InputStage) -> Callable[[Tensor], Tensor]:
    box = stage.output_space
    assert isinstance(box, spaces.Box)
    is_whole = np.issubdtype(box.dtype, np.integer)
    limits = np.iinfo(box.dtype) if is_whole else np.finfo(box.dtype)
    low = limits.min if params.low is None else max(params.low, limits.min)
    high = limits.max if params.high is None else min(params.high, limits.max)
    if is_whole:  # with other numbers torch makes floats of bytes
        low = int(low)
        high = int(high)
    return lambda values: torch.clamp(values, low, high)


@torch_filter.register
def _normalisation(
    params: ObservationNormalizationFilter, stage: InputStage
) -> Callable[[Tensor], Tensor]:
    statistics = RunningStatistics(stage.output_space.shape or ())
    statistics.load_state_dict(stage.state_dict())
    mean = torch.from_numpy(np.asarray(statistics.mean))
    scale = torch.from_numpy(np.asarray(statistics.inverse_std(params.epsilon)))

    def normalised(values: Tensor) -> Tensor:
        centered = (values.to(torch.float64) - mean) * scale
        if params.clip is not None:
            centered = centered.clamp(-params.clip, params.clip)
        return centered.to(torch.float32)

    return normalised


@torch_filter.register
def _named_parts(
    params: ObservationReductionBySubPartsNameFilter, _stage: InputStage
) -> Callable[[Tensor], Tensor]:
    keeps = params.method == "keep"
    kept = [i for i, name in enumerate(params.names) if (name in params.sub_parts) == keeps]
    return lambda values: values[:, kept]


@torch_filter.register
def _stack(
    params: ObservationStackingFilter, stage: InputStage
) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    axis = params.axis % len(stage.output_space.shape or ())

    def stacked(values: Tensor, frames: Tensor, episodes: Tensor) -> tuple[Tensor, Tensor]:
        newest = values.unsqueeze(1)  # [R, 1, ...]
        recent = torch.cat([frames[:, 1:], newest], dim=1)
        begins = episodes.reshape(-1, *[1] * (recent.ndim - 1))
        after = torch.where(begins, newest.expand_as(recent), recent)
        shown = after
        if params.differences:
            shown = torch.cat([newest - after[:, :-1], newest], dim=1)
        return shown.movedim(1, axis + 1), after

    return stacked
