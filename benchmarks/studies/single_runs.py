"""Long runs of presets, one at a time: trained in parts, resumed exactly, skipped once done.

A study of this kind lists jobs and reads its result out of a finished run. Each result is a file:
what the study reads, all parameters that decide about the run, and the part of its manifest that
does not depend on where it lay. A job whose file has the same parameters is skipped.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
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

RESULTS = Path(__file__).parent.parent / "results"
FINAL_SEED = 1_000_000
"""Seed of the final evaluations, whose episodes no training run with a small seed begins with."""
KEPT = ("created", "git", "hardware", "resumes", "settings", "task", "updates", "versions")
"""Entries of a manifest that are kept with a result."""

Result = dict[str, Any]
"""A result, as JSON."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of a preset."""

    preset: str
    seed: int
    panel: dict[str, Any] = field(default_factory=dict)
    """Changes of the panel."""
    paths: str = ""
    """Changes by path, as on the command line."""

    @property
    def words(self) -> str:
        """All changes, as on the command line."""
        panel = [f"{key}={value!r}" for key, value in self.panel.items()]
        return "; ".join([*panel, *([self.paths] if self.paths else [])])

    def parameters(self) -> Result:
        """Everything that decides about the run, as JSON."""
        manager = load_preset(find_preset(self.preset)).configure(parse_overrides(self.words))
        resolved = json.loads(json.dumps(encode(manager.parameters)))
        return {"preset": self.preset, "seed": self.seed, "experiment": resolved}

    def command(self, name: str, root: Path) -> list[str]:
        """The command line that begins the run."""
        chosen = ["-p", self.preset, "--seed", str(self.seed), "-cp", self.words]
        return [*chosen, "-c", "--threads", "1", "--plain", "-ntb", "-ep", str(root), "-e", name]


@dataclass(frozen=True, kw_only=True)
class SingleRuns:
    """A study of single runs."""

    name: str
    """The folder of its results, and of its runs below `experiments`."""
    jobs: Mapping[str, Job]
    read: Callable[[Job, Path], Result]
    """Reads the result of a job out of its run's folder."""
    results: Path = RESULTS
    """The folder of all studies' results."""

    def file(self, name: str) -> Path:
        """The file of a job's result."""
        return self.results / self.name / f"{name}.json"

    def is_done(self, name: str) -> bool:
        """Return whether a result has a job's parameters."""
        file = self.file(name)
        if not file.is_file():
            return False
        found: Result = json.loads(file.read_text())
        return bool(found["parameters"] == self.jobs[name].parameters())

    def train(self, name: str, root: Path, seconds: float) -> Path | None:
        """Begin or resume a job's run; its folder if it has finished in time, else None.

        Raises:
            RuntimeError: The run failed.
        """
        found = sorted((root / name).glob("*/manifest.json"))
        if found and (found[-1].parent / "summary.json").is_file():
            return found[-1].parent
        words = ["-crd", str(found[-1].parent)] if found else self.jobs[name].command(name, root)
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

    def result_of(self, name: str, folder: Path) -> Result:
        """The result of a finished run."""
        job = self.jobs[name]
        manifest = json.loads((folder / "manifest.json").read_text())
        place = f"{folder.parent.parent}/"  # of this machine
        kept = _without({key: manifest[key] for key in KEPT if key in manifest}, place)
        return {"parameters": job.parameters(), **self.read(job, folder), "manifest": kept}

    def write(self, name: str, folder: Path) -> Path:
        """Write the result of a finished run."""
        file = self.file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.result_of(name, folder), indent=1, sort_keys=True)
        file.write_text(f"{text}\n")
        return file

    def main(self, description: str, *, hours: float = 2.0) -> None:
        """Train the jobs that the command line names, in turn, and write the results.

        Args:
            description: For the help.
            hours: Hours of training in one call, if the command line gives none.
        """
        jobs = self.jobs
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("jobs", nargs="*", default=list(jobs), help=", ".join(jobs))
        parser.add_argument("--hours", type=float, default=hours, help="of training in this call")
        parser.add_argument("--root", type=Path, default=Path("experiments") / self.name)
        given = parser.parse_args()
        end = time.monotonic() + 3600 * given.hours
        for name in given.jobs:
            if self.is_done(name):
                print(f"{name}: a result with these parameters is there, skipped", flush=True)
                continue
            folder = self.train(name, given.root, max(1.0, end - time.monotonic()))
            if folder is None:
                print(f"{name}: not finished; call again to resume it", flush=True)
                return
            print(f"{name}: wrote {self.write(name, folder)}", flush=True)


def records_of(folder: Path, kind: str) -> list[Result]:
    """The records of a kind in a run's log: counters, and scalars by name."""
    records = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    return [each for each in records if each["kind"] == kind]


def evaluations(folder: Path, *, frames_per_step: int | None = None) -> list[Result]:
    """The curve of a run's evaluations: steps, frames where they are counted, return, success."""
    curve = []
    for record in records_of(folder, "evaluation"):
        steps = record["environment_steps"]
        point = {"steps": steps, "return": record["scalars"]["evaluation/reward_mean"]}
        if frames_per_step is not None:
            point["frames"] = frames_per_step * steps
        if "evaluation/success_rate" in record["scalars"]:
            point["success_rate"] = record["scalars"]["evaluation/success_rate"]
        curve.append(point)
    return curve


def last_episodes(folder: Path, most: int) -> Result:
    """The mean return, and success where there is one, of the last training episodes."""
    scalars = [each["scalars"] for each in records_of(folder, "episode")][-most:]
    found: Result = {"episodes": len(scalars)}
    for name, metric in (("return", "episode/reward"), ("success_rate", "episode/success")):
        values = [each[metric] for each in scalars if metric in each]
        if values:
            found[name] = float(np.mean(values))
    return found


def final_episodes(folder: Path, episodes: int, *, sampling: bool = False) -> Result:
    """Episodes of a run's final networks, acting greedily or by sampled actions."""
    evaluation, _ = evaluate_run(
        folder,
        episodes=rl.EnvironmentEpisodes(episodes),
        sampling=sampling,
        seed=FINAL_SEED,
    )
    returns = np.asarray(evaluation.arrays["episode/reward"], np.float64)
    found: Result = {
        "seed": FINAL_SEED,
        "episodes": len(returns),
        "return": float(returns.mean()),
        "standard_deviation": float(returns.std(ddof=1)),
        "returns": returns.tolist(),
    }
    if "episode/success" in evaluation.arrays:
        found["success_rate"] = float(np.mean(evaluation.arrays["episode/success"]))
    return found


def _without(part: Any, place: str) -> Any:
    """A JSON value whose texts don't have a folder's path."""
    match part:
        case dict():
            return {key: _without(each, place) for key, each in part.items()}
        case list():
            return [_without(each, place) for each in part]
        case str():
            return part.replace(place, "")
    return part
