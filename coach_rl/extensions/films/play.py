"""`coach play`: a trained agent in a window, or in a video."""

import sys
from contextlib import ExitStack, closing
from pathlib import Path

from coach_rl.cli.parser import Given
from coach_rl.cli.settings import overrides_of
from coach_rl.cli.terminal import short
from coach_rl.cli.train import newest_run
from coach_rl.core.errors import CheckpointError
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.extensions.films.playing import play_run
from coach_rl.extensions.films.window import KEYS, Window, has_display
from coach_rl.runs.folder import find_run, folder_name

_EPISODES_SHOWN = EnvironmentEpisodes(5)
_EPISODES_WRITTEN = EnvironmentEpisodes(1)


def play(given: Given) -> int:
    """Show or film some episodes; the exit code."""
    slow = given.slow or 1.0
    path = newest_run(given.run)
    folder, checkpoint = find_run(path, last_good=given.last_good)
    if checkpoint is None:
        raise CheckpointError(f"the run {folder.path} has no checkpoint yet; let it train first")
    file = given.to
    if file is None and not has_display():
        file = Path(f"{folder_name(folder.path.name)}_{checkpoint.name}.gif")
        print("there is no display here: drawing a video instead (--to FILE names it)")
    episodes = given.episodes or (_EPISODES_SHOWN if file is None else _EPISODES_WRITTEN)
    title = f"{folder.path.parent.name}: {folder.path.name}"
    with ExitStack() as opened:
        window = None
        if file is None:
            window = opened.enter_context(closing(Window(title, slow=slow)))
            print(f"keys: {KEYS}")
        play_run(
            path,
            window or file,
            episodes=episodes,
            slow=slow,
            overrides=overrides_of(given),
            sampling=given.sampling,
            seed=given.seed,
            last_good=given.last_good,
            trust=given.trust or (),
            on_episode=print,
            on_frame=_print_frames if sys.stdout.isatty() else lambda _, __: None,
            is_stopped=lambda: window is not None and window.is_closed,
        )
    if file is not None:
        print(f"written to {short(file)}")
    return 0


def _print_frames(count: int, expected: int) -> None:
    """Print how many frames are drawn, in one line that is written over."""
    print(f"frame {count} of {expected}", end="\r" if count < expected else "\n", flush=True)
