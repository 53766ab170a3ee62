"""The folder of a run under any sequence of commands, against a walk in a loop.

Runs are trained, stopped, killed, resumed, forked and evaluated. Whatever has happened, a run's
checkpoints hold the walk of its settings at their steps, and its log names every evaluation once.
"""

import os
import shutil
import signal
import tempfile
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import coach_rl as rl
from coach_rl.core.errors import CheckpointError
from coach_rl.extensions.testing import assert_same_state
from coach_rl.runs.checkpoint import list_checkpoints, read_checkpoint
from coach_rl.runs.lock import RunInUseError, locked
from coach_rl.sessions.settings import Audience
from coach_rl.sessions.stop_requests import Interrupted
from tests.small_runs import (
    AtRecord,
    contents,
    lines_of,
    log_of,
    manifest_of,
    preset,
    state_of,
)

EXAMPLES = settings(
    max_examples=25,
    stateful_step_count=12,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),  # to shrink takes minutes
    suppress_health_check=list(HealthCheck),
)
WALK = preset()
RATES = st.sampled_from([0.1, 0.5, 2.0])
ENDS = st.none() | st.tuples(st.sampled_from(["kill", "stop"]), st.integers(0, 45))
"""How a run ends before its time, and after how many steps."""


@dataclass
class PlainRun:
    """A run's walk: the learning rate of every step, and what is known of its folder."""

    seed: int
    rates: list[float]
    """The learning rate of each step of its plan."""
    done: int = 0
    """Steps in its newest checkpoint; 0: none."""
    begin: int | None = None
    """The step at which a fork begins; None: it is none."""
    path: Path | None = None
    ends: set[int] = field(default_factory=set)
    """The steps of ends of its plans."""

    def weights(self, steps):
        """The weights after so many steps, and the numbers by which they moved."""
        with WALK.build({}) as manager:
            manager.create_graph(rl.Runtime(seed=self.seed, device="cpu"))
            rng = deepcopy(manager.graph.agents["main"].rng)
        weights, history = np.zeros(3, np.float32), []
        for rate in self.rates[:steps]:
            step = rng.normal(size=3)
            weights += (rate * step).astype(np.float32)
            history.append(step[0])
        return weights, history


def settings_of(every):
    """Settings with a checkpoint every so many steps, and at the end."""
    return rl.RunSettings(
        tensorboard=False,
        final_episodes=rl.EnvironmentEpisodes(1),
        checkpoints=rl.CheckpointParameters(every_steps=rl.EnvironmentSteps(every), keep_last=4),
    )


class FolderMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 9), rate=RATES, steps=st.integers(1, 60), end=ENDS)
    def begin(self, seed, rate, steps, end):
        self.root, self.runs, self.whole = Path(tempfile.mkdtemp()), [], {}
        run = PlainRun(seed, [rate] * steps)

        def start(audience):
            return rl.run_experiment(
                WALK.build({"learning_rate": rate, "steps": steps}),
                rl.Runtime(seed=seed, device="cpu"),
                name="walk",
                root=self.root,
                settings=settings_of(10),
                audience=audience,
            )

        self.train(run, start, end, every=10)

    def train(self, run, start, end, every):
        """Train a run to the end of its plan, or until it is stopped or killed."""
        how, after = end or ("", len(run.rates))
        at, begun, before = run.done + after, run.done, set(self.root.glob("*/*"))

        def is_due(record):
            return record.environment_steps >= at

        actions = {
            "kill": AtRecord(is_due),
            "stop": AtRecord(is_due, lambda: os.kill(os.getpid(), signal.SIGTERM)),
        }
        result = None
        try:
            result = start(Audience(sinks=(actions[how],) if how else ()))
        except Interrupted:
            assert how == "kill"
        if run.path is None:
            (run.path,) = set(self.root.glob("*/*")) - before
            self.runs.append(run)
        if result is None or result.ending is not None:  # a kill may have been at the end
            run.ends.add(len(run.rates))
        kept = list_checkpoints(run.path / "checkpoints")
        run.done = self.check(run)
        is_over = result is not None and result.ending is not None and result.signal is None
        assert (run.path / "summary.json").exists() == is_over or how == "stop"
        if result is None:  # what was not saved is lost
            assert run.done <= len(run.rates)
            assert not kept or begun <= run.done
            assert run.done >= min(at - at % every, len(run.rates)) - every or not kept
        else:
            assert result.environment_steps == run.done
            assert result.signal is not None or result.ending is not None
            assert result.signal in (None, signal.SIGTERM)
            assert run.done == len(run.rates) or how == "stop"
            self.check_log(run, how)
        if is_over:
            self.check_end(run, result)

    def check_end(self, run, result):
        """A run that has come to its end equals one that never stopped.

        Its end is evaluated: one that has had another end has one evaluation more.
        """
        if run.begin is not None or run.ends != {len(run.rates)}:
            return
        key = (run.seed, run.rates[0], len(run.rates))
        if key not in self.whole:
            manager = WALK.build({"learning_rate": key[1], "steps": key[2]})
            self.whole[key] = rl.run_experiment(
                manager,
                rl.Runtime(seed=run.seed, device="cpu"),
                name="whole",
                root=Path(f"{self.root}-whole"),
                settings=settings_of(10),
            )
        whole = self.whole[key]
        assert log_of(run.path) == log_of(whole)
        assert_same_state(state_of(run.path), state_of(whole))
        assert (result.best is None) == (whole.best is None)
        if result.best is not None:
            assert result.best.reward == whole.best.reward
            assert_same_state(state_of(run.path, "best"), state_of(whole, "best"))
        assert result.summary.evaluation.scalars == whole.summary.evaluation.scalars

    def check(self, run):
        """Check the checkpoints of a run; return the steps of the newest."""
        newest = 0
        for path in list_checkpoints(run.path / "checkpoints"):
            state = read_checkpoint(path).state
            newest = state["training"]["clock"]["environment_steps"]
            weights, history = run.weights(newest)
            found = state["agents"]["main"]
            np.testing.assert_array_equal(found["weights"], weights)
            np.testing.assert_array_equal(found["history"], history)
        return newest

    def check_log(self, run, how):
        """Every evaluation is in the log once, and nothing of what was lost with a kill."""
        lines = lines_of(run.path)
        steps = [line["environment_steps"] for line in lines]
        assert all(one <= other for one, other in pairwise(steps))
        assert steps[-1] <= run.done
        begin = run.begin or 0
        evaluated = [line["environment_steps"] for line in lines if line["kind"] == "evaluation"]
        found = [step for step in evaluated if step % 20 == 0 and step > begin]
        expected = [step for step in range(20, run.done + 1, 20) if step > begin]
        if how == "stop" and expected[-1:] == [run.done] != found[-1:]:
            expected.pop()  # it is still to come
        assert found == expected
        rates = manifest_of(run.path)["parameters"]["agent"]["learning_rate"]
        assert rates == run.rates[-1]

    def any_run(self, data, *, is_saved=False):
        runs = [run for run in self.runs if run.done or not is_saved]
        return runs[data.draw(st.integers(0, len(runs) - 1))]

    def checkpoint_of(self, data, run):
        """Any checkpoint of a run, and its steps."""
        path = data.draw(st.sampled_from(list_checkpoints(run.path / "checkpoints")))
        return path, read_checkpoint(path).state["training"]["clock"]["environment_steps"]

    @rule(data=st.data(), more=st.sampled_from([0, 1, 15, 30]), end=ENDS)
    def resume(self, data, more, end):
        run, every = self.any_run(data), data.draw(st.sampled_from([10, 20]))
        rest = len(run.rates) - run.done
        steps = rl.EnvironmentSteps(len(run.rates) + more) if more else None

        def start(audience):
            return rl.resume_experiment(
                run.path, steps=steps, settings=settings_of(every), audience=audience
            )

        if run.begin is not None and not list_checkpoints(run.path / "checkpoints"):
            self.refused(run, start, CheckpointError, "has no checkpoint")
            return
        is_concluded = (run.path / "summary.json").exists()
        if not rest and not more and is_concluded:
            self.refused(run, start, rl.ConfigurationError, "nothing left to train")
            return
        run.rates += [run.rates[-1]] * more
        self.train(run, start, end, every)

    def refused(self, run, call, kind, message):
        """A call that raises, and leaves the folder as it is."""
        before = contents(run.path)
        with pytest.raises(kind, match=message):
            call(None)
        assert contents(run.path) == before

    @rule(data=st.data(), rate=RATES)
    def change_what_may_not_change(self, data, rate):
        run = self.any_run(data)
        changes = {"agent.learning_rate": rate}
        if list_checkpoints(run.path / "checkpoints"):
            self.refused(
                run,
                lambda _: rl.resume_experiment(run.path, changes=changes, settings=settings_of(10)),
                rl.ConfigurationError,
                "a run that is resumed keeps its 'agent.learning_rate'",
            )

    @precondition(lambda self: any(run.done for run in self.runs) and len(self.runs) < 4)
    @rule(data=st.data(), rate=RATES, more=st.sampled_from([5, 25]), end=ENDS)
    def fork(self, data, rate, more, end):
        parent = self.any_run(data, is_saved=True)
        path, begin = self.checkpoint_of(data, parent)
        before = contents(parent.path)
        rates = parent.rates[:begin] + [rate] * more
        run = PlainRun(parent.seed, rates, begin, begin)

        def start(audience):
            return rl.fork_experiment(
                path,
                name="fork",
                overrides={"agent.learning_rate": rate},
                steps=rl.EnvironmentSteps(begin + more),
                settings=settings_of(10),
                audience=audience,
            )

        self.train(run, start, end, every=10)
        assert contents(parent.path) == before
        (*_, ancestor) = manifest_of(run.path)["ancestry"]
        assert (ancestor["run"], ancestor["environment_steps"]) == (str(parent.path), begin)

    @precondition(lambda self: any(run.done for run in self.runs))
    @rule(data=st.data())
    def evaluate(self, data):
        run = self.any_run(data, is_saved=True)
        path, steps = self.checkpoint_of(data, run)
        before = contents(run.path)
        evaluation, file = rl.evaluate_run(path, episodes=rl.EnvironmentEpisodes(2))
        # An episode has 10 steps of a tenth of the weights' sum.
        weights, _ = run.weights(steps)
        reward = evaluation.scalars["evaluation/reward_mean"]
        assert reward == pytest.approx(weights.sum(), rel=1e-4, abs=1e-4)
        after = contents(run.path)
        assert after.pop(str(file.relative_to(run.path)))
        before.pop(str(file.relative_to(run.path)), None)
        assert after == before

    @precondition(lambda self: any(run.done for run in self.runs))
    @rule(data=st.data(), drops=st.booleans(), end=ENDS)
    def return_to_a_checkpoint(self, data, drops, end):
        """Resume an earlier checkpoint, which drops the later ones, if that is asked for."""
        run = self.any_run(data, is_saved=True)
        path, steps = self.checkpoint_of(data, run)
        is_newest = path == list_checkpoints(run.path / "checkpoints")[-1]

        def start(audience):
            return rl.resume_experiment(
                path,
                steps=rl.EnvironmentSteps(steps + 20),
                drop_later=drops,
                settings=settings_of(10),
                audience=audience,
            )

        if not drops and not is_newest:
            self.refused(run, start, rl.ConfigurationError, "would delete later checkpoints")
            return
        run.ends = {end for end in run.ends if end <= steps}
        run.rates, run.done = [*run.rates[:steps], *[run.rates[-1]] * 20], steps
        self.train(run, start, end, every=10)

    @rule(data=st.data())
    def use_by_two(self, data):
        """Another process holds the run."""
        run = self.any_run(data)
        with locked(run.path):
            more = rl.EnvironmentSteps(len(run.rates) + 10)
            self.refused(
                run,
                lambda _: rl.resume_experiment(run.path, steps=more, settings=settings_of(10)),
                RunInUseError,
                "in use",
            )

    def teardown(self):
        if hasattr(self, "root"):
            shutil.rmtree(self.root)
            shutil.rmtree(f"{self.root}-whole", ignore_errors=True)


class TestFolders(FolderMachine.TestCase):
    settings = EXAMPLES


@pytest.mark.slow
class TestFoldersForLong(FolderMachine.TestCase):
    settings = settings(EXAMPLES, max_examples=300, stateful_step_count=30, derandomize=False)
