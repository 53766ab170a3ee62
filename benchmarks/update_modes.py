"""Gradient steps per second of each way to run them, and that all ways give the same numbers.

PPO's minibatch of 64 through two 64-unit tanh networks, and a batch of 256 through two 256-unit
relu networks for DDPG, TD3 and SAC, on HalfCheetah's spaces with made-up data. `captured` needs a
CUDA device; the others run wherever they are told to.

    python benchmarks/update_modes.py --device cpu --threads 1
    python benchmarks/update_modes.py --device cuda

The difference is the largest one of any parameter from eager's, after the same 50 steps, against
the largest parameter: float32 sums in another order differ by some 1e-6 a step, and Adam's first
steps turn the sign of a gradient near 0 into a whole step. How far such a difference grows is what
`eager, parameters 1e-07 off` shows: eager beside itself, its parameters moved by that share first.
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
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.core.agents import AgentContext
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.update_modes import UpdateMode
from coach_rl.memories import (
    Minibatch,
    ReplayMemoryParameters,
    RolloutBatch,
    TransitionBatch,
)

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
NUDGE = 1e-7
"""About a rounding of float32."""
Step = Callable[[], None]


def ppo(mode: UpdateMode, device: str) -> tuple[Step, list[NetworkWrapper]]:
    """A step on another minibatch of one rollout, and the network."""
    agent = PPOAgentParameters(update_mode=mode).build(
        AgentContext(spaces=SPACES, num_envs=8, device=device, seed=0, planned_steps=1_000_000)
    )
    agent.engine.set_scalars(clip=0.2, kl_coefficient=1.0)
    rng = torch.Generator().manual_seed(0)
    rows = 2048

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(rows, *shape, generator=rng).to(device)

    rollout = RolloutBatch(
        observation={"observation": normal(17)},
        action=normal(6),
        log_prob=normal() - 6.0,
        advantage=normal(),
        target=normal(),
        value=normal(),
        policy=None,
    )

    def step() -> None:
        index = torch.randint(rows, (64,), generator=rng).to(device)
        agent.learn_from_batch(Minibatch(rollout, index))

    return step, [agent.network]


def off_policy(algorithm: str, mode: UpdateMode, device: str) -> tuple[Step, list[NetworkWrapper]]:
    """A step on another batch, and the networks."""
    agent = OFF_POLICY[algorithm](
        update_mode=mode, memory=ReplayMemoryParameters(capacity=1_000)
    ).build(AgentContext(spaces=SPACES, num_envs=1, device=device, seed=0, planned_steps=1_000_000))
    rng = torch.Generator().manual_seed(0)
    batches = []
    for _ in range(16):
        seen, followed = (torch.randn(256, 17, generator=rng).to(device) for _ in range(2))
        batch = TransitionBatch(
            observation={"observation": seen},
            action=(torch.rand(256, 6, generator=rng) * 2 - 1).to(device),
            reward=torch.randn(256, generator=rng).to(device),
            discount=torch.full((256,), 0.99, device=device),
            next_observation={"observation": followed},
            weight=torch.ones(256, device=device),
            position=torch.arange(256, device=device),
        )
        batches.append(batch)
    number = [0]

    def step() -> None:
        agent.learn_from_batch(batches[number[0] % len(batches)])
        number[0] += 1

    return step, list(agent.learner.networks.values())


def made(algorithm: str, mode: UpdateMode, device: str) -> tuple[Step, list[NetworkWrapper]]:
    """A step of an algorithm, and its networks."""
    return ppo(mode, device) if algorithm == "PPO" else off_policy(algorithm, mode, device)


def learned(step: Step, networks: list[NetworkWrapper]) -> torch.Tensor:
    """All parameters after the steps that are compared."""
    for _ in range(COMPARED_STEPS):
        step()
    return torch.cat([network.online for network in networks])


def nudged(algorithm: str, device: str) -> torch.Tensor:
    """What eager learns from parameters that are off by NUDGE, up or down."""
    step, networks = made(algorithm, "eager", device)
    rng = torch.Generator().manual_seed(1)
    for network in networks:
        signs = torch.randint(2, network.online.shape, generator=rng) * 2 - 1
        network.online.mul_(1 + NUDGE * signs.to(device))
    return learned(step, networks)


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
        eager_speed, eager = 0.0, torch.zeros(0)
        for mode in modes:
            step, networks = made(algorithm, mode, arguments.device)
            found = learned(step, networks)
            rate = speed(step, arguments.device, arguments.seconds)
            if mode == "eager":
                eager_speed, eager = rate, found
            gain = f"{rate:,.0f} | {rate / eager_speed:.2f}"
            print(f"| {algorithm} | {mode} | {gain} | {distance(found, eager):.1e} |", flush=True)
        off = distance(nudged(algorithm, arguments.device), eager)
        print(f"| {algorithm} | eager, parameters {NUDGE:.0e} off | | | {off:.1e} |", flush=True)


def distance(found: torch.Tensor, eager: torch.Tensor) -> float:
    """The largest difference, against the largest parameter."""
    return float((found - eager).abs().max() / eager.abs().max())


if __name__ == "__main__":
    main()
