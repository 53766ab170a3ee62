"""How fast are steps of an Atari game, beside the bare emulator and Gymnasium's wrapper?

python -m benchmarks.atari_speed [GAME] [--steps 3000]

Processor time on one core, random actions, protocol B's plain repeats of actions. The kinds take
turns, and the median of their ratios to the bare loop in the same turn is printed. The bare loop
plays four frames, reads two in grey and shrinks them by our `AreaMean`; with eight emulators in
turn it has as much to load into the processor's cache as eight rows. Gymnasium's
`AtariPreprocessing` is measured where opencv is installed.

The last lines are about worker processes: how many steps eight rows would make in two processes on
two free cores, by the processor time of each, beside one row in this process.
"""

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import psutil  # type: ignore[import-untyped]  # has no types

from coach_rl.environments.atari.emulator import Emulator
from coach_rl.environments.atari.game import PICTURE_SIZE, AtariGame
from coach_rl.environments.atari.parameters import AtariParameters
from coach_rl.environments.atari.pictures import AreaMean

ROWS = 8
WORKERS = 2


def played(env: gymnasium.Env[Any, Any], steps: int) -> Callable[[], None]:
    """A loop that plays so many random actions, the same each time."""
    chosen = np.random.default_rng(0).integers(env.action_space.n, size=steps)

    def loop() -> None:
        env.reset(seed=0)
        for action in chosen:
            if env.step(action)[2]:
                env.reset()

    return loop


def bare(game: str, steps: int, count: int = 1) -> Callable[[], None]:
    """A loop around so many emulators in turn."""
    emulators = [Emulator(game) for _ in range(count)]
    first = emulators[0]
    shrink = AreaMean(first.height, first.width, PICTURE_SIZE)
    newest = np.zeros((2, first.height, first.width), np.uint8)
    chosen = np.random.default_rng(0).choice(first.minimal_actions, steps).tolist()

    def loop() -> None:
        for emulator in emulators:
            emulator.restart()
        for number, action in enumerate(chosen):
            emulator = emulators[number % count]
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


def bare_rows(game: str, steps: int) -> Callable[[], None]:
    """The loop around eight emulators."""
    return bare(game, steps, ROWS)


def seconds(loop: Callable[[], None]) -> float:
    """The processor time of a turn."""
    begin = time.process_time()
    loop()
    return time.process_time() - begin


def in_workers(game: str, steps: int) -> Callable[[], float]:
    """A function that returns the time of a turn of eight rows in worker processes.

    The processor time of this process and that of the worker that took longest, which would run
    beside the others on cores of their own.
    """
    settings = AtariParameters(
        level=game, protocol="B", vectorization="subprocess", processes=WORKERS
    )
    environment = settings.build(num_envs=ROWS)
    environment.reset(seed=0)
    processes = psutil.Process().children(recursive=True)
    actions = np.random.default_rng(0).integers(
        environment.spaces.action.n, size=(steps // ROWS, ROWS)
    )

    def used() -> list[float]:
        return [sum(each.cpu_times()[:2]) for each in processes]

    def turn() -> float:
        before = used()
        begin = time.process_time()
        for chosen in actions:
            environment.send(chosen)
            environment.recv()
        own = time.process_time() - begin
        return own + max(b - a for a, b in zip(before, used(), strict=True))

    return turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("game", nargs="?", default="pong")
    parser.add_argument("--steps", type=int, default=3_000)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    kinds = {
        "bare loop": bare,
        f"bare loop, {ROWS} emulators in turn": bare_rows,
        "`AtariGame`": single,
        f"{ROWS} rows of `AtariParameters`": rows,
    }
    if importlib.util.find_spec("cv2") is not None:
        kinds["Gymnasium's `AtariPreprocessing`"] = gymnasium_wrapper
    turns: dict[str, Callable[[], float]] = {
        name: partial(seconds, make(given.game, given.steps)) for name, make in kinds.items()
    }
    workers = f"{ROWS} rows in {WORKERS} worker processes"
    turns[workers] = in_workers(given.game, given.steps)
    used: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(given.turns):
        for name, turn in turns.items():
            used[name].append(turn())
    for name, found in used.items():
        ratio = statistics.median(b / a for a, b in zip(found, used["bare loop"], strict=True))
        print(f"| {name} | {given.steps / min(found):,.0f} | {ratio:.2f} |")
    one = used["`AtariGame`"]
    ratio = statistics.median(b / a for a, b in zip(used[workers], one, strict=True))
    print(f"{workers} beside one row: {ratio:.2f}")


if __name__ == "__main__":
    main()
