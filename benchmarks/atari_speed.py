"""How fast are steps of an Atari game, beside the bare emulator and Gymnasium's wrapper?

python -m benchmarks.atari_speed [GAME] [--steps 3000]

Processor time on one core, random actions, protocol B's plain repeats of actions, best of three
turns. The bare loop plays four frames, reads two in grey and shrinks them by our `AreaMean`.
Gymnasium's `AtariPreprocessing` is measured where opencv is installed.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from coach_rl.environments.atari.emulator import Emulator
from coach_rl.environments.atari.game import PICTURE_SIZE, AtariGame
from coach_rl.environments.atari.parameters import AtariParameters
from coach_rl.environments.atari.pictures import AreaMean

ROWS = 8
TURNS = 3


def played(env: gymnasium.Env[Any, Any], steps: int) -> Callable[[], None]:
    """A loop that plays so many random actions, the same each time."""
    chosen = np.random.default_rng(0).integers(env.action_space.n, size=steps)

    def loop() -> None:
        env.reset(seed=0)
        for action in chosen:
            if env.step(action)[2]:
                env.reset()

    return loop


def bare(game: str, steps: int) -> Callable[[], None]:
    """A loop around the emulator."""
    emulator = Emulator(game)
    shrink = AreaMean(emulator.height, emulator.width, PICTURE_SIZE)
    newest = np.zeros((2, emulator.height, emulator.width), np.uint8)
    chosen = np.random.default_rng(0).choice(emulator.minimal_actions, steps).tolist()

    def loop() -> None:
        emulator.restart()
        for action in chosen:
            for frame in range(4):
                emulator.play(action)
                if frame >= 2:
                    emulator.read_grey(newest[frame - 2])
            shrink(np.maximum(newest[0], newest[1]))
            if emulator.is_over:
                emulator.restart()

    return loop


def single(game: str, steps: int) -> Callable[[], None]:
    """Our Gymnasium environment."""
    env = AtariGame(
        game,
        protocol="B",
        shows="picture",
        all_actions=False,
        frames_per_step=4,
        most_frames=108_000,
        most_steps=None,
    )
    return played(env, steps)


def rows(game: str, steps: int) -> Callable[[], None]:
    """Eight rows of an environment of the engine."""
    environment = AtariParameters(level=game, protocol="B").build(num_envs=ROWS)
    shape = (steps // ROWS, ROWS)
    chosen = np.random.default_rng(0).integers(environment.spaces.action.n, size=shape)

    def loop() -> None:
        environment.reset(seed=0)
        for actions in chosen:
            environment.send(actions)
            environment.recv()

    return loop


def gymnasium_wrapper(game: str, steps: int) -> Callable[[], None]:
    """Gymnasium's environment in its wrapper."""
    import ale_py

    gymnasium.register_envs(ale_py)
    name = "".join(part.capitalize() for part in game.split("_"))
    made = gymnasium.make(f"ALE/{name}-v5", frameskip=1, repeat_action_probability=0.0)
    env = gymnasium.wrappers.AtariPreprocessing(made, noop_max=30, frame_skip=4)
    return played(env, steps)


def seconds(loop: Callable[[], None]) -> float:
    """The least processor time of a turn."""
    found = []
    for _ in range(TURNS):
        begin = time.process_time()
        loop()
        found.append(time.process_time() - begin)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("game", nargs="?", default="pong")
    parser.add_argument("--steps", type=int, default=3_000)
    given = parser.parse_args()
    kinds = {"bare loop": bare, "AtariGame": single, f"{ROWS} rows of the engine": rows}
    if importlib.util.find_spec("cv2") is not None:
        kinds["Gymnasium's AtariPreprocessing"] = gymnasium_wrapper
    base = None
    for name, make in kinds.items():
        used = seconds(make(given.game, given.steps))
        base = base or used
        speed = given.steps / used
        print(f"| {name} | {speed:,.0f} | {base / used:.2f} |", flush=True)


if __name__ == "__main__":
    main()
