"""The flags that film the evaluations of a run, and those of `coach play`.

Light, like `cli.parser`.
"""

from pathlib import Path

from coach_rl.cli import values
from coach_rl.cli.flags import A_RUN, again, group
from coach_rl.cli.parser import Flag

_VIDEO = "coach_rl:VideoParameters"
_FILMED = "-dg -dm"
FOR_RUNS = group(
    "where and how it runs",
    Flag(
        "-dg, --dump_gifs",
        "film an episode of each evaluation as GIF",
        value=("gif",),
        sets=f"{_VIDEO}.formats",
    ),
    Flag(
        "-dm, --dump_mp4",
        "the same as MP4; needs the extra `video`",
        value=("mp4",),
        sets=f"{_VIDEO}.formats",
    ),
    Flag(
        "--video_frames N",
        "frames of a video at most (default: 200); longer episodes skip more steps",
        values.positive,
        sets=f"{_VIDEO}.max_frames",
        needs=_FILMED,
    ),
    Flag(
        "--video_skip STEPS",
        "steps from one frame to the next (default: 1)",
        values.positive,
        sets=f"{_VIDEO}.frame_skip",
        needs=_FILMED,
    ),
    Flag(
        "--video_episodes WHICH",
        "film the last episode of the first environment (default), or the best",
        choices=("best", "last"),
        sets=f"{_VIDEO}.episodes",
        needs=_FILMED,
    ),
    Flag(
        "--video_every N",
        "film every Nth evaluation (default: 1)",
        values.positive,
        sets=f"{_VIDEO}.every",
        needs=_FILMED,
    ),
    of="train resume fork repeat evaluate",
)
"""The flags of commands about one run."""
PLAY = (
    A_RUN,
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
        "working directory",
        Path,
    ),
    again("--last_good"),
    again("--trust"),
)
