"""Bonuses where rewards are rare: a long chain, MiniGrid's MultiRoom-N4-S5 and KeyCorridorS3R3.

python -m benchmarks.studies.curiosity --hours 2                          # every job in turn
python -m benchmarks.studies.curiosity --hours 2 MultiRoom_count_seed0    # one of them

Trains for so many hours, then stops with a checkpoint. The next call resumes exactly, as long as
the run folders below `--root` are there. Each finished run leaves a file below
`benchmarks/results/curiosity/`: its manifest, curve, last training episodes, and 100 episodes of
the final policy, greedy and sampled. A job whose file has the same parameters is skipped.

Everything that the agents count or see is what they observe: no job has a given.
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
from coach_rl.configuration.overrides import parse_overrides
from coach_rl.configuration.parameters_json import encode
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.sessions.evaluation import evaluate_run

RESULTS = Path(__file__).parent.parent / "results" / "curiosity"
EPISODES = 100
"""Episodes of a final evaluation, and training episodes at the end of a run that are averaged."""
FINAL_SEED = 1_000_000
"""Seed of the final evaluations."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of a preset."""

    preset: str
    seed: int
    panel: dict[str, Any] = field(default_factory=dict)
    """Changes of the panel."""
    bonus: str = ""
    """The agent's bonus, as on the command line; empty: that of the preset."""

    @property
    def words(self) -> str:
        """All changes, as on the command line."""
        panel = [f"{key}={value!r}" for key, value in self.panel.items()]
        return "; ".join([*panel, *([f"agent.bonus={self.bonus}"] if self.bonus else [])])

    def parameters(self) -> dict[str, Any]:
        """Everything that decides about the run, as JSON."""
        manager = load_preset(find_preset(self.preset)).configure(parse_overrides(self.words))
        resolved = json.loads(json.dumps(encode(manager.parameters)))
        return {"preset": self.preset, "seed": self.seed, "experiment": resolved}

    def command(self, name: str, root: Path) -> list[str]:
        """The command line that begins the run."""
        chosen = ["-p", self.preset, "--seed", str(self.seed), "-cp", self.words]
        return [*chosen, "-c", "--threads", "1", "--plain", "-ntb", "-ep", str(root), "-e", name]


SEEDS = range(3)
CHAIN = ("none", "count", "rnd", "noveld")
"""Bonuses of Chain_PPO."""
BONUSES = {
    "none": "",
    "count": "EpisodicCount(weight=0.002, first_only=True)",
    "rnd": "RND(stream=RewardStream())",
    "noveld": "NovelD(weight=0.02)",
}
"""Bonuses of MiniGrid_PPO. Counts, and NovelD's first visits, are of all that the agent observes:
its view and its direction."""
MULTI_ROOM = {"level": "MultiRoom-N4-S5", "steps": 2_000_000, "normalise_advantage": True}
CORRIDOR = {"level": "KeyCorridorS3R3", "steps": 8_000_000, "normalise_advantage": True}
JOBS = {
    **{
        f"Chain_{bonus}_seed{seed}": Job(preset="Chain_PPO", seed=seed, panel={"bonus": bonus})
        for bonus in CHAIN
        for seed in SEEDS
    },
    **{
        f"MultiRoom_{name}_seed{seed}": Job(
            preset="MiniGrid_PPO", seed=seed, panel=MULTI_ROOM, bonus=bonus
        )
        for seed in SEEDS
        for name, bonus in BONUSES.items()
    },
    **{
        f"KeyCorridor_{name}_seed0": Job(
            preset="MiniGrid_PPO", seed=0, panel=CORRIDOR, bonus=BONUSES[name]
        )
        for name in ("count", "none")
    },
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
    scalars = [each["scalars"] for each in records if each["kind"] == "episode"]
    curve = [
        {
            "steps": each["environment_steps"],
            "return": each["scalars"]["evaluation/reward_mean"],
            "success_rate": each["scalars"].get("evaluation/success_rate"),
        }
        for each in records
        if each["kind"] == "evaluation"
    ]
    return {
        "parameters": JOBS[name].parameters(),
        "greedy_curve": curve,
        "last_training_episodes": means(scalars[-EPISODES:]),
        "final": {
            "greedy": final_episodes(folder, sampling=False),
            "sampled": final_episodes(folder, sampling=True),
        },
        "manifest": json.loads((folder / "manifest.json").read_text()),
    }


def means(scalars: list[dict[str, float]]) -> dict[str, float | None]:
    """Mean return and success of logged episodes; None where the task has no success."""
    succeeded = [each["episode/success"] for each in scalars if "episode/success" in each]
    return {
        "episodes": len(scalars),
        "return": float(np.mean([each["episode/reward"] for each in scalars])),
        "success_rate": float(np.mean(succeeded)) if succeeded else None,
    }


def final_episodes(folder: Path, *, sampling: bool) -> dict[str, Any]:
    """Episodes of a run's final policy, whose levels no training run begins with."""
    evaluation, _ = evaluate_run(
        folder,
        episodes=rl.EnvironmentEpisodes(EPISODES),
        sampling=sampling,
        seed=FINAL_SEED,
    )
    returns = np.asarray(evaluation.arrays["episode/reward"], np.float64)
    succeeded = evaluation.arrays.get("episode/success")
    return {
        "seed": FINAL_SEED,
        "episodes": len(returns),
        "return": float(returns.mean()),
        "standard_deviation": float(returns.std(ddof=1)),
        "success_rate": None if succeeded is None else float(np.mean(succeeded)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", default=list(JOBS), help=", ".join(JOBS))
    parser.add_argument("--hours", type=float, default=2.0, help="of training in this call")
    parser.add_argument("--root", type=Path, default=Path("experiments/curiosity"))
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
