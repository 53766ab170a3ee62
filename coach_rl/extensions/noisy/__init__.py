"""Noise in the layers of a DQN's network, by which it explores: NoisyNet.

May import agents, architectures, exploration_policies and core. Start with `noisy_net`, the
exploration of an agent; `noisy_layers` has the network.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.noisy.noisy_layers import NoisyLinear, NoisyQNetwork
    from coach_rl.extensions.noisy.noisy_net import NoisyNet
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["NoisyLinear", "NoisyNet", "NoisyQNetwork"]
