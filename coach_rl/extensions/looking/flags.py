"""The flags of `coach play`, and those that show more of a run. Light, like `cli.parser`."""

from pathlib import Path

from coach_rl.cli import values
from coach_rl.cli.flags import TRAINED, again, group
from coach_rl.cli.parser import Flag
from coach_rl.core.steps import EnvironmentSteps

DEFAULT_HISTOGRAM_STEPS = 10_000
"""Environment steps from one set of histograms to the next, where none are given."""
FOR_RUNS = group(
    "where and how it runs",
    Flag(
        "--histograms [STEPS]",
        "for TensorBoard: parameters, gradients, actions and observations every STEPS "
        f"environment steps (default: {DEFAULT_HISTOGRAM_STEPS})",
        values.steps,
        value=EnvironmentSteps(DEFAULT_HISTOGRAM_STEPS),
        sets="coach_rl:HistogramParameters.every",
    ),
    Flag(
        "--profile",
        "show at the end where time has gone; profile.json and trace.json in the run's folder",
        sets="coach_rl:ProfileParameters",
    ),
    of="train resume fork repeat",
)
PLAY = (
    TRAINED,
    Flag("--episodes N", "how many (default: 5; in a video 1)", values.episodes),
    Flag("--sampling", "act with the exploration of training"),
    Flag(
        "--slow FACTOR",
        "play so many times slower than 25 steps a second (default: 1)",
        values.factor,
    ),
    again("-lvl", help="play another task"),
    again("-cp", help='changes of the environment, such as "environment.max_episode_steps=200"'),
    again("--seed", help="seed of the episodes (default: the run's)"),
    Flag(
        "--to FILE",
        "write a .gif or .mp4 (extra `video`) instead; without a display, a GIF goes into the "
        "run's videos/",
        Path,
    ),
    again("--last_good"),
    again("--trust"),
)
