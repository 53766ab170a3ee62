"""Run folders as the engine leaves them, written without a run."""

import json


def record(kind, step, scalars=None, *, level="", phase="test"):
    line = {
        "kind": kind,
        "phase": phase,
        "environment_steps": step,
        "training_steps": step // 2,
        "episodes": step // 100,
        "wall_seconds": step * 0.036,
        "level": level,
        "agent": "",
        "scalars": scalars or {},
    }
    return json.dumps(line) + "\n"


def write_run(folder, *, seed=0, name="trial", level="point", log="", summary=None, **manifest):
    """A run's folder as the engine leaves it, with what is read of it."""
    folder.mkdir(parents=True)
    document = {
        "schema_version": 2,
        "name": name,
        "level": level,
        "created": f"2026-11-22T10:00:{seed:02}+00:00",
        "preset": {"name": "A", "file": "A.py", "function": "graph_manager", "module": "a"},
        "graph_manager": "x:Y",
        "parameters": {},
        "task": {"seed": seed},
        "versions": {},
        "hardware": {},
        "resumes": [],
        **manifest,
    }
    (folder / "manifest.json").write_text(json.dumps(document))
    (folder / "log.jsonl").write_text(log)
    if summary is not None:
        (folder / "summary.json").write_text(json.dumps(summary))
    return folder


LOG = (
    record("progress", 500, {"time/steps_per_second": 9.0}, phase="train")
    + record("level", 500, {"level/goal_share": 0.9}, level="low", phase="train")
    + record("level", 1000, {"evaluation_level/goal_share": 0.25}, level="low")
    + record("evaluation", 1000, {"evaluation/reward_mean": -3.0})
    + record("level", 2000, {"evaluation_level/goal_share": 0.5}, level="low")
    + record("evaluation", 2000, {"evaluation/reward_mean": -1.0, "evaluation/success_rate": 1.0})
    + record("level", 2500, {"final_evaluation_level/goal_share": 0.75}, level="low")
    + record("final_evaluation", 2500, {"final_evaluation/reward_mean": -2.0})
)
SUMMARY = {
    "steps_per_second": 80.0,
    "evaluation": {"reward_mean": -2.0, "reward_std": {"$float": "nan"}, "success_rate": None},
    "levels": {"low": {"goal_share": 0.75}},
    "evaluated_episodes": {"episode/reward": [-1.0, -3.0]},
}


def write_seeds(
    folder,
    scores,
    *,
    level="point",
    metric="reward_mean",
    steps=2000,
    episodes=None,
    **manifest,
):
    """Finished runs, one per score, whose two evaluations while training lead up to it."""
    for seed, score in enumerate(scores):
        log = "".join(
            record("level", step, {"evaluation_level/goal_share": share}, level="low")
            + record("evaluation", step, {f"evaluation/{metric}": share * score})
            for step, share in ((steps // 2, 0.5), (steps, 1.0))
        )
        summary = {"steps_per_second": 9.0, "evaluation": {metric: score, "episodes": episodes}}
        path = folder / f"seed{seed}"
        write_run(path, seed=seed, level=level, log=log, summary=summary, **manifest)
    return folder
