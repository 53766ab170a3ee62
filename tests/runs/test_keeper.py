"""Checkpoints that a run keeps under each policy, against a slow plain version of the promise."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from coach_rl.core.clock import Phase
from coach_rl.core.log_records import Evaluation, LogRecord
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.runs.checkpoint import (
    find_checkpoint,
    list_checkpoints,
    pointed,
    read_checkpoint,
)
from coach_rl.runs.folder import RunFolder
from coach_rl.runs.keeper import CheckpointKeeper

SELDOM = 1e9


def record(steps: int, seconds: float, evaluation: Mapping[str, float] | None = None) -> LogRecord:
    counters = {"environment_steps": steps, "training_steps": 0, "episodes": 0}
    common = {"phase": Phase.TRAIN, "wall_seconds": seconds, **counters}
    if evaluation is None:
        return LogRecord(kind="progress", **common)
    own = {f"evaluation/{name}": of for name, of in evaluation.items() if "/" not in name}
    low = {f"evaluation_level/{n[4:]}": of for n, of in evaluation.items() if "/" in n}
    level = LogRecord(kind="level", level="low", scalars=low, **common)
    return Evaluation(kind="evaluation", scalars=own, levels=(level,), **common)


def test_save_activity_has_the_size(tmp_path):
    said: list[str] = []
    keeper = CheckpointKeeper(
        RunFolder(tmp_path),
        lambda: {"weights": [np.zeros(500)], "steps": 3},
        policy=CheckpointParameters(),
        on_activity=said.append,
    )
    keeper.save({"last"}, record(1, 1.0))
    assert said == ["writing a checkpoint of 4 kB", ""]


class Run:
    """A keeper with a state that says which record was the newest."""

    def __init__(self, path: Path, policy: CheckpointParameters) -> None:
        self.path, self.policy, self.newest = path, policy, -1
        self.begin()

    def begin(self) -> None:
        folder = RunFolder(self.path)
        self.keeper = CheckpointKeeper(folder, lambda: {"newest": self.newest}, policy=self.policy)

    def live(self, records: list[LogRecord]) -> None:
        for index in range(self.newest + 1, len(records)):
            self.newest = index
            if reasons := self.keeper.reasons(records[index]):
                self.keeper.save(reasons, records[index])

    def resume(self, name: str = "last") -> None:
        self.begin()
        checkpoints = self.path / "checkpoints"
        if not list_checkpoints(checkpoints):
            self.newest = -1
            return
        checkpoint = read_checkpoint(find_checkpoint(checkpoints, name))
        self.keeper.restore(checkpoint)
        self.newest = checkpoint.state["newest"]

    def kept(self) -> dict[str, list[int]]:
        """The records whose checkpoints are there, and those of the pointers."""
        checkpoints = self.path / "checkpoints"
        found = {
            path.name: read_checkpoint(path).state["newest"]
            for path in list_checkpoints(checkpoints)
        }
        pointers = {name: pointed(checkpoints, name) for name in ("best", "last")}
        targets = {name: [found[of]] if of else [] for name, of in pointers.items()}
        return {"all": sorted(found.values()), **targets}


@dataclass
class Taken:
    index: int
    steps: int
    seconds: float
    is_periodic: bool


def promised(policy: CheckpointParameters, records: list[LogRecord]) -> dict[str, list[int]]:
    """What has to be there after these records, worked out from the whole history each time."""
    taken: list[Taken] = []
    best: tuple[float, float, int] | None = None
    for index, each in enumerate(records):
        since = [one for one in taken if one.is_periodic][-1:] or [Taken(-1, 0, 0.0, False)]
        every, seconds = policy.every_steps, policy.every_seconds
        is_periodic = every is not None and any(
            since[0].steps < multiple <= each.environment_steps
            for multiple in range(0, 10_000, every.count)
        )
        is_periodic |= seconds is not None and each.wall_seconds - since[0].seconds >= seconds
        is_best = False
        if each.kind == "evaluation" and policy.best_of is not None:
            own = {name.split("/")[1]: of for name, of in each.scalars.items()}
            assert isinstance(each, Evaluation)
            own |= {f"low/{n.split('/')[1]}": of for n, of in each.levels[0].scalars.items()}
            name = policy.best_of
            value = own.get("success_rate", 0.0) if name == "auto" else own.get(name, math.nan)
            value = -value if policy.best_is == "smallest" else value
            is_best = not math.isnan(value + own["reward_mean"]) and (
                best is None or (value, own["reward_mean"]) > best[:2]
            )
            if is_best:
                best = value, own["reward_mean"], index
        saved_at = taken[-1].seconds if taken else 0.0
        is_late = (
            policy.lost_at_most_seconds is not None
            and each.wall_seconds - saved_at >= policy.lost_at_most_seconds
        )
        if is_periodic or is_best or is_late:
            if not is_periodic and 0 < since[0].steps == each.environment_steps:
                since[0].is_periodic, is_periodic = False, True  # the later one takes its place
            taken.append(Taken(index, each.environment_steps, each.wall_seconds, is_periodic))
    last = [one.index for one in taken[-1:]]
    bests = [best[2]] if best else []
    periodic = [one.index for one in taken if one.is_periodic]
    newest = periodic if policy.keep_last is None else periodic[len(periodic) - policy.keep_last :]
    if policy.keep_last is not None and policy.keep_last >= len(periodic):
        newest = periodic
    numbered = periodic[policy.keep_every - 1 :: policy.keep_every] if policy.keep_every else []
    everything = sorted({*last, *bests, *newest, *numbered})
    return {"all": everything, "best": bests, "last": last}


POLICIES = [
    CheckpointParameters(lost_at_most_seconds=SELDOM),
    CheckpointParameters(lost_at_most_seconds=25.0),
    CheckpointParameters(every_steps=100, lost_at_most_seconds=None),
    CheckpointParameters(every_steps=100, keep_last=2, lost_at_most_seconds=None),
    CheckpointParameters(every_steps=60, keep_last=0, best_of=None),
    CheckpointParameters(every_steps=60, keep_last=2, keep_every=3, best_of="reward_mean"),
    CheckpointParameters(every_seconds=20, keep_last=1, keep_every=2, best_of="low/goal_share"),
    CheckpointParameters(
        every_seconds=33, every_steps=90, keep_last=3, best_of="length_mean", best_is="smallest"
    ),
]


def history(seed: int) -> list[LogRecord]:
    """Records of a run: values repeat, so there are ties; success is reported only later on."""
    rng = random.Random(seed)
    steps, seconds, records = 0, 0.0, []
    for index in range(26):
        steps += rng.choice([0, 10, 30, 130])
        seconds += rng.choice([1.0, 5.0, 12.0])
        evaluation = None
        if rng.random() < 0.4:
            evaluation = {
                "reward_mean": rng.choice([1.0, 2.0, 3.0, math.nan]),
                "length_mean": rng.choice([5.0, 6.0]),
                "low/goal_share": rng.choice([0.25, 0.5]),
            }
            if index > 12:
                evaluation["success_rate"] = rng.choice([0.0, 0.5])
        records.append(record(steps, seconds, evaluation))
    return records


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [1, 2])
def test_kept_checkpoints_are_those_of_the_policy(tmp_path, policy, seed):
    records, run = history(seed), Run(tmp_path, policy)
    for length in range(1, len(records) + 1):
        run.live(records[:length])
        assert run.kept() == promised(policy, records[:length]), length


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("stops", [(3,), (9, 17), (20, 24)])
def test_kept_checkpoints_of_a_resumed_run_are_the_same(tmp_path, policy, stops):
    records, run = history(3), Run(tmp_path, policy)
    for stop in stops:
        run.live(records[:stop])
        run.resume()
    run.live(records)
    assert run.kept() == promised(policy, records)


def test_checkpoint_at_the_end_takes_the_place_of_the_periodic_one_of_the_same_step(tmp_path):
    run = Run(tmp_path, CheckpointParameters(every_steps=400, keep_last=2, best_of=None))
    run.live([record(steps, steps / 10) for steps in (400, 800, 1200)])
    run.newest = 3
    run.keeper.save({"last"}, record(1200, 121.0))
    assert run.kept() == {"all": [1, 3], "best": [], "last": [3]}


def test_restore_after_a_kill_removes_superfluous_checkpoints(tmp_path):
    policy = CheckpointParameters(every_steps=10, keep_last=1, best_of=None)
    run = Run(tmp_path, policy)
    records = [record(10 * number, float(number)) for number in range(1, 4)]
    run.live(records[:2])
    kept = run.policy
    run.policy = CheckpointParameters(every_steps=10, best_of=None)  # leaves the third undeleted
    run.resume()
    run.live(records)
    assert run.kept()["all"] == [1, 2]
    run.policy = kept
    run.resume()
    assert run.kept()["all"] == [2]


def test_best_without_checkpoints_is_known(tmp_path):
    run = Run(tmp_path, CheckpointParameters(enabled=False))
    run.live([record(10, 1000.0, {"reward_mean": 3.0}), record(20, 5000.0, {"reward_mean": 2.0})])
    assert run.keeper.best is not None
    assert (run.keeper.best.value, run.keeper.best.environment_steps) == (3.0, 10)
    assert not (tmp_path / "checkpoints").exists()


def test_best_with_another_metric_on_resume_is_compared_again(tmp_path):
    run = Run(tmp_path, CheckpointParameters(lost_at_most_seconds=1.0))
    first = {"reward_mean": 9.0, "length_mean": 1.0}
    run.live([record(10, 1.0, first), record(20, 3.0)])
    run.policy = CheckpointParameters(best_of="length_mean")
    run.resume()
    assert run.kept() == {"all": [0, 1], "best": [0], "last": [1]}
    run.live([record(10, 1.0, first), record(20, 3.0), record(30, 4.0, first | {"reward_mean": 0})])
    assert run.kept() == {"all": [2], "best": [2], "last": [2]}
