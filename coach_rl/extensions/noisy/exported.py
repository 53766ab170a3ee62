"""The mean weights of a network with noise, as an exported policy acts."""

from coach_rl.extensions.exporting.policies import KINDS, ChoicePolicy
from coach_rl.extensions.noisy.noisy_layers import NoisyQNetwork

KINDS[NoisyQNetwork] = ChoicePolicy
