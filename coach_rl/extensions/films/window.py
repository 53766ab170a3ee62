"""A window that shows the frames of episodes as they are played.

with closing(Window("half_cheetah")) as window:
    window.add(picture, caption)                # waits until it is time for the next
    print(window.is_closed)

Keys: space pauses; right shows the next frame while it pauses; up and down change the speed; q or
escape closes.
"""

import os
import sys

import pygame

from coach_rl.core.errors import RunError
from coach_rl.core.records import Array
from coach_rl.extensions.films.video import FRAMES_PER_SECOND, Frame, captioned, scaled

KEYS = "space pauses, right steps, up and down change the speed, q quits"
_MAX_SIDE, _MIN_SIDE = 720, 320
_POLLS = 50
"""Times a second that the keyboard is polled while it waits."""
_FASTEST = 8.0
_SLOWEST = 0.125
_LAST_FRAME_SECONDS = 1.0


class Window:
    """Frames on the screen.

    Args:
        title: The window's title.
        slow: How many times slower it plays than a video.

    Raises:
        RunError: No window can be opened.
    """

    def __init__(self, title: str, *, slow: float = 1.0) -> None:
        self.is_closed = False
        """True once the user has closed it."""
        self._title = title
        self._speed = 1.0
        self._frame_seconds = slow / FRAMES_PER_SECOND
        self._is_paused = self._steps = False
        self._shown_at = 0
        if not has_display():
            raise RunError("there is no display to open a window on")
        # SDL would draw with OpenGL, in the way of simulators that draw with it in this thread.
        os.environ.setdefault("SDL_FRAMEBUFFER_ACCELERATION", "0")
        try:
            pygame.display.init()
        except pygame.error as error:
            raise RunError(f"cannot open a window: {error}") from error

    def wants(self, step: int) -> bool:  # noqa: ARG002 - it shows every frame
        return not self.is_closed

    def add(self, picture: Array, caption: str, *, is_last: bool = False) -> None:
        if self.is_closed:
            return
        scale = max(1, _MIN_SIDE // max(1, min(picture.shape[:2])))
        enlarged = picture.repeat(scale, 0).repeat(scale, 1)
        image = captioned(Frame(scaled(enlarged, _MAX_SIDE), caption))
        try:
            self._draw(image.tobytes(), image.size)
        except pygame.error as error:
            raise RunError(f"cannot open a window: {error}") from error
        self._wait(_LAST_FRAME_SECONDS if is_last else self._frame_seconds)

    def close(self) -> None:
        """Close it; harmless when repeated."""
        self.is_closed = True
        pygame.display.quit()

    def _draw(self, pixels: bytes, size: tuple[int, int]) -> None:
        screen = pygame.display.get_surface()
        if screen is None or screen.get_size() != size:
            screen = pygame.display.set_mode(size)
        screen.blit(pygame.image.frombuffer(pixels, size, "RGB"), (0, 0))
        pygame.display.set_caption(self._title + self._state())
        pygame.display.flip()

    def _state(self) -> str:
        if self._is_paused:
            return " - paused"
        return "" if self._speed == 1 else f" - speed {self._speed:g}"

    def _wait(self, seconds: float) -> None:
        """Handle keys until the frame has been shown that long, or as long as it pauses."""
        self._steps = False
        while not self.is_closed:
            for event in pygame.event.get():
                self._handle(event)
            left = self._shown_at + 1000 * seconds / self._speed - pygame.time.get_ticks()
            if self.is_closed or self._steps or (left <= 0 and not self._is_paused):
                break
            pygame.time.wait(round(1000 / _POLLS if self._is_paused else min(left, 1000 / _POLLS)))
        self._shown_at = pygame.time.get_ticks()

    def _handle(self, event: pygame.event.Event) -> None:
        if event.type == pygame.QUIT:
            self.is_closed = True
        if event.type != pygame.KEYDOWN:
            return
        if event.key in (pygame.K_q, pygame.K_ESCAPE):
            self.is_closed = True
        elif event.key == pygame.K_SPACE:
            self._is_paused = not self._is_paused
        elif event.key == pygame.K_RIGHT:
            self._steps = True
        elif event.key == pygame.K_UP:
            self._speed = min(_FASTEST, self._speed * 2)
        elif event.key == pygame.K_DOWN:
            self._speed = max(_SLOWEST, self._speed / 2)
        pygame.display.set_caption(self._title + self._state())


def has_display() -> bool:
    """Return whether a window could be opened here."""
    if "SDL_VIDEODRIVER" in os.environ or sys.platform == "darwin":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
