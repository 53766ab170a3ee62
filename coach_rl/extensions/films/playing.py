"""Playing episodes with a run's agents, into a video or on a screen.

play_run(Path("experiments/cartpole/..."), Path("pole.gif"))
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Unpack

from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.extensions.films.episode_player import EpisodePlayer, FilmedEpisode
from coach_rl.extensions.films.video import Film, FrameSink, require_writable
from coach_rl.graph_managers.evaluations import EvaluationStopped, never
from coach_rl.sessions.evaluation import trained_graph
from coach_rl.sessions.opening import Opening, OpeningArguments


def play_run(
    run: str | Path | Opening,
    to: str | Path | FrameSink,
    *,
    episodes: EnvironmentEpisodes = EnvironmentEpisodes(1),
    slow: float = 1.0,
    overrides: Mapping[str, object] | None = None,
    sampling: bool = False,
    seed: int | None = None,
    on_episode: Callable[[FilmedEpisode], None] = lambda _: None,
    on_frame: Callable[[int, int], None] = lambda _, __: None,
    is_stopped: Callable[[], bool] = never,
    **opening: Unpack[OpeningArguments],
) -> None:
    """Play episodes with a run's agents, and change nothing in the run.

    For a video they are played twice, first without pictures, so that none is drawn in vain.

    Args:
        run: A run's folder, one of its checkpoints, or `RUN@STEP`.
        to: The video to write, a .gif or .mp4, or where they are shown, such as a `Window`.
        episodes: How many, one after the other.
        slow: How many times slower a video plays.
        overrides: Changes of the environment, by path (`environment.level`).
        sampling: Whether agents explore as in training, instead of acting greedily.
        seed: Of the episodes; None takes that of the run's final evaluation.
        on_episode: Called with each episode that is over.
        on_frame: Called after each frame of a video with the number of frames so far, and of those
            expected.
        is_stopped: Polled at every step; True ends it.
        **opening: `device`, `threads`, `last_good` and `trust` of `Opening`.

    Raises:
        ConfigurationError: There is no such run, it cannot be shown, or the file's kind is unknown.
        CheckpointError: A file of the run is damaged, or it has no checkpoint yet.
        RunError: Its environment cannot be drawn on this machine, or the file cannot be written.
    """
    to = Path(to) if isinstance(to, str) else to
    film = Film(episodes=episodes.count, on_frame=on_frame)
    if isinstance(to, Path):
        require_writable(to.name)
    sink: FrameSink = film if isinstance(to, Path) else to
    player = EpisodePlayer(lambda: sink, on_episode)
    with trained_graph(
        Opening.of(run, opening), overrides=overrides, num_envs=1, watchers=[player]
    ) as (graph_manager, opened):
        start = opened.runtime.seed if seed is None else seed
        evaluate = partial(
            graph_manager.evaluate, episodes, seed=start, sampling=sampling, is_stopped=is_stopped
        )
        with suppress(EvaluationStopped):
            if isinstance(to, Path):  # drawing takes longer than playing twice
                player.shows = False
                evaluate()
                film.expect(player.lengths)
                player.shows = True
            evaluate()
    if isinstance(to, Path):
        film.write(to, slow=slow)
