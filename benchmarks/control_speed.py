"""How fast are steps of a task of the Control Suite, beside dm_control's bare loop?

python -m benchmarks.control_speed [TASK ...] [--steps 2000] [--pictures]

Processor time on one core, random actions, the best of three turns. The bare loop
steps dm_control's environment, and with `--pictures` draws 84 x 84 pixels after each action.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from coach_rl.environments.dm_control.control_task import ControlTask
from coach_rl.environments.dm_control.parameters import DMControlParameters
from coach_rl.environments.dm_control.pictures import Camera
from coach_rl.environments.dm_control.tasks import load_suite, usual_repeat

ROWS = 8
TURNS = 3
Loop = Callable[[], None]


def bare(task: str, steps: int, *, pictures: bool) -> Loop:
    """A loop around dm_control's environment."""
    domain, _, name = task.partition("-")
    env = load_suite().load(domain, name, task_kwargs={"random": 0})
    repeat = usual_repeat(task) if pictures else 1
    camera = Camera(env.physics, number=0, height=84, width=84) if pictures else None
    chosen = np.random.default_rng(0).uniform(-1, 1, (steps, *env.action_spec().shape))

    def loop() -> None:
        env.reset()
        for action in chosen:
            for _ in range(repeat):
                if env.step(action).last():
                    env.reset()
                    break
            if camera is not None:
                camera.picture()

    return loop


def single(task: str, steps: int, *, pictures: bool) -> Loop:
    """Our Gymnasium environment."""
    env = ControlTask(
        task,
        shows="picture" if pictures else "vector",
        action_repeat=usual_repeat(task) if pictures else 1,
        picture_size=84,
        camera=0,
        most_steps=None,
    )
    shape = (steps, *env.action_space.shape)
    chosen = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)

    def loop() -> None:
        env.reset(seed=0)
        for action in chosen:
            if env.step(action)[3]:
                env.reset()

    return loop


def rows(task: str, steps: int, *, pictures: bool, count: int) -> Loop:
    """Rows of an environment of the engine."""
    environment = DMControlParameters(
        level=task,
        shows="picture" if pictures else "vector",
        action_repeat=usual_repeat(task) if pictures else 1,
    ).build(num_envs=count)
    shape = (steps // count, count, *environment.spaces.action.shape)
    chosen = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)

    def loop() -> None:
        environment.reset(seed=0)
        for actions in chosen:
            environment.send(actions)
            environment.recv()

    return loop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=["cheetah-run"])
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--pictures", action="store_true")
    given = parser.parse_args()
    for task in given.tasks:
        loops = {
            "bare loop": bare(task, given.steps, pictures=given.pictures),
            "ControlTask": single(task, given.steps, pictures=given.pictures),
            "1 row": rows(task, given.steps, pictures=given.pictures, count=1),
            f"{ROWS} rows": rows(task, given.steps, pictures=given.pictures, count=ROWS),
        }
        seconds = {name: float("inf") for name in loops}
        for _ in range(TURNS):
            for name, loop in loops.items():
                begin = time.process_time()
                loop()
                seconds[name] = min(seconds[name], time.process_time() - begin)
        for name, taken in seconds.items():
            share = seconds["bare loop"] / taken
            print(f"{task}, {name}: {given.steps / taken:,.0f} steps/s, {share:.2f}", flush=True)


if __name__ == "__main__":
    main()
