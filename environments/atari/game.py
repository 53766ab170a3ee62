"""An Atari game as a Gymnasium environment: pictures or memory, protocols, its own state."""

from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from coach_rl.core.records import Array
from coach_rl.core.state import State
from coach_rl.environments.atari.emulator import FIRE, NOOP, Emulator
from coach_rl.environments.atari.pictures import AreaMean

Protocol = Literal["A", "B"]
"""The conditions of a game. A: each frame repeats the action of the one before with probability
0.25, and nothing else is changed (Machado et al. 2018, arXiv:1709.06009). B, as RL Baselines3 Zoo's
and CleanRL's NoFrameskip-v4: actions are never repeated, a game begins with up to 30 no-op actions,
and games that wait for the fire button get it at the start of each life."""
Shown = Literal["picture", "memory"]
"""Observations of a game."""

STICKINESS = 0.25
"""Probability of a repeated action in protocol A."""
MOST_NOOPS = 30
"""Largest number of frames with no-op actions at the start of a game in protocol B."""
PICTURE_SIZE = 84
"""Pixels of a picture in both directions."""
LIFE_LOST = "life_lost"
"""Info: True where a life was lost and the game continues."""
FRAMES = "frames"
"""Info: emulator frames of the step."""


class AtariGame(gymnasium.Env[Array, np.int64]):
    """One game, of which an action lasts several frames.

    A picture is grey: the maximum of the last two frames, as sprites may be drawn in every other
    one, shrunk to 84 x 84 pixels by the mean over areas. Where the game ends in the middle of a
    step, it is that of the last frame. A lost life does not end an episode; the info `life_lost`
    shows it.

    Args:
        game: The game's name.
        protocol: See `Protocol`.
        shows: Observations: grey pictures, uint8 [84, 84], or the console's 128 bytes of memory,
            scaled to [0, 1], float32 [128].
        all_actions: Whether there are all 18 actions of the joystick, else those that have an
            effect.
        frames_per_step: Frames that an action lasts.
        random_actions: Probability that an action is replaced by a random one.
        most_frames: Frames after which an episode is truncated.
        most_steps: Steps after which it is truncated; None: only `most_frames` counts.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012
    render_mode = "rgb_array"

    def __init__(
        self,
        game: str,
        *,
        protocol: Protocol,
        shows: Shown,
        all_actions: bool,
        frames_per_step: int,
        random_actions: float = 0.0,
        most_frames: int,
        most_steps: int | None,
    ) -> None:
        self._emulator = Emulator(game)
        emulator = self._emulator
        self._codes = emulator.all_actions if all_actions else emulator.minimal_actions
        self._is_sticky = protocol == "A"
        self._fires = protocol == "B" and FIRE in emulator.minimal_actions
        self._shows_picture = shows == "picture"
        self._frames_per_step = frames_per_step
        self._random_actions = random_actions
        self._most_frames = most_frames
        self._most_steps = most_steps or most_frames
        self.action_space = spaces.Discrete(len(self._codes))
        self.observation_space: spaces.Box
        if self._shows_picture:
            shape = (PICTURE_SIZE, PICTURE_SIZE)
            self.observation_space = spaces.Box(0, 255, shape, np.uint8)
        else:
            self.observation_space = spaces.Box(0, 1, (emulator.memory_size,), np.float32)
        self._shrink = AreaMean(emulator.height, emulator.width, PICTURE_SIZE)
        self._newest: Array = np.zeros((2, emulator.height, emulator.width), np.uint8)
        """The last two frames, in grey: those with an even and an odd number."""
        self._lives = 0
        self._frames = 0
        """Frames of the episode."""
        self._steps = 0
        """Steps of the episode."""
        self._waits_for_fire = False
        """True if the next step begins with the fire button."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._emulator.restart()
        self._frames = 0
        self._steps = 0
        if not self._is_sticky:
            for _ in range(int(self.np_random.integers(1, MOST_NOOPS + 1))):
                self._play_frame(NOOP)
        if self._fires:
            self._fire()
        self._lives = self._emulator.lives
        self._waits_for_fire = False
        self._emulator.read_grey(self._newest[0])
        self._newest[1] = self._newest[0]
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        before = self._frames
        reward = self._fire() if self._waits_for_fire else 0.0
        self._waits_for_fire = False
        reward += self._hold(self._codes[self._chosen(int(action))])
        self._steps += 1
        emulator = self._emulator
        is_over = emulator.is_over
        is_late = self._frames >= self._most_frames or self._steps >= self._most_steps
        lives = emulator.lives
        is_life_lost = lives < self._lives and not is_over
        self._waits_for_fire = is_life_lost and self._fires
        self._lives = lives
        info = {LIFE_LOST: is_life_lost, FRAMES: self._frames - before}
        return self._observation(), reward, is_over, is_late and not is_over, info

    def render(self) -> Array:
        """The screen in its colours, uint8 [height, width, 3]; 210 x 160 in most games."""
        return self._emulator.colours()

    def close(self) -> None:
        self._emulator.close()

    def save_state(self) -> State:
        """See `OffersState`; `np_random` is saved beside it."""
        return {
            "emulator": self._emulator.save_state(),
            "newest": self._newest.copy(),
            "lives": self._lives,
            "frames": self._frames,
            "steps": self._steps,
            "waits_for_fire": self._waits_for_fire,
        }

    def restore_state(self, state: State) -> None:
        """Continue where the state was saved."""
        self._emulator.restore_state(state["emulator"])
        self._newest[:] = state["newest"]
        self._lives = int(state["lives"])
        self._frames = int(state["frames"])
        self._steps = int(state["steps"])
        self._waits_for_fire = bool(state["waits_for_fire"])

    def _chosen(self, action: int) -> int:
        """The action that is played."""
        if self._random_actions and self.np_random.random() < self._random_actions:
            return int(self.np_random.integers(len(self._codes)))
        return action

    def _hold(self, code: int) -> float:
        """The reward of an action's frames, the last two of which are kept."""
        emulator = self._emulator
        count = self._frames_per_step
        reward = 0.0
        for number, is_repeated in enumerate(self._repeats()):
            reward += self._play_frame(emulator.last_action if is_repeated else code)
            is_last = emulator.is_over or self._frames >= self._most_frames
            if is_last or number >= count - 2:
                newest = self._newest[self._frames % 2]
                emulator.read_grey(newest)
            if is_last:
                if number < count - 1:  # the frame before was not read
                    self._newest[:] = newest
                break
        return reward

    def _repeats(self) -> list[bool]:
        """True where a frame of a step repeats the action of the frame before."""
        count = self._frames_per_step
        if not self._is_sticky:
            return [False] * count
        drawn: list[bool] = (self.np_random.random(count) < STICKINESS).tolist()
        return drawn

    def _fire(self) -> float:
        """The reward of a step with the fire button, and of one with the action after it.

        Some games begin with the second of these.
        """
        emulator = self._emulator
        place = emulator.minimal_actions.index(FIRE)
        reward = 0.0
        for code in emulator.minimal_actions[place : place + 2]:
            for _ in range(self._frames_per_step):
                reward += self._play_frame(code)
        emulator.read_grey(self._newest[self._frames % 2])  # seen where a step has one frame
        return reward

    def _play_frame(self, code: int) -> float:
        self._frames += 1
        return self._emulator.play(code)

    def _observation(self) -> Array:
        if self._shows_picture:
            return self._shrink(np.maximum(self._newest[0], self._newest[1]))
        return self._emulator.memory().astype(np.float32) / 255
