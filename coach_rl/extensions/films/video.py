"""Films of episodes, and GIF or MP4 files of them.

film = Film(FilmParameters(max_frames=200))
if film.wants(step):
    film.add(picture, "step 8, return 3")
film.write(folder / "step_2048.gif")
"""

import importlib
import importlib.util
import math
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol

import numpy as np
from annotated_types import Ge
from PIL import Image, ImageDraw, ImageFont

from coach_rl.configuration.file_writing import replacing
from coach_rl.core.errors import ConfigurationError, RunError, how_to_install
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array

FRAMES_PER_SECOND = 25
_WHITE = (235, 235, 235)
_BACKGROUND = (20, 20, 24)
_CAPTION_HEIGHT = 15
"""Height of the caption, in pixels."""
_FONT_SIZE = 11
_MARGIN = 6
"""Room beside the caption, in pixels."""
_SAMPLED_FRAMES = 12
"""Frames a GIF's colours are chosen from."""
_LAST_FRAME_SECONDS = 1.5
_MP4_QUALITY = 7
"""Quality on imageio's scale of 0 to 10."""


@parameter_class
class FilmParameters:
    """Number and size of a film's frames."""

    frame_skip: Positive[int] = 1
    """Steps from one frame to the next; doubled whenever an episode is too long for
    `max_frames`."""
    max_frames: Annotated[int, Ge(2)] = 200
    """Frames of a video at most."""
    max_side: Annotated[int, Ge(32)] = 320
    """Width and height are scaled down to this many pixels at most, the caption not counted."""


_DEFAULTS = FilmParameters()


class Frame(NamedTuple):
    """A picture and the caption under it."""

    picture: Array
    """uint8 [height, width, 3]."""
    caption: str


class FrameSink(Protocol):
    """Receives the frames of episodes: a film, or a window that shows them at once."""

    def wants(self, step: int) -> bool:
        """Return whether the frame after that many steps of the episode is to be added."""
        ...

    def add(self, picture: Array, caption: str, *, is_last: bool = False) -> None:
        """Add a frame; the first of an episode is that of step 0.

        Args:
            picture: uint8 [height, width, 3].
            caption: The line under it.
            is_last: Whether it is the last of its episode, which is added at any step.
        """
        ...


