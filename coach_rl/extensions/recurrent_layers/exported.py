"""Hidden states in exported policies, whose graphs take and return them."""

from coach_rl.extensions.exporting.own_code import WRITTEN_STAGES
from coach_rl.extensions.recurrent_layers.stage import HiddenStates

WRITTEN_STAGES.append(HiddenStates)
