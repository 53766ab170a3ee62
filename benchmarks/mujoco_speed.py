"""Speed of the MuJoCo batch, beside Gymnasium's vector environments and bare `mj_step`.

    python benchmarks/mujoco_speed.py [--level HalfCheetah-v5] [--rounds 15] [--write]

All contenders of one size take turns, a fraction of a second each, so that a machine that slows
down slows all of them; the ratios are medians over rounds. Bare `mj_step` replays in each round
exactly what the batch has just simulated, from the same states with the same actions, on as many
threads, and does nothing else: no observations, rewards, resets or checks.
"""

import argparse
import os
import platform
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import numpy.typing as npt

from coach_rl.environments.mujoco import MujocoBatch, MujocoParameters

Vector = gymnasium.vector.VectorEnv
Actions = npt.NDArray[np.float32]
SIZES = ((1, 1), (8, 1), (8, 2), (16, 2), (64, 2))
"""Environments and threads."""
BATCH, RAW, RAW_ONE, SYNC, ASYNC = (
    "MujocoBatch",
    "raw mj_step, same threads",
    "raw mj_step, one thread",
    "make_vec sync",
    "make_vec async",
)
RESULTS = Path(__file__).parent / "results" / "mujoco_speed.md"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    envs: int
    threads: int
    contender: str
    steps_per_second: float
    low: float
    high: float
    of_raw: float
    """Share of the speed of bare `mj_step` on the same number of threads."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--level", default="HalfCheetah-v5", help="a Gymnasium id")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each contender")
    parser.add_argument("--seconds", type=float, default=0.25, help="length of a turn, roughly")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    rows: list[Row] = []
    for envs, threads in SIZES:
        rows += compare(options.level, envs, threads, options.rounds, options.seconds)
        print(table(rows[-5:]), "\n", flush=True)
    if options.write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(report(options.level, options.rounds, rows))


def compare(level: str, envs: int, threads: int, rounds: int, seconds: float) -> list[Row]:
    """Time the contenders in turns."""
    vectors: dict[str, Vector] = {
        name: gymnasium.make_vec(level, num_envs=envs, vectorization_mode=mode)
        for name, mode in ((ASYNC, "async"), (SYNC, "sync"))  # async forks: before any thread
    }
    parameters = MujocoParameters(level=level, threads=threads)
    batch, raw = parameters.build(num_envs=envs), Raw(parameters, envs)
    batch.reset(seed=0)
    for vector in vectors.values():
        vector.reset(seed=0)
    box = batch.spaces.action
    assert isinstance(box, gymnasium.spaces.Box)
    shape = (64, envs, *box.shape)
    actions = np.random.default_rng(0).uniform(box.low, box.high, shape).astype(np.float32)
    ticks = max(2, round(seconds / max(timed(play, batch, actions, 20) / 20, 1e-6)))
    rates: dict[str, list[float]] = {name: [] for name in (BATCH, RAW, RAW_ONE, SYNC, ASYNC)}
    for _ in range(rounds):
        start = batch.state_dict()["simulators"]
        rates[BATCH].append(ticks * envs / timed(play, batch, actions, ticks))
        for name, workers in ((RAW, threads), (RAW_ONE, 1)):
            raw.load(start)
            rates[name].append(ticks * envs / timed(raw.play, actions, ticks, workers))
        for name, vector in vectors.items():
            turns = max(1, ticks // 4)
            rates[name].append(turns * envs / timed(play_vector, vector, actions, turns))
    batch.close()
    for vector in vectors.values():
        vector.close()
    return [row(envs, threads, name, np.array(rate), rates) for name, rate in rates.items()]


def row(
    envs: int, threads: int, name: str, rate: npt.NDArray[np.float64], rates: dict[str, list[float]]
) -> Row:
    low, median, high = np.quantile(rate, (0.25, 0.5, 0.75))
    of_raw = float(np.median(rate / np.array(rates[RAW])))
    return Row(envs, threads, name, float(median), float(low), float(high), of_raw)


def timed(run: Callable[..., None], *arguments: object) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - start


def play(batch: MujocoBatch, actions: Actions, ticks: int) -> None:
    rows = np.arange(batch.num_envs)
    for tick in range(ticks):
        batch.send(actions[tick % len(actions)], rows)
        batch.recv()


def play_vector(vector: Vector, actions: Actions, ticks: int) -> None:
    for tick in range(ticks):
        vector.step(actions[tick % len(actions)])


class Raw:
    """Nothing but simulators: bare `mj_step` in the given number of threads."""

    def __init__(self, parameters: MujocoParameters, envs: int) -> None:
        self._model = parameters.task.load()
        self._frame_skip = parameters.task.frame_skip
        self._data = [mujoco.MjData(self._model) for _ in range(envs)]

    def load(self, states: npt.NDArray[np.float64]) -> None:
        """Go to where a batch was when it was saved."""
        for data, state in zip(self._data, states, strict=True):
            mujoco.mj_setState(self._model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)

    def play(self, actions: Actions, ticks: int, threads: int) -> None:
        """Each thread steps its own share."""
        shares = [range(first, len(self._data), threads) for first in range(threads)]
        helpers = [
            threading.Thread(target=self._work, args=(share, actions, ticks))
            for share in shares[1:]
        ]
        for helper in helpers:
            helper.start()
        self._work(shares[0], actions, ticks)
        for helper in helpers:
            helper.join()

    def _work(self, share: range, actions: Actions, ticks: int) -> None:
        model, frame_skip = self._model, self._frame_skip
        simulators = [(index, self._data[index], self._data[index].ctrl) for index in share]
        for tick in range(ticks):
            for index, data, control in simulators:
                control[:] = actions[tick % len(actions), index]
                mujoco.mj_step(model, data, frame_skip)


def table(rows: list[Row]) -> str:
    lines = [
        "| envs | threads | contender | steps/s (median) | quartiles | of raw, same threads |",
        "| ---: | ---: | --- | ---: | --- | ---: |",
    ]
    for one in rows:
        speed = f"{one.steps_per_second:,.0f} | {one.low:,.0f} to {one.high:,.0f}"
        lines.append(
            f"| {one.envs} | {one.threads} | {one.contender} | {speed} | {one.of_raw:.0%} |"
        )
    return "\n".join(lines)


def report(level: str, rounds: int, rows: list[Row]) -> str:
    return f"""# Speed of the MuJoCo batch: {level}

`python benchmarks/mujoco_speed.py --level {level} --rounds {rounds} --write`

{platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the end, this
benchmark included; Python {platform.python_version()}, MuJoCo {mujoco.__version__}, \
Gymnasium {gymnasium.__version__}, numpy {np.__version__}.

Medians over {rounds} rounds in which the contenders take turns. "threads" are those of the batch
and of the raw loop; `make_vec sync` uses one, `make_vec async` a process per environment. The raw
loop replays what the batch has just simulated and does nothing else, so its share is what is left
of `mj_step` per thread used. On a machine that is busy otherwise, two threads get less than two
processors: compare with the raw loop on the same threads.

{table(rows)}
"""


if __name__ == "__main__":
    main()
