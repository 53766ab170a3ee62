"""`coach play`: look at a trained agent, in a window or in a video file."""

import argparse
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from coach_rl.cli.flag_overrides import environment_of
from coach_rl.cli.flag_values import modules, positive, whole
from coach_rl.cli.resume import newest_run
from coach_rl.cli.settings import Changes
from coach_rl.cli.shell import short
from coach_rl.cli.subcommands import Parser
from coach_rl.core.errors import CheckpointError
from coach_rl.core.file_writing import require_no_links
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.runs.finding import find_run
from coach_rl.sessions.playing import play_run, video_of
from coach_rl.telemetry.filmed_row import Take
from coach_rl.telemetry.window import KEYS, Window, has_display

_EPISODES_SHOWN, _EPISODES_WRITTEN = 5, 1


def run(words: Sequence[str]) -> int:
    """Show or film some episodes, and return the exit code."""
    given = _parser().read(words)
    path = newest_run(given.run)
    folder, checkpoint = find_run(path, last_good=given.last_good)
    if checkpoint is None:
        raise CheckpointError(f"the run {folder.path} has no checkpoint yet; let it train first")
    file = given.to
    if file is None and not has_display():
        require_no_links(folder.path)
        file = folder.videos / f"{checkpoint.name}_play.gif"
        print(f"there is no display here; the video is written to {short(file)} (--to FILE)")
    if file is not None:
        video_of(file, given.slow)  # a wrong name is reported before anything is built
    episodes = given.episodes or (_EPISODES_SHOWN if file is None else _EPISODES_WRITTEN)
    overrides = environment_of(Changes(level=given.level, custom_parameter=given.custom_parameter))
    title = f"{folder.path.parent.name}: {folder.path.name}"
    with ExitStack() as opened:
        window = None
        if file is None:
            window = opened.enter_context(closing(Window(title, slow=given.slow)))
            print(f"keys: {KEYS}")
        play_run(
            path,
            window,
            file=file,
            episodes=EnvironmentEpisodes(episodes),
            slow=given.slow,
            overrides=overrides,
            sampling=given.sampling,
            seed=given.seed,
            last_good=given.last_good,
            trust=given.trust or (),
            on_episode=_say,
        )
    if file is not None:
        print(f"written to {short(file)}")
    return 0


def _say(episode: Take) -> None:
    print(
        f"episode {episode.number + 1}: return {episode.reward:.5g}, {episode.step} steps, "
        f"{episode.ending}"
    )


def _factor(text: str) -> float:
    """A factor above 0."""
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0.01 <= factor <= 100:
        raise argparse.ArgumentTypeError(f"must be a factor from 0.01 to 100, got '{text}'")
    return factor


def _parser() -> Parser:
    parser = Parser(
        prog="coach play",
        usage="coach play RUN [flags]",
        description="Show a trained agent in a window, acting greedily, or write a video. Keys in "
        f"the window: {KEYS}.",
    )
    parser.add_argument(
        "run",
        metavar="RUN",
        type=Path,
        help="a run's folder (its last checkpoint), one of its checkpoints, RUN@STEP, or a folder "
        "of runs (the newest)",
    )
    parser.add_argument(
        "--episodes",
        metavar="N",
        type=positive,
        help=f"how many (default: {_EPISODES_SHOWN}; in a video {_EPISODES_WRITTEN})",
    )
    parser.add_argument(
        "--sampling", action="store_true", help="act with the exploration of training"
    )
    parser.add_argument(
        "--slow",
        metavar="FACTOR",
        type=_factor,
        default=1.0,
        help="play so many times slower than 25 steps a second (default: 1)",
    )
    parser.add_argument("-lvl", "--level", metavar="LEVEL", help="play on another level (task)")
    parser.add_argument(
        "-cp",
        "--custom_parameter",
        metavar="CHANGES",
        default="",
        help='changes of the environment, such as "environment.max_episode_steps=200"',
    )
    parser.add_argument(
        "--seed", metavar="SEED", type=whole, help="seed of the episodes (default: the run's)"
    )
    parser.add_argument(
        "--to",
        metavar="FILE",
        type=Path,
        help="write a .gif or .mp4 (extra `video`) instead; without a display, a GIF goes into "
        "the run's videos/",
    )
    parser.add_argument(
        "--last_good",
        action="store_true",
        help="take the run's newest checkpoint that can be read",
    )
    parser.add_argument(
        "--trust",
        metavar="MODULES",
        type=modules,
        help="with a run of somebody else's: run the code of these modules, separated by commas",
    )
    return parser
