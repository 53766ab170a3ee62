"""Films of episodes, kept on disk while they are recorded, and GIF or MP4 files of them.

film = Film(max_frames=200)
if film.wants(step):
    film.add(frame, caption)
write_video(film.shots, folder / "step_2048", VideoParameters())    # step_2048.gif

writer = VideoWriter(VideoParameters())         # the same in a thread
writer.write(film, folder / "videos" / "step_2048")
writer.close()                                  # waits until all are written
for path, error in writer.failures():
    ...
"""

import importlib
import importlib.util
import os
import tempfile
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated, Generic, Literal, NamedTuple, Protocol, TypeVar, overload

import numpy as np
from annotated_types import Ge
from PIL import Image, ImageDraw, ImageFont

from coach_rl.core.errors import ConfigurationError, RunError, how_to_install
from coach_rl.core.file_writing import replacing
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive
from coach_rl.core.records import Array

Kept = TypeVar("Kept")
Made = TypeVar("Made", covariant=True)
RGB = tuple[int, int, int]
"""Red, green and blue, each from 0 to 255."""
WHITE: RGB = (235, 235, 235)


FORMATS = ("gif", "mp4")
_BACKGROUND: RGB = (20, 20, 24)
_LINE = 15
"""Height of a caption line, in pixels."""
_SHADE = 4
"""Values of red, green or blue closer than this count as one when a GIF's colours are chosen."""
_SAMPLED_FRAMES = 12
"""Frames a GIF's colours are chosen from."""
_LAST_FRAME_SECONDS = 1.5
_MP4_QUALITY = 7
"""Quality on imageio's scale of 0 to 10."""


class CaptionLine(NamedTuple):
    """A line under a frame."""

    text: str
    colour: RGB = WHITE
    has_dot: bool = False
    """True if a dot of that colour precedes it, as in a legend."""


class Shot(NamedTuple):
    """A frame and the caption under it."""

    frame: Array
    """uint8 [height, width, 3]."""
    caption: tuple[CaptionLine, ...]


class Reel(Protocol):
    """Receives the frames of an episode: a film, or a window that shows them at once."""

    def wants(self, step: int) -> bool:
        """Return whether the frame after that many steps of the episode is to be added."""
        ...

    def add(self, frame: Array, caption: Sequence[CaptionLine] = ()) -> None:
        """Add a frame; the first is that of step 0."""
        ...

    def end(self, frame: Array, caption: Sequence[CaptionLine] = ()) -> None:
        """Add the episode's last frame, at any step."""
        ...


class Film:
    """The frames of one episode, evenly spread over it and never more than `max_frames`.

    The length of an episode is not known in advance: when the film is full, every second frame is
    dropped, and half as many are added from then on. Frames are kept in a temporary file.

    Args:
        frame_skip: Steps from one frame to the next, at first.
        max_frames: Frames kept at most, 2 or more.
        max_side: Longer sides are scaled down to this many pixels; None keeps the size.
    """

    def __init__(
        self, *, frame_skip: int = 1, max_frames: int = 200, max_side: int | None = None
    ) -> None:
        self.frame_skip = frame_skip
        """Steps from one frame to the next, by now."""
        self._max_side = max_side
        self._max_frames = max_frames
        self._frames = _FrameFile()
        self._kept: list[tuple[int, tuple[CaptionLine, ...]]] = []
        """Place in the file and caption of each frame."""

    @property
    def shots(self) -> Sequence[Shot]:
        """The frames so far, each read from disk on access."""
        frames = self._frames
        return _Lazily(lambda kept: Shot(frames.read(kept[0]), kept[1]), tuple(self._kept))

    def wants(self, step: int) -> bool:
        return step % self.frame_skip == 0

    def add(self, frame: Array, caption: Sequence[CaptionLine] = ()) -> None:
        if len(self._kept) == self._max_frames:
            fits = len(self._kept) % 2 == 0
            for place, _ in self._kept[1::2]:
                self._frames.free(place)
            self._kept = self._kept[::2]
            self.frame_skip *= 2
            if not fits:
                return
        self._keep(frame, caption)

    def end(self, frame: Array, caption: Sequence[CaptionLine] = ()) -> None:
        if len(self._kept) == self._max_frames:
            self._frames.free(self._kept.pop()[0])
        self._keep(frame, caption)

    def _keep(self, frame: Array, caption: Sequence[CaptionLine]) -> None:
        if self._max_side is not None:
            frame = scaled(frame, self._max_side)
        self._kept.append((self._frames.keep(frame), tuple(caption)))


def scaled(frame: Array, max_side: int) -> Array:
    """The frame [height, width, 3], scaled down if one of its sides is longer than `max_side`."""
    height, width = frame.shape[:2]
    scale = max_side / max(height, width)
    if scale >= 1:
        return np.ascontiguousarray(frame)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    image = Image.fromarray(np.ascontiguousarray(frame)).resize(size, Image.Resampling.BOX)
    return np.asarray(image)


def side_by_side(pictures: Sequence[Array]) -> Array:
    """Pictures uint8 [H, W, 3] in one, from left to right, on the ground of captions."""
    if len(pictures) == 1:
        return pictures[0]
    height = max(len(picture) for picture in pictures)
    widths = [picture.shape[1] for picture in pictures]
    whole = np.full((height, sum(widths), 3), _BACKGROUND, np.uint8)
    for picture, end in zip(pictures, np.cumsum(widths), strict=True):
        whole[: len(picture), end - picture.shape[1] : end] = picture
    return whole


