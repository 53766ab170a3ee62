"""d3rlpy on the data sets of benchmarks/studies/offline.py: its scores, and its speed beside ours.

d3rlpy lives in an environment of its own, PEER below, which needs neither coach_rl nor this file's
package (`pip install d3rlpy "gymnasium[mujoco]"`):

    PEER benchmarks/offline_against_d3rlpy.py scores --hours 2            # every job in turn
    PEER benchmarks/offline_against_d3rlpy.py scores hopper_medium_IQL_seed0
    python benchmarks/offline_against_d3rlpy.py speed --peer PEER         # five rounds, in turns

*scores*: 100,000 updates with the settings of our presets, then 100 episodes of the last networks,
written below `benchmarks/results/offline_d3rlpy/`; what is there is skipped. d3rlpy makes each
transition once, and batches of them are gathered in numpy, which its own loop does one transition
after the other; its `update` does the rest. It leaves out the last transition of an episode that
was cut off, and starts every episode of the evaluation from a seed of its own; ours keeps the
transition.

*speed*: updates per second of processor time, one thread, batches of 256, on the sample of
`data:hopper-expert`. Each process warms up before it is timed, so compilation is left out. The
ratio is ours over theirs: the median over rounds.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent
RESULTS = ROOT / "results" / "offline_d3rlpy"
SAMPLE = ROOT.parent / "coach_rl" / "extensions" / "data" / "samples" / "hopper-expert.npz"
LEVELS = {"hopper": "Hopper-v5", "half_cheetah": "HalfCheetah-v5"}
KINDS = ("medium", "medium-replay")
METHODS = ("BC", "TD3_BC", "IQL")
SEEDS = range(3)
UPDATES = 100_000
EPISODES = 100
FINAL_SEED = 1_000_000
"""Seed of the first episode of an evaluation; the others follow."""
WARM_UP = 300
"""Updates before a speed is measured."""
TIMED = 2_000
"""Updates that are timed."""


def data_of(file: Path) -> dict[str, np.ndarray]:
    """Observations, actions, rewards, terminals and timeouts, [T, ...] each, of a recorded file."""
    with np.load(file, allow_pickle=False) as found:
        arrays = {name: found[name] for name in found.files if name != "spaces"}
    ends = arrays["terminated"] | arrays["truncated"]
    episode = np.concatenate([[0], np.cumsum(ends)[:-1]])  # [T], number of each step's episode
    shown = arrays["observations/observation"]  # [T + episodes, ...], with each last observation
    return {
        "observations": shown[np.arange(len(ends)) + episode].astype(np.float32),
        "actions": arrays["actions"].astype(np.float32),
        "rewards": arrays["rewards"].astype(np.float32),
        "terminals": arrays["terminated"].astype(np.float32),
        "timeouts": arrays["truncated"].astype(np.float32),
    }


def peer(method: str) -> Any:
    """d3rlpy's algorithm with the settings of our preset."""
    import d3rlpy

    scaler = d3rlpy.preprocessing.StandardObservationScaler()
    common: dict[str, Any] = {"batch_size": 256, "observation_scaler": scaler}
    rates = {"actor_learning_rate": 3e-4, "critic_learning_rate": 3e-4}
    if method == "BC":
        config: Any = d3rlpy.algos.BCConfig(learning_rate=3e-4, policy_type="stochastic", **common)
    elif method == "TD3_BC":
        config = d3rlpy.algos.TD3PlusBCConfig(alpha=2.5, **rates, **common)
    else:
        config = d3rlpy.algos.IQLConfig(expectile=0.7, weight_temp=3.0, **rates, **common)
    return config.create(device="cpu:0")


def fit(algorithm: Any, dataset: Any, updates: int) -> None:
    """Make updates without a log."""
    from d3rlpy.logging import NoopAdapterFactory

    algorithm.fit(
        dataset,
        n_steps=updates,
        n_steps_per_epoch=updates,
        logger_adapter=NoopAdapterFactory(),
        show_progress=False,
    )


def fit_gathered(algorithm: Any, dataset: Any, updates: int, seed: int) -> None:
    """Make updates from batches of its transitions, drawn uniformly."""
    from d3rlpy.dataset import TransitionMiniBatch

    algorithm.build_with_dataset(dataset)
    scaler = algorithm.config.observation_scaler
    scaler.fit_with_transition_picker(dataset.episodes, dataset.transition_picker)
    made = [
        dataset.transition_picker(episode, index)
        for episode in dataset.episodes
        for index in range(episode.transition_count)
    ]
    columns = {
        "observations": np.stack([each.observation for each in made]),
        "actions": np.stack([each.action for each in made]),
        "rewards": np.stack([each.reward for each in made]),
        "next_observations": np.stack([each.next_observation for each in made]),
        "next_actions": np.stack([each.next_action for each in made]),
        "terminals": np.array([[each.terminal] for each in made], np.float32),
        "intervals": np.array([[each.interval] for each in made], np.float32),
    }
    count = len(made)
    del made
    rng = np.random.default_rng(seed)
    for _ in range(updates):
        drawn = rng.integers(count, size=256)
        batch = {name: column[drawn] for name, column in columns.items()}
        algorithm.update(TransitionMiniBatch(**batch, transitions=()))


