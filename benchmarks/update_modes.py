"""Gradient steps per second of each way to run them, and that all ways give the same numbers.

PPO's minibatch of 64 through two 64-unit tanh networks, and a batch of 256 through two 256-unit
relu networks for DDPG, TD3 and SAC, on HalfCheetah's spaces with made-up data. `captured` needs a
CUDA device; the others run wherever they are told to.

    python benchmarks/update_modes.py --device cpu --threads 1
    python benchmarks/update_modes.py --device cuda

The difference is the largest one of any parameter from eager's, after the same 50 steps, against
the largest parameter: float32 sums in another order differ by some 1e-6 a step, and Adam's first
steps turn the sign of a gradient near 0 into a whole step.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.agents.ppo_agent import PPOAgentParameters
from coach_rl.agents.sac_agent import SACAgentParameters
from coach_rl.agents.td3_agent import TD3AgentParameters
from coach_rl.architectures.update_engine import UpdateMode
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.memories import ReplayMemoryParameters

SPACES = EnvironmentSpaces(
    observation=spaces.Dict({"observation": spaces.Box(-10, 10, (17,), np.float32)}),
    action=spaces.Box(-1, 1, (6,), np.float32),
)
OFF_POLICY = {
    "DDPG": DDPGAgentParameters,
    "TD3": TD3AgentParameters,
    "SAC": SACAgentParameters,
}
COMPARED_STEPS = 50
Step = Callable[[], None]


def ppo(mode: UpdateMode, device: str) -> tuple[Step, Callable[[], torch.Tensor]]:
    """A step on another minibatch of one rollout, and the parameters."""
    agent = PPOAgentParameters(update_mode=mode).build(
        spaces=SPACES, num_envs=8, device=device, seed=0, planned_steps=1_000_000
    )
    agent.engine.set_scalars(clip=0.2, kl_coefficient=1.0)
    rng = torch.Generator().manual_seed(0)
    rows = 2048
    shapes = {
        "/observations/observation": (rows, 17),
        "/actions": (rows, 6),
        "/log_prob": (rows,),
        "/advantages": (rows,),
        "/targets": (rows,),
        "/values": (rows,),
    }
    data = {path: torch.randn(shape, generator=rng).to(device) for path, shape in shapes.items()}
    data["/log_prob"] = data["/log_prob"] - 6.0

    def step() -> None:
        index = torch.randint(rows, (64,), generator=rng).to(device)
        agent.learn_from_batch(data, index)

    return step, lambda: agent.network.online


def off_policy(
    algorithm: str, mode: UpdateMode, device: str
) -> tuple[Step, Callable[[], torch.Tensor]]:
    """A step on another batch, and the parameters."""
    agent = OFF_POLICY[algorithm](
        update_mode=mode, memory=ReplayMemoryParameters(capacity=1_000)
    ).build(spaces=SPACES, num_envs=1, device=device, seed=0, planned_steps=1_000_000)
    rng = torch.Generator().manual_seed(0)
    batches = []
    for _ in range(16):
        batch = {
            "/observations/observation": torch.randn(256, 17, generator=rng),
            "/next_observations/observation": torch.randn(256, 17, generator=rng),
            "/actions": torch.rand(256, 6, generator=rng) * 2 - 1,
            "/rewards": torch.randn(256, generator=rng),
            "/discounts": torch.full((256,), 0.99),
            "/weights": torch.ones(256),
        }
        batches.append({path: column.to(device) for path, column in batch.items()})
    number = [0]

    def step() -> None:
        agent.learn_from_batch(batches[number[0] % len(batches)])
        number[0] += 1

    networks = agent.networks.values()
    return step, lambda: torch.cat([network.online for network in networks])


def speed(step: Step, device: str, seconds: float) -> float:
    """Median steps per second over blocks of a fifth of that time."""
    rates = []
    for _ in range(5):
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds / 5:
            step()
            count += 1
        if device != "cpu":
            torch.cuda.synchronize()
        rates.append(count / (time.perf_counter() - begin))
    return statistics.median(rates)


def main() -> None:
    """Parse the command line; print a row per algorithm and mode."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=1, help="of torch on the CPU")
    parser.add_argument("--seconds", type=float, default=5.0, help="to measure each for")
    parser.add_argument("--algorithms", nargs="+", default=["PPO", *OFF_POLICY])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    modes: list[UpdateMode] = ["eager", "compiled"]
    if arguments.device != "cpu":
        modes.append("captured")
    print("| algorithm | mode | updates/s | times eager | difference from eager |")
    print("| --- | --- | ---: | ---: | ---: |")
    for algorithm in arguments.algorithms:
        eager_speed, eager_parameters = 0.0, torch.zeros(0)
        for mode in modes:
            made = (
                ppo(mode, arguments.device)
                if algorithm == "PPO"
                else off_policy(algorithm, mode, arguments.device)
            )
            step, parameters = made
            for _ in range(COMPARED_STEPS):
                step()
            found = parameters().clone()
            rate = speed(step, arguments.device, arguments.seconds)
            if mode == "eager":
                eager_speed, eager_parameters = rate, found
            difference = float(
                (found - eager_parameters).abs().max() / eager_parameters.abs().max()
            )
            print(
                f"| {algorithm} | {mode} | {rate:,.0f} | {rate / eager_speed:.2f} "
                f"| {difference:.1e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
