"""Tasks of the DeepMind Control Suite: cheetah-run from state, cartpole-swingup from pictures.

python -m benchmarks.studies.dm_control --hours 2                       # every job in turn
python -m benchmarks.studies.dm_control --hours 2 pixels_shifts_seed0   # one of them

Trains for so many hours, then stops with a checkpoint. The next call resumes exactly, as long as
the run folders below `--root` are there. Each finished run leaves a file below
`benchmarks/results/dm_control/`: its manifest, curve, last training episodes, and 100 episodes of
the final network, greedy. A job whose file has the same parameters is skipped.
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

RESULTS = Path(__file__).parent.parent / "results" / "dm_control"
EPISODES = 100
"""Episodes of a final evaluation."""
LAST = 10
"""Training episodes at the end of a run that are averaged."""
FINAL_SEED = 1_000_000
"""Seed of the final evaluations."""
PUBLISHED = {
    "cartpole-swingup": {
        "DrQ from pictures, 100k frames (Kostrikov et al. 2020)": 759.0,
        "CURL from pictures, 100k frames (Laskin et al. 2020)": 582.0,
    },
    "cheetah-run": {},
}
"""Returns on the same task after as many frames, where published."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of a preset."""

    preset: str
    level: str
    seed: int
    steps: int
    """Environment steps: decisions, of `repeat` frames each."""
    repeat: int
    """Frames that an action lasts."""
    panel: dict[str, Any] = field(default_factory=dict)
    """Further changes of the panel."""

    @property
    def settings(self) -> dict[str, Any]:
        """All that the panel is given."""
        return {
            "level": self.level,
            "steps": self.steps,
            "action_repeat": self.repeat,
            **self.panel,
        }

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


def _pixels(seed: int, shift: int) -> Job:
    return Job(
        preset="DMControl_Pixels_SAC",
        level="cartpole-swingup",
        seed=seed,
        steps=12_500,
        repeat=8,
        panel={"shift": shift, "memory": 12_500},
    )


def _cheetah(seed: int) -> Job:
    return Job(preset="DMControl_SAC", level="cheetah-run", seed=seed, steps=500_000, repeat=1)


JOBS = {
    "pixels_shifts_seed0": _pixels(0, 4),
    "pixels_plain_seed0": _pixels(0, 0),
    "pixels_shifts_seed1": _pixels(1, 4),
    "pixels_plain_seed1": _pixels(1, 0),
    "cheetah_seed0": _cheetah(0),
    "cheetah_seed1": _cheetah(1),
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
    job = JOBS[name]
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    returns = [each["scalars"]["episode/reward"] for each in records if each["kind"] == "episode"]
    curve = [
        {
            "steps": each["environment_steps"],
            "frames": job.repeat * each["environment_steps"],
            "return": each["scalars"]["evaluation/reward_mean"],
        }
        for each in records
        if each["kind"] == "evaluation"
    ]
    last = returns[-LAST:]
    return {
        "parameters": job.parameters(),
        "published": PUBLISHED.get(job.level, {}),
        "curve": curve,
        "last_training_episodes": {
            "episodes": len(last),
            "return": float(np.mean(last)) if last else None,
        },
        "final": final_episodes(folder),
        "manifest": json.loads((folder / "manifest.json").read_text()),
    }


def final_episodes(folder: Path) -> dict[str, Any]:
    """Whole episodes of a run's final networks, greedy."""
    evaluation, _ = evaluate_run(folder, episodes=rl.EnvironmentEpisodes(EPISODES), seed=FINAL_SEED)
    returns = np.asarray(evaluation.arrays["episode/reward"], np.float64)
    return {
        "seed": FINAL_SEED,
        "episodes": len(returns),
        "return": float(returns.mean()),
        "standard_deviation": float(returns.std(ddof=1)),
        "returns": returns.tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", default=list(JOBS), help=", ".join(JOBS))
    parser.add_argument("--hours", type=float, default=2.0, help="of training in this call")
    parser.add_argument("--root", type=Path, default=Path("experiments/dm_control"))
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
