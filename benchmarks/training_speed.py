"""Training speed beside Stable-Baselines3's, on identical work, in turn in one process.

Both train HalfCheetah-v5 on the CPU with the same networks, minibatches and numbers of gradient
steps, TensorBoard logging on; this engine with the shipped preset, Stable-Baselines3 at its best
public setting: in-process environments and the fused Adam kernel. Each takes blocks of the same
number of steps in alternation, so the machine's drift hits both; the paired ratios and their median
are what counts. The first block of each (compilation, caches) is not counted.

PPO: 2048 samples an iteration, 10 epochs, minibatches of 64, two 64-unit tanh networks,
observations and returns normalised, a checkpoint a block. DDPG, TD3 and SAC: batches of 256, two
256-unit relu layers, a gradient step per environment step, no checkpoints (ours hold the memory).

    python benchmarks/training_speed.py PPO --num-envs 1 8 --blocks 6
    python benchmarks/training_speed.py DDPG TD3 SAC --threads 2 --steps 1500
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
from stable_baselines3 import DDPG, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers import BasicRLGraphManager
from coach_rl.runs.checkpoint import write_checkpoint
from coach_rl.telemetry import CsvSink, JsonlSink, TensorBoardSink

PPO_ITERATION = 2048
RANDOM_STEPS = 1_000
OFF_POLICY = {"DDPG": DDPG, "TD3": TD3, "SAC": SAC}
LEARNING_RATES = {"DDPG": 1e-3, "TD3": 3e-4, "SAC": 1e-3}
"""Of the presets."""
Block = Callable[[], float]
"""Trains for one block, returns environment steps per second."""
Clock = Callable[[], float]
"""Seconds."""


@contextmanager
def coach_rl_blocks(
    algorithm: str, num_envs: int, steps: int, folder: Path, clock: Clock
) -> Iterator[Block]:
    """This engine, on the shipped preset."""
    panel = {"num_envs": num_envs}
    if algorithm in OFF_POLICY:
        panel |= {"heatup": RANDOM_STEPS, "memory": 100_000}
    parameters = load_preset(find_preset(f"Mujoco_{algorithm}")).build(panel).parameters
    agent = replace(parameters.agent, update_mode="compiled")
    schedule = replace(parameters.schedule, evaluation_interval=None)
    manager = BasicRLGraphManager(replace(parameters, agent=agent, schedule=schedule))
    manager.create_graph(
        Runtime(
            device="cpu",
            threads=torch.get_num_threads(),
            matmul_precision=torch.get_float32_matmul_precision(),
        )
    )
    for _ in manager.heatup(schedule.heatup):
        pass
    sinks = [
        JsonlSink(folder / "log.jsonl"),
        CsvSink(folder),
        TensorBoardSink(folder / "tensorboard"),
    ]

    def block() -> float:
        begin, before = clock(), manager.graph.clock.environment_steps
        for record in manager.train_and_act(EnvironmentSteps(steps)):
            for sink in sinks:
                sink.write(record)
        if algorithm == "PPO":
            path = folder / f"checkpoint_{manager.graph.clock.environment_steps}"
            write_checkpoint(path, manager.state_dict(), {})
        return (manager.graph.clock.environment_steps - before) / (clock() - begin)

    yield block
    for sink in sinks:
        sink.close()
    manager.close()


@contextmanager
def stable_baselines3_blocks(
    algorithm: str, num_envs: int, steps: int, folder: Path, clock: Clock
) -> Iterator[Block]:
    """Stable-Baselines3 at its best public setting."""
    environments: VecEnv = DummyVecEnv([lambda: gymnasium.make("HalfCheetah-v5")] * num_envs)
    settings: dict[str, str] = {"device": "cpu", "tensorboard_log": str(folder)}
    policy: dict[str, object] = {"optimizer_kwargs": {"fused": True}}
    save = None
    if algorithm == "PPO":
        environments = VecNormalize(environments)
        model: BaseAlgorithm = PPO(
            "MlpPolicy",
            environments,
            n_steps=PPO_ITERATION // num_envs,
            batch_size=64,
            n_epochs=10,
            policy_kwargs=policy,
            **settings,
        )
        save = CheckpointCallback(steps // num_envs, str(folder), save_vecnormalize=True)
    else:
        model = OFF_POLICY[algorithm](
            "MlpPolicy",
            environments,
            learning_rate=LEARNING_RATES[algorithm],
            batch_size=256,
            buffer_size=100_000,
            learning_starts=RANDOM_STEPS,
            train_freq=1,
            gradient_steps=-1,  # as many as steps were taken
            policy_kwargs=policy | {"net_arch": [256, 256]},
            **settings,
        )
        model.learn(RANDOM_STEPS)

    def block() -> float:
        begin = clock()
        model.learn(steps, callback=save, reset_num_timesteps=False)
        return steps / (clock() - begin)

    yield block
    environments.close()


def compare(algorithm: str, num_envs: int, blocks: int, steps: int, clock: Clock) -> None:
    """Run both in turn and print a row a block, then the medians."""
    title = f"{algorithm} {num_envs:3d} envs {torch.get_num_threads()} threads"
    with (
        tempfile.TemporaryDirectory() as name,
        coach_rl_blocks(algorithm, num_envs, steps, Path(name, "coach_rl"), clock) as ours,
        stable_baselines3_blocks(algorithm, num_envs, steps, Path(name, "sb3"), clock) as theirs,
    ):
        ours()
        theirs()
        pairs = []
        for _ in range(blocks):
            pairs.append((ours(), theirs()))
            a, b = pairs[-1]
            print(
                f"{title}  coach_rl {a:7.0f}/s  SB3 {b:7.0f}/s  ratio {a / b:.2f}",
                flush=True,
            )
    medians = [statistics.median(column) for column in zip(*pairs, strict=True)]
    ratio = statistics.median(a / b for a, b in pairs)
    print(
        f"{title}  median coach_rl {medians[0]:.0f}/s  SB3 {medians[1]:.0f}/s  "
        f"paired ratio {ratio:.2f}",
        flush=True,
    )


def main() -> None:
    """Parse the command line and compare each algorithm at each number of environments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("algorithms", nargs="+", choices=["PPO", *OFF_POLICY])
    parser.add_argument("--num-envs", type=int, nargs="+", default=[1])
    parser.add_argument("--blocks", type=int, default=6, help="counted blocks of each")
    parser.add_argument("--steps", type=int, default=5 * PPO_ITERATION, help="of a block")
    parser.add_argument("--threads", type=int, default=1, help="of torch, for both")
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="count seconds of the processor, which other work on the machine bears on less",
    )
    parser.add_argument(
        "--matmul-precision", default="highest", help="highest, high or medium, for both"
    )
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision(arguments.matmul_precision)
    clock = time.process_time if arguments.processor_time else time.perf_counter
    torch.set_num_threads(arguments.threads)
    for algorithm in arguments.algorithms:
        for num_envs in arguments.num_envs:
            compare(algorithm, num_envs, arguments.blocks, arguments.steps, clock)


if __name__ == "__main__":
    main()
