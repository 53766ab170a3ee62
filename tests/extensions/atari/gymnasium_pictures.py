"""Pictures of games by Gymnasium's `AtariPreprocessing`, recorded once; needs opencv.

python -m tests.extensions.atari.gymnasium_pictures     # writes gymnasium_pictures.npy.xz
"""

import lzma
from collections.abc import Iterator
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).with_suffix(".npy.xz")
GAMES = {
    "breakout": "Breakout",
    "enduro": "Enduro",
    "ms_pacman": "MsPacman",
    "pong": "Pong",
    "qbert": "Qbert",
    "space_invaders": "SpaceInvaders",
}
PICTURES = 2_000


STEPS = -(-PICTURES // len(GAMES))
"""Pictures of each game."""


def actions(number: int) -> Iterator[int]:
    """Random actions of a game with so many."""
    rng = np.random.default_rng(1)
    while True:
        yield int(rng.integers(number))


def recorded() -> dict[str, np.ndarray]:
    """The pictures on which actions were chosen, by game, uint8 [T, 84, 84]."""
    with lzma.open(RECORDED) as file:
        pictures = np.load(file)
    return dict(zip(GAMES, np.split(pictures, len(GAMES)), strict=True))


def record() -> None:
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    pictures = []
    for name in GAMES.values():
        bare = gymnasium.make(f"ALE/{name}-v5", frameskip=1, repeat_action_probability=0.0)
        env = gymnasium.wrappers.AtariPreprocessing(bare, noop_max=0, frame_skip=4)
        chosen = actions(env.action_space.n)
        picture, _ = env.reset(seed=0)
        for _ in range(STEPS):
            pictures.append(picture)
            picture, _, terminated, _, _ = env.step(next(chosen))
            if terminated:  # its last picture is of an earlier frame, see the test
                picture, _ = env.reset()
    with lzma.open(RECORDED, "w", preset=9) as file:
        np.save(file, np.array(pictures, np.uint8))


if __name__ == "__main__":
    record()
