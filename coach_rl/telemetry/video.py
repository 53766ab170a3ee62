"""Videos: what an episode looked like, small enough to keep.

write_video(film.shots, folder / "step_2048", VideoParameters())    # step_2048.gif
"""

import importlib
import importlib.util
from collections.abc import Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated, Literal, overload

import numpy as np
from annotated_types import Ge
from PIL import Image, ImageDraw, ImageFont

from coach_rl.core.errors import ConfigurationError, RunError, how_to_install
from coach_rl.core.file_writing import replacing
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive
from coach_rl.core.records import Array
from coach_rl.telemetry.film import RGB, Shot, scaled

Format = Literal["gif", "mp4"]
Choice = Literal["first", "best", "worst", "longest"]
"""The episode that is filmed of several: by its number, its return or its length."""

FORMATS = ("gif", "mp4")

_BACKGROUND: RGB = (20, 20, 24)
_LINE = 15
"""Height of a caption line, in pixels."""
_USUAL_COLOURS, _SPREAD_COLOURS = 176, 80
"""Numbers of a GIF's 256 colours chosen by frequency, and by distance from the others."""
_SHADE = 4
"""Values of red, green or blue closer than this count as one when a GIF's colours are chosen."""
_SAMPLED_FRAMES = 12
"""Frames a GIF's colours are chosen from."""
_LAST_FRAME_SECONDS = 1.5
_MP4_QUALITY = 7
"""Quality on imageio-ffmpeg's scale of 0 to 10."""


@parameter_class
class VideoParameters:
    """Settings of videos: which episodes, and how they are written."""

    formats: NonEmpty[tuple[Format, ...]] = ("gif",)
    """gif, mp4 or both."""
    of: Literal["evaluation", "training"] = "evaluation"
    """evaluation: one episode of an evaluation. training: one of several training episodes of a
    row, with the exploration of training; those of the heat-up are among them."""
    episodes: Choice = "first"
    """The one that is filmed: the first, or that with the highest return, the lowest, or the most
    steps.
    Evaluations whose episode is chosen by its outcome are played twice, to film the right one."""
    every: Positive[int] = 1
    """Every n-th evaluation is filmed, and the last in any case; in training, one of every n
    episodes of the row."""
    row: NonNegative[int] | None = None
    """The row whose episodes are looked at. None: the first row, or all of an evaluation's where
    the episode is chosen by its outcome."""
    frame_skip: Positive[int] = 1
    """Steps from one frame to the next; doubled whenever an episode is too long for
    `max_frames`."""
    max_frames: Annotated[int, Ge(2)] = 200
    """Frames of a video at most."""
    max_side: Annotated[int, Ge(32)] = 320
    """Width and height are scaled down to this many pixels at most, the caption not counted."""
    max_megabytes: Positive[float] = 4.0
    """A GIF that would be larger loses every second frame until it isn't."""
    frames_per_second: Positive[int] = 25
    """Speed of playing."""

    def score_of(self, reward: float, length: int) -> float:
        """The degree to which an episode is what `episodes` names; of equal ones, the first."""
        return {"first": 0.0, "best": reward, "worst": -reward, "longest": float(length)}[
            self.episodes
        ]


def require_writable(parameters: VideoParameters) -> None:
    """Raise `ConfigurationError` where a format needs a package that is not installed."""
    if "mp4" in parameters.formats and importlib.util.find_spec("imageio_ffmpeg") is None:
        raise ConfigurationError(
            "MP4 videos need the package imageio-ffmpeg, which is missing; "
            f"{how_to_install('video')}; or write GIFs"
        )


