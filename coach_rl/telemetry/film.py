"""Films: the frames of an episode, evenly spread over it, kept on disk.

film = Film(max_frames=200)
if film.wants(step):
    film.add(frame, caption)
film.shots[-1].caption
"""

import os
import tempfile
import weakref
from collections.abc import Sequence
from typing import NamedTuple, Protocol, overload

import numpy as np
from PIL import Image

from coach_rl.core.records import Array

RGB = tuple[int, int, int]
"""Red, green and blue, each from 0 to 255."""
WHITE: RGB = (235, 235, 235)


class CaptionLine(NamedTuple):
    """A line under a frame."""

    text: str
    colour: RGB = WHITE
    has_dot: bool = False
    """True if a dot of that colour stands in front, as in a legend."""


class Shot(NamedTuple):
    """A frame and what stands under it."""

    frame: Array
    """uint8 [height, width, 3]."""
    caption: tuple[CaptionLine, ...]


class Reel(Protocol):
    """Takes the frames of an episode: a film, or a window that shows them at once."""

    def wants(self, step: int) -> bool:
        """Return whether it takes the frame after that many steps of the episode."""
        ...

    def add(self, frame: Array, caption: Sequence[CaptionLine] = ()) -> None:
        """Take a frame; the first is that of step 0."""
        ...

    def end(self, frame: Array, caption: Sequence[CaptionLine] = ()) -> None:
        """Take the episode's last frame, at whatever step it is."""
        ...


class Film:
    """The frames of one episode, evenly spread over it and never more than `max_frames`.

    How long an episode will be is not known while it lasts: when the film is full, every second
    frame goes, and half as many are taken from then on. Frames are kept in a temporary file.

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
        """The frames so far, each read from disk when it is asked for."""
        return _Shots(self._frames, tuple(self._kept))

    def wants(self, step: int) -> bool:
        """Return whether the film includes the frame after that many steps of the episode."""
        return step % self.frame_skip == 0

    def add(self, frame: Array, caption: Sequence[CaptionLine] = ()) -> None:
        """Take a frame; the first is that of step 0."""
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
        """Take the episode's last frame, which belongs in the film at whatever step it is."""
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


class _FrameFile:
    """Frames of one size in a temporary file, which is gone with the object or the process."""

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(prefix="coach_film_")  # noqa: SIM115 - closed with the object
        weakref.finalize(self, file.close)
        self._number = file.fileno()
        self._like = np.empty(0, np.uint8)
        self._free: list[int] = []
        self._places = 0

    def keep(self, frame: Array) -> int:
        """Write a frame; its place."""
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
        """Let another frame take a place."""
        self._free.append(place)

    def read(self, place: int) -> Array:
        """Return the frame at a place."""
        like = self._like
        data = os.pread(self._number, like.nbytes, place * like.nbytes)
        return np.frombuffer(data, like.dtype).reshape(like.shape)


class _Shots(Sequence[Shot]):
    """The frames of a film as it was."""

    def __init__(
        self, frames: _FrameFile, kept: tuple[tuple[int, tuple[CaptionLine, ...]], ...]
    ) -> None:
        self._frames, self._kept = frames, kept

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> Shot: ...
    @overload
    def __getitem__(self, index: slice) -> "_Shots": ...
    def __getitem__(self, index: int | slice) -> "Shot | _Shots":
        if isinstance(index, slice):
            return _Shots(self._frames, self._kept[index])
        place, caption = self._kept[index]
        return Shot(self._frames.read(place), caption)
