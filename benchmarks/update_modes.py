"""Gradient steps per second, eager and in the fast mode of a device, and whether both are equal.

The fast mode is `compiled` on the CPU and `captured` on a GPU. PPO learns from minibatches of 64
through two 64-unit tanh networks, the others from batches of 256, drawn from a replay memory,
through 256-unit relu networks, on HalfCheetah's spaces (DQN: six actions) with made-up data.

    python benchmarks/update_modes.py --device cpu --threads 1
    python benchmarks/update_modes.py --device cuda --quick --write

Numbers are compared after the same 50 steps. Where some differ, the last column has the largest
difference of a parameter, against the largest parameter, and in brackets how far a rounding of
float32 grows in those steps: eager beside itself, its parameters moved by 1e-07 first.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.agents.dqn_agent import DQNAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.agents.sac_agent import SACAgentParameters
from coach_rl.agents.td3_agent import TD3AgentParameters
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.q_network import QNetworkParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.architectures.update_modes import EAGER, cannot_run, other_modes
from coach_rl.core.agents import AgentContext
from coach_rl.core.records import Transition
from coach_rl.core.runtime import Runtime
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.memories import Minibatch, ReplayMemoryParameters, RolloutBatch
from coach_rl.memories.replay_parameters import Storage
from coach_rl.runs.manifest import hardware

PAGE = Path(__file__).parent / "results" / "update_modes.md"
OBSERVATION = spaces.Dict({"observation": spaces.Box(-10, 10, (17,), np.float32)})
BOX, CHOICES = spaces.Box(-1, 1, (6,), np.float32), spaces.Discrete(6)
WIDE = TorsoParameters(middleware=(256, 256), activation="relu", orthogonal=False)
ON_POLICY = {
    "PPO": PPOAgentParameters(),
    "PPO, KL penalty": PPOAgentParameters(algorithm=PPOAlgorithmParameters(objective="kl")),
}
OFF_POLICY: dict[
    str, DQNAgentParameters | DDPGAgentParameters | TD3AgentParameters | SACAgentParameters
] = {
    "DQN": DQNAgentParameters(
        network=QNetworkParameters(torso=WIDE), learning=LearningParameters(batch=256)
    ),
    "DDPG": DDPGAgentParameters(),
    "TD3": TD3AgentParameters(),
    "SAC": SACAgentParameters(),
}
BATCH = 256
COMPARED_STEPS = 50
NUDGE = 1e-7
"""About a rounding of float32."""
Step = Callable[[], object]


def context(algorithm: str, device: str) -> AgentContext:
    action = CHOICES if algorithm == "DQN" else BOX
    return AgentContext(
        spaces=EnvironmentSpaces(observation=OBSERVATION, action=action),
        num_envs=8,
        planned_steps=1_000_000,
        runtime=Runtime(device=device, seed=0),
    )


def ppo(algorithm: str, mode: str, device: str) -> tuple[Step, list[NetworkWrapper]]:
    """A step on another minibatch of one rollout, and the network."""
    params = ON_POLICY[algorithm]
    agent = replace(params, update_mode=mode).build(context(algorithm, device))
    agent.engine.set_scalars(clip=0.2, kl_coefficient=1.0)
    rng = torch.Generator().manual_seed(0)
    rows = 2048

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(rows, *shape, generator=rng).to(device)

    is_kl = params.algorithm.objective == "kl"
    rollout = RolloutBatch(
        observation={"observation": normal(17)},
        action=normal(6),
        log_prob=normal() - 6.0,
        advantage=normal(),
        target=normal(),
        value=normal(),
        policy=torch.cat((normal(6), torch.zeros(rows, 6, device=device)), 1) if is_kl else None,
    )

    def step() -> None:
        index = torch.randint(rows, (64,), generator=rng).to(device)
        agent.learn_from_batch(Minibatch(rollout, index))

    return step, [agent.network]


def off_policy(
    algorithm: str, mode: str, device: str, storage: Storage
) -> tuple[Step, list[NetworkWrapper]]:
    """A step on another batch out of a memory, and the networks."""
    memory = ReplayMemoryParameters(capacity=8_000, storage=storage)
    params = replace(OFF_POLICY[algorithm], update_mode=mode, memory=memory)
    agent = params.build(context(algorithm, device))
    rng = np.random.default_rng(0)
    for _ in range(100):
        seen, after = rng.normal(size=(2, 8, 17)).astype(np.float32)
        choices = rng.integers(6, size=8)
        actions = rng.uniform(-1, 1, (8, 6)).astype(np.float32)
        agent.memory.add(
            Transition(
                rows=np.arange(8),
                observation={"observation": seen},
                action=choices if algorithm == "DQN" else actions,
                reward=rng.normal(size=8),
                next_observation={"observation": after},
                terminated=np.zeros(8, np.bool_),
                truncated=np.ones(8, np.bool_),
                duration=np.ones(8, np.int64),
            )
        )
    return lambda: agent.learn_from_batch(agent.memory.sample(BATCH)), list(
        agent.learner.networks.values()
    )


def made(
    algorithm: str, mode: str, device: str, storage: Storage
) -> tuple[Step, list[NetworkWrapper]]:
    """A step of an algorithm, and its networks."""
    if algorithm in ON_POLICY:
        return ppo(algorithm, mode, device)
    return off_policy(algorithm, mode, device, storage)


def learned(step: Step, networks: list[NetworkWrapper]) -> torch.Tensor:
    """All parameters after the steps that are compared."""
    for _ in range(COMPARED_STEPS):
        step()
    return torch.cat([network.online for network in networks])


def nudged(algorithm: str, device: str, storage: Storage) -> torch.Tensor:
    """Result of eager learning from parameters shifted by NUDGE, up or down."""
    step, networks = made(algorithm, "eager", device, storage)
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


def equality(
    found: torch.Tensor, eager: torch.Tensor, algorithm: str, device: str, storage: Storage
) -> str:
    """`yes`, or the largest difference from eager and that of a rounding."""
    if torch.equal(found, eager):
        return "yes"
    off = distance(nudged(algorithm, device, storage), eager)
    return f"{distance(found, eager):.1e} ({off:.1e})"


def distance(found: torch.Tensor, eager: torch.Tensor) -> float:
    """The largest difference, against the largest parameter."""
    return float((found - eager).abs().max() / eager.abs().max())


def table(modes: list[str], algorithms: list[str], device: str, seconds: float) -> Iterator[str]:
    """The lines of the table, each as soon as it is measured."""
    storages: tuple[Storage, ...] = ("cpu",) if device == "cpu" else ("cpu", "pinned", "device")
    heads = [f"{mode}, updates/s" for mode in modes]
    yield f"| {' | '.join(['agent', 'memory', *heads, 'ratio', 'equal bit for bit'])} |"
    yield "| --- | --- |" + " ---: |" * len(modes) + " ---: | --- |"
    for algorithm in algorithms:
        is_on_policy = algorithm in ON_POLICY
        for storage in storages[:1] if is_on_policy else storages:
            rates, parameters = [], []
            for mode in modes:
                step, networks = made(algorithm, mode, device, storage)
                parameters.append(learned(step, networks))
                rates.append(speed(step, device, seconds))
            equal = equality(parameters[-1], parameters[0], algorithm, device, storage)
            memory = "-" if is_on_policy else storage
            cells = [algorithm, memory, *(f"{rate:,.0f}" for rate in rates)]
            yield f"| {' | '.join([*cells, f'{rates[-1] / rates[0]:.1f}', equal])} |"


def main() -> None:
    """Parse the command line; print a row per algorithm and storage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=1, help="of torch on the CPU")
    parser.add_argument("--seconds", type=float, default=5.0, help="to measure each for")
    parser.add_argument("--quick", action="store_true", help="measure each for one second")
    parser.add_argument("--algorithms", nargs="+", default=[*ON_POLICY, *OFF_POLICY])
    parser.add_argument("--write", action="store_true", help=f"write the table of {PAGE.name}")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device, modes = arguments.device, []
    for mode in (EAGER, *other_modes()):
        if (reason := cannot_run(mode, device)) is None:
            modes.append(mode)
        else:
            print(f"left out: {mode}, which {reason}")
    processor = torch.cuda.get_device_name() if device != "cpu" else hardware()["cpu"]
    made_on = f"{processor}, torch {torch.__version__}, {arguments.threads} CPU thread(s)"
    print(f"{made_on}\n", flush=True)
    seconds = 1.0 if arguments.quick else arguments.seconds
    lines = []
    for line in table(modes, arguments.algorithms, device, seconds):
        print(line, flush=True)
        lines.append(line)
    if arguments.write:
        quick = " --quick" * arguments.quick
        command = f"    python benchmarks/update_modes.py --device {device}{quick} --write"
        about = (__doc__ or "").split("\n\n")
        parts = ["# Ways to run an update", command, about[1], about[3], made_on, "\n".join(lines)]
        _, heading, others = PAGE.read_text().partition("\n## ") if PAGE.exists() else ("",) * 3
        text = "\n\n".join(part.strip("\n") for part in parts) + "\n"
        PAGE.write_text(f"{text}{heading}{others}")


if __name__ == "__main__":
    main()
