"""Pong from pictures under protocol A: PPO and DQN to the step counts of published curves.

python -m benchmarks.studies.atari_pong --hours 2             # every job in turn, for two hours
python -m benchmarks.studies.atari_pong --hours 2 PPO_seed0   # one of them

Trains for so many hours, then stops with a checkpoint. The next call resumes exactly, whichever
machine it runs on, as long as the run folders below `--root` are there. Each finished run leaves a
file below `benchmarks/results/atari_pong/`: its manifest, curve, last training games, and 100 whole
games of the final network, greedy and sampled. A job whose file has the same parameters is skipped.
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

RESULTS = Path(__file__).parent.parent / "results" / "atari_pong"
FRAMES_PER_STEP = 4
EPISODES = 100
"""Games of a final evaluation, and training games at the end of a run that are averaged."""
FINAL_SEED = 1_000_000
"""Seed of the final evaluations."""
PUBLISHED = {
    "SLM-Lab 5, PPO, sticky actions, 10M frames": 16.7,
    "MR.Q, sticky actions, 10M frames, 10 seeds": 18.0,
}
"""Returns in Pong under the same protocol."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of a preset."""

    preset: str
    seed: int
    steps: int
    """Environment steps; four times as many frames."""
    panel: dict[str, Any] = field(default_factory=dict)
    """Changes of the panel."""

    @property
    def settings(self) -> dict[str, Any]:
        """All that the panel is given."""
        return {"level": "pong", "steps": self.steps, **self.panel}

    def parameters(self) -> dict[str, Any]:
        """Everything that decides about the run, as JSON."""
        manager = load_preset(find_preset(self.preset)).build(self.settings)
        resolved = json.loads(json.dumps(encode(manager.parameters)))
        return {"preset": self.preset, "seed": self.seed, "experiment": resolved}

    def command(self, name: str, root: Path) -> list[str]:
        """The command line that begins the run."""
        panel = "; ".join(f"{key}={value!r}" for key, value in self.settings.items())
        chosen = ["-p", self.preset, "--seed", str(self.seed), "-cp", panel]
        return [*chosen, "-c", "--threads", "1", "--plain", "-ntb", "-ep", str(root), "-e", name]


SHORT_DQN = {"epsilon_steps": 250_000, "learning_starts": 20_000}
"""Exploration and first updates of runs of 1.5M steps instead of 10M."""
JOBS = {
    "PPO_seed0": Job(preset="Atari_PPO", seed=0, steps=2_500_000),
    "PPO_seed1": Job(preset="Atari_PPO", seed=1, steps=1_500_000),
    "DQN_seed0": Job(preset="Atari_DQN", seed=0, steps=1_500_000, panel=SHORT_DQN),
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
    games = [each["scalars"]["episode/reward"] for each in records if each["kind"] == "episode"]
    last = games[-EPISODES:]
    curve = [
        {
            "steps": each["environment_steps"],
            "frames": FRAMES_PER_STEP * each["environment_steps"],
            "return": each["scalars"]["evaluation/reward_mean"],
        }
        for each in records
        if each["kind"] == "evaluation"
    ]
    return {
        "parameters": JOBS[name].parameters(),
        "published": PUBLISHED,
        "curve": curve,
        "last_training_games": {
            "games": len(last),
            "return": float(np.mean(last)) if last else None,
        },
        "final": {
            "greedy": final_games(folder, sampling=False),
            "sampled": final_games(folder, sampling=True),
        },
        "manifest": json.loads((folder / "manifest.json").read_text()),
    }


def final_games(folder: Path, *, sampling: bool) -> dict[str, Any]:
    """Whole games of a run's final networks, unclipped."""
    evaluation, _ = evaluate_run(
        folder,
        episodes=rl.EnvironmentEpisodes(EPISODES),
        sampling=sampling,
        seed=FINAL_SEED,
    )
    returns = np.asarray(evaluation.arrays["episode/reward"], np.float64)
    return {
        "seed": FINAL_SEED,
        "games": len(returns),
        "return": float(returns.mean()),
        "standard_deviation": float(returns.std(ddof=1)),
        "returns": returns.tolist(),
        "human_normalised": rl.GAMES["pong"].normalised(float(returns.mean())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", default=list(JOBS), help=", ".join(JOBS))
    parser.add_argument("--hours", type=float, default=2.0, help="of training in this call")
    parser.add_argument("--root", type=Path, default=Path("experiments/atari_pong"))
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
