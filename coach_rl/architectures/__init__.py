"""Networks and how they are updated.

Torch modules (torsos that read observations, heads, actor-critics), the `NetworkWrapper` that keeps
a module's parameters flat with an optional target copy, and the `UpdateEngine` that turns a pure
loss into gradient steps. May import core and functional. Start with `actor_critic`, then
`update_engine`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.architectures.actor_critic import ActorCriticParameters
    from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters, Critics
    from coach_rl.architectures.gradient_step import AdamParameters, Objective
    from coach_rl.architectures.gradient_transforms import (
        GradientTransform,
        GradientTransformParameters,
    )
    from coach_rl.architectures.network_wrapper import NetworkWrapper
    from coach_rl.architectures.optimizers import OptimizerParameters, TargetSync
    from coach_rl.architectures.q_network import MeanHead, QNetworkParameters
    from coach_rl.architectures.torso import TorsoParameters
    from coach_rl.architectures.update_engine import UpdateEngine
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ActorCriticParameters", "ActorParameters", "AdamParameters",
    "CriticParameters", "Critics", "GradientTransform",
    "GradientTransformParameters", "MeanHead", "NetworkWrapper", "Objective",
    "OptimizerParameters", "QNetworkParameters", "TargetSync",
    "TorsoParameters", "UpdateEngine",
]  # fmt: skip
