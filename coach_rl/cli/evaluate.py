"""The commands that use a trained agent: evaluate, play; or one before any training."""

from contextlib import ExitStack, closing

from coach_rl.cli.parser import Given
from coach_rl.cli.settings import configured, opening, overrides_of, settings, video_parameters
from coach_rl.cli.terminal import console_of, short
from coach_rl.cli.train import newest_run
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import CheckpointError
from coach_rl.core.file_writing import require_no_links
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.runs.folder import find_run
from coach_rl.sessions.evaluation import (
    FINAL_EPISODES,
    evaluate_run,
    evaluate_untrained,
    evaluation_film,
    play_run,
)
from coach_rl.telemetry.summary import evaluation_table
from coach_rl.telemetry.window import KEYS, Window, has_display

_EPISODES_SHOWN, _EPISODES_WRITTEN = EnvironmentEpisodes(5), EnvironmentEpisodes(1)


def evaluate(given: Given) -> int:
    """Evaluate a run; the exit code."""
    evaluation, file = evaluate_run(
        newest_run(given.run),
        episodes=given.episodes or FINAL_EPISODES,
        overrides=overrides_of(given, without=["num_envs"]),
        num_envs=given.num_envs,
        **opening(given),
        sampling=given.sampling,
        seed=given.seed,
        video=video_parameters(given),
    )
    console_of(plain=given.plain).print(evaluation_table(evaluation))
    if file is not None:
        print(f"written to {short(file)}")
        video = evaluation_film(file)
        for each in sorted(video.parent.glob(f"{video.name}.*")):
            print(f"filmed as  {short(each)}")
    return 0


def evaluate_preset(given: Given) -> int:
    """Evaluate the agents of a preset before any training; the exit code."""
    preset = load_preset(find_preset(given.preset))
    evaluation = evaluate_untrained(
        configured(given, preset)[0],
        settings(given, Runtime),
        episodes=given.episodes or FINAL_EPISODES,
        sampling=given.sampling,
    )
    print("agents as they are before any training:")
    console_of(plain=given.plain).print(evaluation_table(evaluation))
    return 0


def play(given: Given) -> int:
    """Show or film some episodes; the exit code."""
    slow = given.slow or 1.0
    path = newest_run(given.run)
    folder, checkpoint = find_run(path, last_good=given.last_good)
    if checkpoint is None:
        raise CheckpointError(f"the run {folder.path} has no checkpoint yet; let it train first")
    file = given.to
    if file is None and not has_display():
        require_no_links(folder.path)
        file = folder.videos / f"{checkpoint.name}_play.gif"
        print(f"there is no display here; the video is written to {short(file)} (--to FILE)")
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
            is_stopped=lambda: window is not None and window.is_closed,
        )
    if file is not None:
        print(f"written to {short(file)}")
    return 0
