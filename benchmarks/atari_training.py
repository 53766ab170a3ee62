"""Training speed on an Atari game beside Stable-Baselines3's, and beside the bare torch passes.

    python -m benchmarks.atari_training PPO DQN --peer /path/to/python --rounds 5

Equal work under protocol B: a round of PPO plays 1,024 steps (`--steps`) in 8 rows and learns from
them in 4 epochs of minibatches of 256; one of DQN plays as many with a gradient step from 32
transitions after every four. The networks are those of Mnih et al. 2015, on one thread. Each side
is a process of its own, Stable-Baselines3 in the Python that is named, with the fused Adam kernel.
They take turns, so that the machine's other work slows all of them; processor time counts, and
ratios of a round.
"""

import argparse
import importlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

Round = Callable[[], object]
ROWS = 8
MINIBATCH = 256
LEARNING_STARTS = 1_600
MEMORY = 20_000
SIDES = ("coach_rl", "stable_baselines3", "bare")


def coach_rl(algorithm: str, game: str, steps: int, mode: str) -> Round:
    """Rounds of this engine, with the shipped preset."""
    presets = importlib.import_module("coach_rl.configuration.presets")
    preset_file = importlib.import_module("coach_rl.configuration.preset_file")
    rl = importlib.import_module("coach_rl")
    panel: dict[str, object] = {"level": game, "protocol": "B", "agent.update_mode": mode}
    if algorithm == "DQN":
        panel |= {"learning_starts": LEARNING_STARTS, "memory": MEMORY}
    else:
        panel |= {"rollout": steps}
    preset = preset_file.load_preset(presets.find_preset(f"Atari_{algorithm}"))
    manager = preset.configure(panel)
    manager.create_graph(rl.Runtime(seed=0, device="cpu", threads=1))

    def played(count: int) -> None:
        for _ in manager.train_and_act(rl.EnvironmentSteps(count)):
            pass

    if algorithm == "DQN":
        played(LEARNING_STARTS)
    return lambda: played(steps)


def stable_baselines3(algorithm: str, game: str, steps: int, _mode: str) -> Round:
    """Rounds of Stable-Baselines3."""
    gymnasium = importlib.import_module("gymnasium")
    gymnasium.register_envs(importlib.import_module("ale_py"))
    sb3 = importlib.import_module("stable_baselines3")
    util = importlib.import_module("stable_baselines3.common.env_util")
    vectors = importlib.import_module("stable_baselines3.common.vec_env")
    name = "".join(part.capitalize() for part in game.split("_"))
    made = util.make_atari_env(f"{name}NoFrameskip-v4", n_envs=ROWS, seed=0)
    settings: dict[str, Any] = {
        "env": vectors.VecFrameStack(made, n_stack=4),
        "device": "cpu",
        "policy_kwargs": {"optimizer_kwargs": {"fused": True}},
    }
    if algorithm == "PPO":
        model = sb3.PPO(
            "CnnPolicy",
            n_steps=steps // ROWS,
            batch_size=MINIBATCH,
            n_epochs=4,
            learning_rate=2.5e-4,
            clip_range=0.1,
            ent_coef=0.01,
            vf_coef=0.5,
            **settings,
        )
        return lambda: model.learn(steps, reset_num_timesteps=False)
    model = sb3.DQN(
        "CnnPolicy",
        buffer_size=MEMORY,
        learning_starts=LEARNING_STARTS,
        batch_size=32,
        train_freq=1,
        gradient_steps=ROWS // 4,
        target_update_interval=1_000,
        learning_rate=1e-4,
        **settings,
    )
    model.learn(LEARNING_STARTS + ROWS)
    return lambda: model.learn(steps, reset_num_timesteps=False)


