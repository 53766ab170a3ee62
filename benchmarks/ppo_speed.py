"""PPO's training speed beside Stable-Baselines3's, on identical work, in turn in one process.

Both train HalfCheetah-v5 on the CPU with one torch thread: 2048 samples per iteration, 10 epochs,
minibatches of 64, two 64-unit tanh networks, observations and returns normalised, TensorBoard
logging and a checkpoint per block. Stable-Baselines3 runs at its best public setting: in-process
environments and the fused Adam kernel. Each takes blocks of the same number of steps in
alternation, so the machine's drift hits both; the paired ratios and their median are what counts.
The first block of each (compilation, caches) is not counted.

    python benchmarks/ppo_speed.py --num-envs 1 8 --blocks 6
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from coach_rl.core.steps import EnvironmentSteps
from coach_rl.experiment.checkpoint import write_checkpoint
from coach_rl.experiment.preset_file import load_preset
from coach_rl.experiment.presets import find_preset
from coach_rl.graph_managers import BasicRLGraphManager, TaskParameters
from coach_rl.telemetry import CsvSink, JsonlSink, TensorBoardSink

ITERATION = 2048
Block = Callable[[], float]
"""Trains for one block, returns environment steps per second."""


@contextmanager
def coach_rl_blocks(num_envs: int, iterations: int, folder: Path) -> Iterator[Block]:
    """This engine, on the shipped preset."""
    manager = load_preset(find_preset("Mujoco_PPO")).build({"num_envs": num_envs})
    parameters = manager.parameters
    agent = replace(parameters.agent, update_mode="compiled")
    schedule = replace(parameters.schedule, evaluation_interval=None)
    manager = BasicRLGraphManager(replace(parameters, agent=agent, schedule=schedule))
    manager.create_graph(TaskParameters(device="cpu"))
    sinks = [
        JsonlSink(folder / "log.jsonl"),
        CsvSink(folder),
        TensorBoardSink(folder / "tensorboard"),
    ]

    def block() -> float:
        begin, before = time.perf_counter(), manager.clock.environment_steps
        for record in manager.train_and_act(EnvironmentSteps(iterations * ITERATION)):
            for sink in sinks:
                sink.write(record)
        path = folder / f"checkpoint_{manager.clock.environment_steps}"
        write_checkpoint(path, manager.state_dict(), {})
        return (manager.clock.environment_steps - before) / (time.perf_counter() - begin)

    yield block
    for sink in sinks:
        sink.close()
    manager.close()


@contextmanager
def stable_baselines3_blocks(num_envs: int, iterations: int, folder: Path) -> Iterator[Block]:
    """Stable-Baselines3 at its best public setting."""
    environments = VecNormalize(DummyVecEnv([lambda: gymnasium.make("HalfCheetah-v5")] * num_envs))
    model = PPO(
        "MlpPolicy",
        environments,
        n_steps=ITERATION // num_envs,
        batch_size=64,
        n_epochs=10,
        device="cpu",
        tensorboard_log=str(folder),
        policy_kwargs={"optimizer_kwargs": {"fused": True}},
    )
    steps = iterations * ITERATION
    save = CheckpointCallback(steps // num_envs, str(folder), save_vecnormalize=True)

    def block() -> float:
        begin = time.perf_counter()
        model.learn(steps, callback=save, reset_num_timesteps=False)
        return steps / (time.perf_counter() - begin)

    yield block
    environments.close()


def compare(num_envs: int, blocks: int, iterations: int) -> None:
    """Run both in turn and print a row a block, then the medians."""
    with (
        tempfile.TemporaryDirectory() as name,
        coach_rl_blocks(num_envs, iterations, Path(name, "coach_rl")) as ours,
        stable_baselines3_blocks(num_envs, iterations, Path(name, "sb3")) as theirs,
    ):
        ours()
        theirs()
        pairs = []
        for _ in range(blocks):
            pairs.append((ours(), theirs()))
            a, b = pairs[-1]
            print(
                f"{num_envs:3d} envs  coach_rl {a:7.0f}/s  SB3 {b:7.0f}/s  ratio {a / b:.2f}",
                flush=True,
            )
    medians = [statistics.median(column) for column in zip(*pairs, strict=True)]
    ratio = statistics.median(a / b for a, b in pairs)
    print(
        f"{num_envs:3d} envs  median coach_rl {medians[0]:.0f}/s  SB3 {medians[1]:.0f}/s  "
        f"paired ratio {ratio:.2f}",
        flush=True,
    )


def main() -> None:
    """Parse the command line and compare at each number of environments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-envs", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--blocks", type=int, default=6, help="counted blocks of each")
    parser.add_argument(
        "--iterations", type=int, default=5, help="iterations of 2048 samples a block"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for num_envs in arguments.num_envs:
        compare(num_envs, arguments.blocks, arguments.iterations)


if __name__ == "__main__":
    main()