def episodes(algorithm: Any, task: str, count: int) -> list[float]:
    """Returns of greedy episodes, played side by side."""
    import gymnasium

    worlds = [gymnasium.make(task) for _ in range(count)]
    seen = [world.reset(seed=FINAL_SEED + number)[0] for number, world in enumerate(worlds)]
    returns = [0.0] * count
    playing = list(range(count))
    while playing:
        observations = np.stack([seen[number] for number in playing]).astype(np.float32)
        actions = algorithm.predict(observations)
        for number, action in zip(playing.copy(), actions, strict=True):
            seen[number], reward, terminated, truncated, _ = worlds[number].step(action)
            returns[number] += float(reward)
            if terminated or truncated:
                playing.remove(number)
    for world in worlds:
        world.close()
    return returns


def seeded(seed: int) -> None:
    """Seed the peer, with one thread."""
    import d3rlpy
    import torch

    torch.set_num_threads(1)
    d3rlpy.seed(seed)


def score(level: str, kind: str, method: str, seed: int) -> dict[str, Any]:
    """Train and evaluate the peer on a file of `./data`."""
    import d3rlpy

    seeded(seed)
    file = Path("data", f"{level}-{kind}.npz")
    dataset = d3rlpy.dataset.MDPDataset(**data_of(file))
    algorithm = peer(method)
    before = time.process_time()
    fit_gathered(algorithm, dataset, UPDATES, seed)
    taken = time.process_time() - before
    returns = episodes(algorithm, LEVELS[level], EPISODES)
    return {
        "d3rlpy": d3rlpy.__version__,
        "data_sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "updates": UPDATES,
        "processor_seconds": taken,
        "final": {
            "seed": FINAL_SEED,
            "episodes": EPISODES,
            "return": float(np.mean(returns)),
            "standard_deviation": float(np.std(returns, ddof=1)),
            "returns": returns,
        },
    }


def scores(names: list[str], hours: float) -> None:
    """Make the peer's results that are named, or all, until the time is over."""
    jobs = {
        f"{level}_{kind}_{method}_seed{seed}": (level, kind, method, seed)
        for seed in SEEDS
        for level in LEVELS
        for kind in KINDS
        for method in METHODS
    }
    end = time.monotonic() + 3600 * hours
    for name in names or jobs:
        file = RESULTS / f"{name}.json"
        if file.exists():
            print(f"{name}: a result is there, skipped", flush=True)
            continue
        if time.monotonic() > end:
            return
        found = score(*jobs[name])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{json.dumps(found, indent=1, sort_keys=True)}\n")
        print(f"{name}: {found['final']['return']:.1f}", flush=True)


def peer_speed(method: str) -> float:
    """d3rlpy's updates per second of processor time."""
    import d3rlpy

    seeded(0)
    dataset = d3rlpy.dataset.MDPDataset(**data_of(SAMPLE))
    algorithm = peer(method)
    fit(algorithm, dataset, WARM_UP)
    before = time.process_time()
    fit(algorithm, dataset, TIMED)
    return TIMED / (time.process_time() - before)


def own_speed(method: str) -> float:
    """Our updates per second of processor time."""
    import coach_rl as rl

    preset = rl.load_preset(rl.find_preset(f"Mujoco_{method}"))
    updates = WARM_UP + TIMED
    settings = {
        "updates": updates,
        "evaluation_interval": 10 * updates,
        "agent.update_mode": "compiled",
        "schedule.progress_interval": WARM_UP,
    }
    before = 0.0
    with preset.configure(settings) as manager:
        for record in manager.improve():
            if not before and record.training_steps >= WARM_UP:
                first = record.training_steps
                before = time.process_time()
            last = record.training_steps
            if last >= updates:
                break
        return (last - first) / (time.process_time() - before)


def speed(interpreter: str, rounds: int) -> None:
    """Print updates per second of both, in processes of their own, in turns."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}

    def measured(python: str, method: str, whose: str) -> float:
        words = [python, __file__, "one", whose, method]
        answer = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        return float(answer.stdout.split()[-1])

    for method in METHODS:
        ratios = []
        for number in range(rounds):
            turn = [(sys.executable, "own"), (interpreter, "peer")][:: 1 if number % 2 else -1]
            found = {whose: measured(python, method, whose) for python, whose in turn}
            ratios.append(found["own"] / found["peer"])
            print(
                f"{method}: ours {found['own']:.0f}, d3rlpy {found['peer']:.0f} updates/s, "
                f"ratio {ratios[-1]:.2f}",
                flush=True,
            )
        print(f"{method}: median ratio {statistics.median(ratios):.2f}", flush=True)


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("scores", help="train and evaluate d3rlpy")
    made.add_argument("jobs", nargs="*")
    made.add_argument("--hours", type=float, default=2.0)
    timed = commands.add_parser("speed", help="updates per second beside ours")
    timed.add_argument("--peer", required=True, help="the interpreter that has d3rlpy")
    timed.add_argument("--rounds", type=int, default=5)
    one = commands.add_parser("one", help="one measurement, for `speed`")
    one.add_argument("whose", choices=("own", "peer"))
    one.add_argument("method", choices=METHODS)
    given = parser.parse_args()
    if given.command == "scores":
        scores(given.jobs, given.hours)
    elif given.command == "speed":
        speed(given.peer, given.rounds)
    else:
        print((own_speed if given.whose == "own" else peer_speed)(given.method))


if __name__ == "__main__":
    main()
