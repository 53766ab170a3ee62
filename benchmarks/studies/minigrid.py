"""DoorKey-8x8 of MiniGrid by PPO without a bonus: success of sampled and of greedy policies.

python -m benchmarks.studies.minigrid --hours 1               # every job in turn, for one hour
python -m benchmarks.studies.minigrid --hours 1 DoorKey_seed0 # one of them

Trains for so many hours, then stops with a checkpoint. The next call resumes exactly, whichever
machine it runs on, as long as the run folders below `--root` are there. Each finished run leaves a
file below `benchmarks/results/minigrid/`: its manifest, curves, and 200 episodes of the final
network, greedy and sampled. A job whose file has the same parameters is skipped.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import coach_rl as rl
from coach_rl.configuration.parameters_json import encode
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.sessions.evaluation import evaluate_run

RESULTS = Path(__file__).parent.parent / "results" / "minigrid"
EPISODES = 200
"""Episodes of a final evaluation, and training episodes at the end of a run that are averaged."""
FINAL_SEED = 1_000_000
"""Seed of the final evaluations, whose levels no training run with a small seed begins with."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of `MiniGrid_PPO`."""

    level: str
    seed: int
    steps: int
    """Environment steps."""
    panel: dict[str, Any] = field(default_factory=dict)
    """Changes of the panel."""

    @property
    def settings(self) -> dict[str, Any]:
        """All that the panel is given."""
        return {"level": self.level, "steps": self.steps, **self.panel}

    def parameters(self) -> dict[str, Any]:
        """Everything that decides about the run, as JSON."""
        manager = load_preset(find_preset("MiniGrid_PPO")).build(self.settings)
        resolved = json.loads(json.dumps(encode(manager.parameters)))
        return {"preset": "MiniGrid_PPO", "seed": self.seed, "experiment": resolved}

    def command(self, name: str, root: Path) -> list[str]:
        """The command line that begins the run."""
        panel = "; ".join(f"{key}={value!r}" for key, value in self.settings.items())
        chosen = ["-p", "MiniGrid_PPO", "--seed", str(self.seed), "-cp", panel]
        return [*chosen, "-c", "--threads", "1", "--plain", "-ntb", "-ep", str(root), "-e", name]


JOBS = {
    f"DoorKey_seed{seed}": Job(level="DoorKey-8x8", seed=seed, steps=1_000_000) for seed in range(3)
}


def is_done(name: str) -> bool:
    """Return whether a committed result has a job's parameters."""
    file = RESULTS / f"{name}.json"
    return file.is_file() and json.loads(file.read_text())["parameters"] == JOBS[name].parameters()


def train(name: str, root: Path, seconds: float) -> Path | None:
    """Begin or resume a job's run; its folder if it has finished in time, else None.

    Raises:
        RuntimeError: The run failed.
    """
    found = sorted((root / name).glob("*/manifest.json"))
    if found and (found[-1].parent / "summary.json").is_file():
        return found[-1].parent
    words = ["-crd", str(found[-1].parent)] if found else JOBS[name].command(name, root)
    process = subprocess.Popen([sys.executable, "-m", "coach_rl", *words])
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # which saves a checkpoint
        process.wait()
        return None
    if process.returncode:
        raise RuntimeError(f"{name} failed with exit code {process.returncode}")
    return max((root / name).glob("*/summary.json")).parent


def result_of(name: str, folder: Path) -> dict[str, Any]:
    """The result of a finished run."""
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    scores = [each["scalars"]["episode/success"] for each in records if each["kind"] == "episode"]
    last = scores[-EPISODES:]
    return {
        "parameters": JOBS[name].parameters(),
        "greedy_curve": [
            {
                "steps": each["environment_steps"],
                "success_rate": each["scalars"]["evaluation/success_rate"],
                "return": each["scalars"]["evaluation/reward_mean"],
            }
            for each in records
            if each["kind"] == "evaluation"
        ],
        "last_training_episodes": {
            "episodes": len(last),
            "success_rate": float(np.mean(last)) if last else None,
        },
        "final": {
            "sampled": final_episodes(folder, sampling=True),
            "greedy": final_episodes(folder, sampling=False),
        },
        "manifest": json.loads((folder / "manifest.json").read_text()),
    }


def final_episodes(folder: Path, *, sampling: bool) -> dict[str, Any]:
    """Episodes of a run's final network, by sampled actions or by the likeliest ones."""
    evaluation, _ = evaluate_run(
        folder,
        episodes=rl.EnvironmentEpisodes(EPISODES),
        sampling=sampling,
        seed=FINAL_SEED,
    )
    returns = np.asarray(evaluation.arrays["episode/reward"], np.float64)
    successes = np.asarray(evaluation.arrays["episode/success"], np.float64)
    return {
        "seed": FINAL_SEED,
        "episodes": len(returns),
        "success_rate": float(successes.mean()),
        "return": float(returns.mean()),
        "standard_deviation": float(returns.std(ddof=1)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", default=list(JOBS), help=", ".join(JOBS))
    parser.add_argument("--hours", type=float, default=1.0, help="of training in this call")
    parser.add_argument("--root", type=Path, default=Path("experiments/minigrid"))
    given = parser.parse_args()
    end = time.monotonic() + 3600 * given.hours
    for name in given.jobs:
        if is_done(name):
            print(f"{name}: a result with these parameters is there, skipped", flush=True)
            continue
        folder = train(name, given.root, max(1.0, end - time.monotonic()))
        if folder is None:
            print(f"{name}: not finished; call again to resume it", flush=True)
            return
        RESULTS.mkdir(parents=True, exist_ok=True)
        text = json.dumps(result_of(name, folder), indent=1, sort_keys=True)
        (RESULTS / f"{name}.json").write_text(f"{text}\n")
        print(f"{name}: wrote {RESULTS / name}.json", flush=True)


if __name__ == "__main__":
    main()
