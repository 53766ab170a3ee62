"""Exported levels that stop on failure: the graph of a level holds its failures."""

from coach_rl.extensions.exporting.archive import WRITTEN_PARTS
from coach_rl.extensions.strict_subgoals.stop_on_failure import StopOnFailure

WRITTEN_PARTS.append(StopOnFailure)
