"""A map of the sub-goals that the top sets, as a picture and a histogram in the log."""

import numpy as np
from two_levels import Panel, stack

import coach_rl as rl
from coach_rl.core.parts import trajectories_of


def goal_map(record, run):
    """A note at each evaluation: where the newest 1,000 sub-goals lie."""
    if record.kind != "evaluation":
        return None
    found = trajectories_of(run.graph.agents["low"])
    goals = found["/observations/desired_goal"].reshape(-1, 2)[-1_000:]  # from where the level was
    counts, _, _ = np.histogram2d(*goals.T, bins=32, range=[[-2, 2], [-2, 2]])
    picture = (255 * np.sqrt(counts / max(counts.max(), 1))).astype(np.uint8)
    distances = {"goals/distance": np.linalg.norm(goals, axis=1)}
    return run.note(level="low", images={"goals/map": picture}, arrays=distances)


def graph_manager(panel: Panel) -> rl.GraphManager:
    """The map is in TensorBoard, trackers, the run's folder and `coach report`."""
    return stack(panel, callbacks=(goal_map,))
