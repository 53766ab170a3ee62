"""SpeakerListener_PPO with central critics, which see what both agents see.

Critics are used in training alone, so they may see everything (Yu et al. 2022, arXiv:2103.01955).
"""

import coach_rl as rl
from coach_rl.presets.SpeakerListener_PPO import Panel, experiment


def graph_manager(panel: Panel) -> rl.GraphManager:
    """A speaker and a listener whose critics see what both of them see."""
    return experiment(panel, central=True)
