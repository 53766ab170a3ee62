"""Looking at a trained agent: in a window, or in a video file.

play_run(Path("experiments/cartpole/..."), Window("cartpole"), episodes=EnvironmentEpisodes(3))
"""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Protocol

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.graph_managers.evaluations import EvaluationStopped
from coach_rl.sessions.evaluation import final_evaluation, trained_graph
from coach_rl.telemetry.episode_recorder import EpisodePlayer
from coach_rl.telemetry.film import Film, Reel, Shot
from coach_rl.telemetry.filmed_row import Take
from coach_rl.telemetry.video import Format, VideoParameters, require_writable, write_video


class Screen(Reel, Protocol):
    """Shows the frames of all episodes at once as they come."""

    @property
    def is_closed(self) -> bool:
        """True once nobody looks any more."""
        ...


def play_run(
    run: Path,
    screen: Screen | None = None,
    *,
    file: Path | None = None,
    episodes: EnvironmentEpisodes = EnvironmentEpisodes(1),
    slow: float = 1.0,
    overrides: Mapping[str, object] | None = None,
    sampling: bool = False,
    seed: int | None = None,
    device: str | None = None,
    last_good: bool = False,
    trust: Collection[str] = (),
    on_episode: Callable[[Take], None] = lambda _: None,
) -> None:
    """Play episodes with a run's agents, and change nothing in the run.

    Args:
        run: A run's folder, one of its checkpoints, or `RUN@STEP`.
        screen: Where they are shown; None with a file.
        file: The video to write, a .gif or .mp4; None with a screen.
        episodes: How many, one after the other.
        slow: How many times slower a video plays.
        overrides: Changes of the environment, by path (`environment.level`).
        sampling: Whether agents explore as in training, instead of acting greedily.
        seed: Of the episodes; None takes that of the run's final evaluation.
        device: Where networks live; None keeps the run's own.
        last_good: Whether to take the run's newest checkpoint that can be read.
        trust: Modules whose code the run may use, besides those of the user's own runs.
        on_episode: Called with each episode that is over.

    Raises:
        ConfigurationError: There is no such run, it cannot be shown, or the file's kind is unknown.
        CheckpointError: A file of the run is damaged, or it has no checkpoint yet.
        RunError: Its environment cannot be drawn on this machine, or the file cannot be written.
    """
    video = None if file is None else video_of(file, slow)
    films: list[Film] = []

    def new_reel() -> Reel:
        if screen is not None:
            return screen
        parameters = video or VideoParameters()
        films.append(Film(max_frames=parameters.max_frames, max_side=parameters.max_side))
        return films[-1]

    with trained_graph(
        run,
        overrides=overrides,
        num_envs=1,
        device=device,
        last_good=last_good,
        trust=trust,
        watcher=EpisodePlayer(episodes.count, new_reel, on_episode),
    ) as (graph_manager, opened, _):
        try:
            final_evaluation(
                graph_manager,
                opened.runtime,
                episodes,
                seed=seed,
                sampling=sampling,
                is_stopped=lambda: screen is not None and screen.is_closed,
            )
        except EvaluationStopped:
            return
    if file is not None and video is not None:
        shots: list[Shot] = [shot for film in films for shot in film.shots]
        write_video(shots, file.with_suffix(""), video)


def video_of(file: Path, slow: float) -> VideoParameters:
    """The settings by which a video is written to a file of that name.

    Raises:
        ConfigurationError: It is no GIF or MP4, or MP4s need a package that is not installed.
    """
    kinds: dict[str, Format] = {".gif": "gif", ".mp4": "mp4"}
    kind = kinds.get(file.suffix.lower())
    if kind is None:
        raise ConfigurationError(
            f"a video is a .gif or an .mp4 file, got '{file}'; give a name that ends so"
        )
    usual = VideoParameters().frames_per_second
    video = VideoParameters(formats=(kind,), frames_per_second=max(1, round(usual / slow)))
    require_writable(video)
    return video
