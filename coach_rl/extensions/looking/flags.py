"""The flags of `coach play`. Light, as `cli.flags`."""

from pathlib import Path

from coach_rl.cli import values
from coach_rl.cli.flags import TRAINED, again
from coach_rl.cli.parser import Flag

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
