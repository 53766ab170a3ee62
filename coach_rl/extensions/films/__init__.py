"""Films of episodes: of a run's evaluations, and of trained agents that play.

May import what running may. Start with `episode_recorder`, a part of a run; `episode_player`
follows episodes, `camera` draws the levels' goals, `video` keeps and writes films, `playing` plays
a trained agent, `play` in a `window`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.films.episode_player import EpisodePlayer
    from coach_rl.extensions.films.episode_recorder import EpisodeRecorder, VideoParameters
    from coach_rl.extensions.films.playing import play_run
    from coach_rl.extensions.films.video import Film, FilmParameters, FrameSink
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "EpisodePlayer", "EpisodeRecorder", "Film", "FilmParameters", "FrameSink", "VideoParameters",
    "play_run",
]  # fmt: skip