def write_video(shots: Sequence[Shot], path: Path, parameters: VideoParameters) -> list[Path]:
    """Write a film in every format asked for; what was there under these names is replaced.

    Args:
        shots: In order, one at least; frames of one size.
        path: Where to, without the format's ending; its folder is made.
        parameters: Formats, sizes and speed.

    Returns:
        The files.

    Raises:
        RunError: A file cannot be written.
    """
    images = _Images(shots, parameters.max_side)
    files = []
    for kind in parameters.formats:
        file = path.with_name(f"{path.name}.{kind}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(file, file.with_name(f".{file.name}.new")) as unfinished:
                _WRITERS[kind](images, unfinished, parameters)
        except OSError as error:
            raise RunError(f"cannot write the video {file}: {error}") from error
        files.append(file)
    return files


class _Images(Sequence[Image.Image]):
    """Frames above their captions, each made when it is asked for.

    Args:
        shots: The frames.
        max_side: Width and height at most.
    """

    def __init__(self, shots: Sequence[Shot], max_side: int) -> None:
        self._shots, self._max_side = shots, max_side

    def __len__(self) -> int:
        return len(self._shots)

    @overload
    def __getitem__(self, index: int) -> Image.Image: ...
    @overload
    def __getitem__(self, index: slice) -> "_Images": ...
    def __getitem__(self, index: int | slice) -> "Image.Image | _Images":
        if isinstance(index, slice):
            return _Images(self._shots[index], self._max_side)
        return captioned(self._shots[index], self._max_side)


def _write_gif(images: Sequence[Image.Image], path: Path, parameters: VideoParameters) -> None:
    """All frames share one set of colours: theirs would flicker, and take more room."""
    colours = _colours(images)
    # One byte a pixel; Pillow holds what it encodes.
    reduced = [image.quantize(palette=colours, dither=Image.Dither.NONE) for image in images]
    _save_gif(reduced, path, parameters)
    while path.stat().st_size > parameters.max_megabytes * 1e6 and len(reduced) > 2:
        reduced = [*reduced[:-1:2], reduced[-1]]
        _save_gif(reduced, path, parameters)


def _save_gif(images: list[Image.Image], path: Path, parameters: VideoParameters) -> None:
    milliseconds = [round(1000 / parameters.frames_per_second)] * len(images)
    milliseconds[-1] = round(1000 * _LAST_FRAME_SECONDS)
    images[0].save(
        path,
        format="GIF",
        save_all=True,
        append_images=images[1:],
        duration=milliseconds,
        loop=0,
    )


def _colours(images: Sequence[Image.Image]) -> Image.Image:
    """An image whose palette suits the whole film.

    Most colours go to what there is much of, so that a large floor is smooth; the others are spread
    over all shades there are, so that a small mark keeps its colour.
    """
    chosen = np.unique(np.linspace(0, len(images) - 1, _SAMPLED_FRAMES).round().astype(int))
    pixels = np.concatenate([np.asarray(images[index]).reshape(-1, 3) for index in chosen])
    shades = np.unique(pixels // _SHADE, axis=0) * _SHADE + _SHADE // 2
    usual = _palette(pixels[:: len(chosen)], _USUAL_COLOURS, Image.Quantize.MEDIANCUT)
    spread = _palette(shades, _SPREAD_COLOURS, Image.Quantize.MAXCOVERAGE)
    holder = Image.new("P", (1, 1))
    holder.putpalette([*usual, *spread])
    return holder


def _palette(pixels: Array, colours: int, method: Image.Quantize) -> list[int]:
    """Return a palette for pixels [P, 3], at most so many colours, as flat red, green and blue."""
    reduced = Image.fromarray(pixels[None].astype(np.uint8)).quantize(colors=colours, method=method)
    return list(reduced.getpalette() or ())


def _write_mp4(images: Sequence[Image.Image], path: Path, parameters: VideoParameters) -> None:
    require_writable(parameters)
    # Not at the top: an optional package.
    ffmpeg = importlib.import_module("imageio_ffmpeg")
    height, width = (side - side % 2 for side in np.asarray(images[0]).shape[:2])  # H.264 wants it
    writer = ffmpeg.write_frames(
        str(path),
        (width, height),
        fps=parameters.frames_per_second,
        quality=_MP4_QUALITY,
        macro_block_size=2,
        ffmpeg_log_level="error",
        output_params=["-f", "mp4"],
    )
    writer.send(None)
    held = round(parameters.frames_per_second * _LAST_FRAME_SECONDS)
    for image in chain(images, repeat(images[-1], held)):
        writer.send(np.ascontiguousarray(np.asarray(image)[:height, :width]))
    writer.close()


_WRITERS = {"gif": _write_gif, "mp4": _write_mp4}


def captioned(shot: Shot, max_side: int) -> Image.Image:
    """The frame, scaled down where it is too large, above its caption."""
    frame = Image.fromarray(scaled(shot.frame, max_side))
    image = Image.new("RGB", (frame.width, frame.height + _LINE * len(shot.caption)), _BACKGROUND)
    image.paste(frame, (0, 0))
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=11)
    for number, line in enumerate(shot.caption):
        top = frame.height + _LINE * number
        left = 6
        if line.has_dot:
            draw.ellipse((left, top + 3, left + 8, top + 11), fill=line.colour)
            left += 14
        draw.text((left, top), line.text, fill=line.colour, font=font)
    return image
