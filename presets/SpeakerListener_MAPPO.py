"""SpeakerListener_PPO with central critics, which see what both agents see.

Critics are used in training alone, so they may see everything (Yu et al. 2022, arXiv:2103.01955).
"""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets import SpeakerListener_PPO


@dataclass(frozen=True, kw_only=True)
class Panel(SpeakerListener_PPO.Panel):
    """Settings to change with -cp."""

    central: bool = True
    """If False, each critic sees what its own agent sees, as in SpeakerListener_PPO."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """A speaker and a listener whose critics see what both of them see."""
    return SpeakerListener_PPO.graph_manager(panel)