class _FrameFile:
    """Frames of one size in a temporary file, which is gone with the object or the process."""

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(prefix="coach_film_")  # noqa: SIM115 - closed with the object
        weakref.finalize(self, file.close)
        self._number = file.fileno()
        self._like: Array = np.empty(0, np.uint8)
        self._free: list[int] = []
        self._places = 0

    def keep(self, frame: Array) -> int:
        """Write a frame; its place.

        Raises:
            RunError: It has another size than those before.
        """
        if self._places and frame.shape != self._like.shape:
            raise RunError(
                "the frames of a film must have one size, got "
                f"{frame.shape[1]} x {frame.shape[0]} after {self._like.shape[1]} x "
                f"{self._like.shape[0]}"
            )
        self._like = np.empty_like(frame)
        if not self._free:
            self._free.append(self._places)
            self._places += 1
        place = self._free.pop()
        data, offset = np.ascontiguousarray(frame).tobytes(), place * frame.nbytes
        while data:  # a full disk takes a part before it refuses the rest
            written = os.pwrite(self._number, data, offset)
            data, offset = data[written:], offset + written
        return place

    def free(self, place: int) -> None:
        """Mark a place as free."""
        self._free.append(place)

    def read(self, place: int) -> Array:
        """Return the frame at a place."""
        like = self._like
        data = os.pread(self._number, like.nbytes, place * like.nbytes)
        return np.frombuffer(data, like.dtype).reshape(like.shape)


class _Lazily(Sequence[Made], Generic[Kept, Made]):
    """A sequence whose items are made on access.

    Args:
        make: Makes an item of what is kept of it.
        kept: What is kept of each.
    """

    def __init__(self, make: Callable[[Kept], Made], kept: Sequence[Kept]) -> None:
        self._make, self._kept = make, kept

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> Made: ...
    @overload
    def __getitem__(self, index: slice) -> "_Lazily[Kept, Made]": ...
    def __getitem__(self, index: int | slice) -> "Made | _Lazily[Kept, Made]":
        if isinstance(index, slice):
            return _Lazily(self._make, self._kept[index])
        return self._make(self._kept[index])


Format = Literal["gif", "mp4"]
Choice = Literal["first", "best", "worst", "longest"]
"""The episode that is filmed: by its number, its return or its length."""


_USUAL_COLOURS, _SPREAD_COLOURS = 176, 80
"""Numbers of a GIF's 256 colours chosen by frequency, and by distance from the others."""


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
    """The row whose episodes are filmed. None: the first row, or all of an evaluation's where
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
        """The score by which an episode is chosen; of equal ones, the first."""
        return {"first": 0.0, "best": reward, "worst": -reward, "longest": float(length)}[
            self.episodes
        ]


def require_writable(parameters: VideoParameters) -> None:
    """Raise `ConfigurationError` where a format needs a package that is not installed."""
    needed = ("imageio", "imageio_ffmpeg") if "mp4" in parameters.formats else ()
    if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
        raise ConfigurationError(
            f"MP4 videos need the package {missing[0].replace('_', '-')}, which is missing; "
            f"{how_to_install('video')}; or write GIFs"
        )


def write_video(shots: Sequence[Shot], path: Path, parameters: VideoParameters) -> list[Path]:
    """Write a film in every format of the parameters; files of these names are replaced.

    Args:
        shots: In order, one at least; frames of one size.
        path: Where to, without the format's ending; its folder is made.
        parameters: Formats, sizes and speed.

    Returns:
        The files.

    Raises:
        RunError: A file cannot be written.
    """
    images = _Lazily(lambda shot: captioned(shot, parameters.max_side), shots)
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

    Most colours go to the most frequent shades, so that a large floor is smooth; the others are
    spread over all shades there are, so that a small mark keeps its colour.
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
    imageio = importlib.import_module("imageio.v3")  # here, as it is an optional package
    height, width = (side - side % 2 for side in np.asarray(images[0]).shape[:2])  # for H.264
    held = round(parameters.frames_per_second * _LAST_FRAME_SECONDS)
    imageio.imwrite(
        path,
        (np.asarray(image)[:height, :width] for image in chain(images, repeat(images[-1], held))),
        is_batch=True,
        plugin="FFMPEG",
        extension=".mp4",
        fps=parameters.frames_per_second,
        quality=_MP4_QUALITY,
        macro_block_size=2,
        output_params=["-f", "mp4"],  # the file's name has another ending until it is complete
    )


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


class VideoWriter:
    """Writes films one after the other; those that wait are on disk, see `Film`.

    Args:
        parameters: Formats, sizes and speed.
    """

    def __init__(self, parameters: VideoParameters) -> None:
        self._parameters = parameters
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="videos")
        self._writing: list[tuple[Path, Future[list[Path]]]] = []
        self._written: list[Path] = []

    def write(self, film: Film, path: Path) -> None:
        """Write a film that is complete as soon as those before it are written.

        Args:
            film: Which.
            path: Where to, without the format's ending.
        """
        future = self._thread.submit(write_video, film.shots, path, self._parameters)
        self._writing.append((path, future))

    def written(self) -> list[Path]:
        """Return the files that `failures` has found to be written since the last call."""
        files, self._written = self._written, []
        return files

    def failures(self) -> list[tuple[Path, BaseException]]:
        """Return the videos that could not be written since the last call, and the errors."""
        done = [(path, future) for path, future in self._writing if future.done()]
        self._writing = [(path, future) for path, future in self._writing if not future.done()]
        self._written += [
            file for _, each in done if not each.exception() for file in each.result()
        ]
        return [(path, error) for path, future in done if (error := future.exception())]

    def close(self) -> None:
        """Wait until all films are written; harmless when repeated."""
        self._thread.shutdown()