class Film:
    """Frames evenly spread over an episode or several, never more than `max_frames` for each.

    The length of an episode is not known in advance: when the film is full, every second frame is
    dropped, and half as many are added from then on.

    Args:
        parameters: Number and size of the frames.
        episodes: Number of episodes.
        on_frame: Called after each frame with the number of frames so far, and of those expected.
    """

    def __init__(
        self,
        parameters: FilmParameters = _DEFAULTS,
        *,
        episodes: int = 1,
        on_frame: Callable[[int, int], None] = lambda _, __: None,
    ) -> None:
        self._on_frame = on_frame
        self._expected = 0
        self._max_frames = parameters.max_frames * episodes
        self._max_side = parameters.max_side
        self.frames: list[Frame] = []
        """The frames so far."""
        self.frame_skip = parameters.frame_skip
        """Steps from one frame to the next, by now."""

    def wants(self, step: int) -> bool:
        return step % self.frame_skip == 0

    def add(self, picture: Array, caption: str, *, is_last: bool = False) -> None:
        if len(self.frames) == self._max_frames:
            if is_last:
                self.frames.pop()
            elif not self._make_room():
                return
        frame = Frame(scaled(picture, self._max_side), caption)
        if self.frames and frame.picture.shape != self.frames[0].picture.shape:
            shapes = f"{frame.picture.shape} after {self.frames[0].picture.shape}"
            raise RunError(f"the pictures of a film must have one shape, got {shapes}")
        self.frames.append(frame)
        self._on_frame(len(self.frames), max(self._expected, len(self.frames)))

    def expect(self, steps: Sequence[int]) -> None:
        """Take frames as seldom as a film will have them in the end.

        Args:
            steps: The length of each of its episodes.
        """
        while (frames := self._frames_of(steps)) > self._max_frames:
            self.frame_skip *= 2
        self._expected = frames

    def _frames_of(self, steps: Sequence[int]) -> int:
        """Frames of episodes of these lengths: every so many steps, and the last."""
        return sum(1 + -(-each // self.frame_skip) for each in steps)

    def write(self, file: Path, *, slow: float = 1.0) -> None:
        """Write it as a video; a file of that name is replaced.

        Args:
            file: A .gif or .mp4; its folder is made.
            slow: How many times slower it plays than `FRAMES_PER_SECOND`.

        Raises:
            ConfigurationError: The file's name has another ending, or a package is missing.
            RunError: The file cannot be written.
        """
        require_writable(file.name)
        images = [captioned(frame) for frame in self._readable()]
        speed = max(1, round(FRAMES_PER_SECOND / slow))
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(file, file.with_name(f".{file.name}.new")) as unfinished:
                _WRITERS[_format(file.name)](images, unfinished, speed)
        except (OSError, RuntimeError) as error:
            raise RunError(f"cannot write the video {file}: {error}") from error

    def _readable(self) -> list[Frame]:
        """The frames, enlarged by one whole factor where their captions are wider than they are.

        By less where `max_side` would be exceeded.
        """
        if not self.frames:
            return []
        height, width = self.frames[0].picture.shape[:2]
        needed = max(_width(frame.caption) for frame in self.frames)
        most = max(1, self._max_side // max(height, width))
        return [enlarged(frame, min(most, -(-needed // width))) for frame in self.frames]

    def _make_room(self) -> bool:
        """Drop every second frame; return whether the next one is among the steps that remain."""
        is_wanted = len(self.frames) % 2 == 0
        self.frames = self.frames[::2]
        self.frame_skip *= 2
        return is_wanted


def scaled(picture: Array, max_side: int) -> Array:
    """The picture [height, width, 3], scaled down if a side is longer than `max_side`."""
    height, width = picture.shape[:2]
    scale = max_side / max(height, width)
    if scale >= 1:
        return np.array(picture, order="C")
    size = max(1, round(width * scale)), max(1, round(height * scale))
    image = Image.fromarray(np.ascontiguousarray(picture)).resize(size, Image.Resampling.BOX)
    return np.asarray(image)


def captioned(frame: Frame) -> Image.Image:
    """The picture above its caption."""
    height, width = frame.picture.shape[:2]
    image = Image.new("RGB", (width, height + _CAPTION_HEIGHT), _BACKGROUND)
    image.paste(Image.fromarray(frame.picture), (0, 0))
    font = ImageFont.load_default(size=_FONT_SIZE)
    ImageDraw.Draw(image).text((_MARGIN, height), frame.caption, fill=_WHITE, font=font)
    return image


def enlarged(frame: Frame, factor: int) -> Frame:
    """The frame with a picture that is so many times as wide and as high."""
    return frame._replace(picture=frame.picture.repeat(factor, 0).repeat(factor, 1))


def _width(caption: str) -> int:
    """Width of a picture that shows a whole caption, in pixels."""
    text = ImageFont.load_default(size=_FONT_SIZE).getlength(caption)
    return math.ceil(text) + 2 * _MARGIN


def require_writable(*names: str) -> None:
    """Raise `ConfigurationError` if files of these names or formats can't be written as videos."""
    for name in names:
        if _format(name) not in _WRITERS:
            raise ConfigurationError(
                f"a video is a .gif or an .mp4 file, got '{name}'; give a name that ends so"
            )
    needed = ("imageio", "imageio_ffmpeg") if "mp4" in map(_format, names) else ()
    if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
        raise ConfigurationError(
            f"MP4 videos need the package {missing[0].replace('_', '-')}, which is missing; "
            f"{how_to_install('video')}; or write GIFs"
        )


def _format(name: str) -> str:
    """The format of a video by the end of its file's name."""
    return name.rpartition(".")[2].lower()


def _write_gif(images: Sequence[Image.Image], file: Path, frames_per_second: int) -> None:
    """All frames share one set of colours: theirs would flicker, and take more room."""
    sampled = images[:: -(-len(images) // _SAMPLED_FRAMES)]
    samples = Image.fromarray(np.concatenate([np.asarray(image) for image in sampled]))
    palette = samples.quantize(256, method=Image.Quantize.FASTOCTREE)  # keeps rare colours
    reduced = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    milliseconds = [round(1000 / frames_per_second)] * len(reduced)
    milliseconds[-1] = round(1000 * _LAST_FRAME_SECONDS)
    reduced[0].save(
        file,
        format="GIF",
        save_all=True,
        append_images=reduced[1:],
        duration=milliseconds,
        loop=0,
    )


def _write_mp4(images: Sequence[Image.Image], file: Path, frames_per_second: int) -> None:
    imageio = importlib.import_module("imageio.v3")  # here, as it is an optional package
    width, height = (side - side % 2 for side in images[0].size)  # for H.264
    held = round(frames_per_second * _LAST_FRAME_SECONDS)
    imageio.imwrite(
        file,
        (np.asarray(image)[:height, :width] for image in chain(images, repeat(images[-1], held))),
        is_batch=True,
        plugin="FFMPEG",
        extension=".mp4",
        fps=frames_per_second,
        quality=_MP4_QUALITY,
        macro_block_size=2,
        output_params=["-f", "mp4"],  # the file's name has another ending until it is complete
    )


_WRITERS = {"gif": _write_gif, "mp4": _write_mp4}