def bare(algorithm: str, _game: str, steps: int, _mode: str) -> Round:
    """The forward and backward passes of a round alone, channels last, with a fused Adam."""
    layers = torch.nn.Sequential(
        *(torch.nn.Conv2d(4, 32, 8, 4), torch.nn.ReLU()),
        *(torch.nn.Conv2d(32, 64, 4, 2), torch.nn.ReLU()),
        *(torch.nn.Conv2d(64, 64, 3, 1), torch.nn.ReLU()),
        *(torch.nn.Flatten(), torch.nn.Linear(3136, 512), torch.nn.ReLU()),
        torch.nn.Linear(512, 7),
    ).to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(layers.parameters(), fused=True)

    shown = torch.randint(0, 256, (MINIBATCH, 84, 84, 4), dtype=torch.uint8)

    def pictures(count: int) -> torch.Tensor:
        return shown[:count].permute(0, 3, 1, 2).float() / 255

    def learn(batch: int, *, passes_before: int) -> None:
        seen = pictures(batch)
        with torch.no_grad():
            for _ in range(passes_before):
                layers(seen)
        optimizer.zero_grad()
        layers(seen).square().mean().backward()
        optimizer.step()

    def act(times: int) -> None:
        with torch.no_grad():
            for _ in range(times):
                layers(pictures(ROWS))

    def ppo() -> None:
        act(steps // ROWS)
        for _ in range(4 * steps // MINIBATCH):
            learn(MINIBATCH, passes_before=0)

    def dqn() -> None:
        act(steps // ROWS)
        for _ in range(steps // 4):
            learn(32, passes_before=1)  # of the target network

    return ppo if algorithm == "PPO" else dqn


def serve(algorithm: str, given: argparse.Namespace) -> None:
    """Take a round for each line of the input; print its seconds of processor time."""
    torch.set_num_threads(1)
    play = globals()[given.side](algorithm, given.game, given.steps, given.mode)
    play()
    print("ready", flush=True)
    for _ in sys.stdin:
        begin = time.process_time()
        play()
        print(f"seconds {time.process_time() - begin}", flush=True)


def answer(process: "subprocess.Popen[str]", word: str) -> str:
    """The rest of the next line of a process that begins with this word."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(word):
            return line.removeprefix(word).strip()
    raise SystemExit(f"{process.args} has ended")


def compare(algorithm: str, given: argparse.Namespace) -> None:
    """Let the sides take turns, and print the medians."""
    processes = {}
    for side in SIDES:
        python = given.peer if side == "stable_baselines3" else sys.executable
        words = [python, "-m", "benchmarks.atari_training", algorithm, "--side", side]
        words += ["--game", given.game, "--mode", given.mode, "--steps", str(given.steps)]
        processes[side] = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        answer(processes[side], "ready")
    rounds: dict[str, list[float]] = {side: [] for side in SIDES}
    for number in range(given.rounds):
        for side, process in processes.items():
            assert process.stdin is not None
            print("round", file=process.stdin, flush=True)
            rounds[side].append(float(answer(process, "seconds")))
        shown = ", ".join(f"{side} {seconds[-1]:.2f} s" for side, seconds in rounds.items())
        print(f"{algorithm} {number}: {shown}", flush=True)
    for process in processes.values():
        process.communicate()
    ours = rounds["coach_rl"]
    for side, seconds in rounds.items():
        ratio = statistics.median(b / a for a, b in zip(ours, seconds, strict=True))
        rate = given.steps / statistics.median(seconds)
        print(f"| {algorithm} | {side} | {rate:,.0f} | {ratio:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("algorithms", nargs="+", choices=("PPO", "DQN"))
    parser.add_argument("--peer", default=sys.executable, help="Python with Stable-Baselines3")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1024, help="of a round")
    parser.add_argument("--game", default="pong")
    parser.add_argument("--mode", default="eager", help="how our gradient steps run")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    for algorithm in given.algorithms:
        if given.side:
            serve(algorithm, given)
        else:
            compare(algorithm, given)


if __name__ == "__main__":
    main()
