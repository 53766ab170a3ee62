"""A run while it lasts: training, its parts, files and checkpoints, signals, the final evaluation.

A failed write loses log lines only; divergence is handled as the experiment configures it.
"""

import signal
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

from coach_rl.configuration.strict_json import Json, plain_json, write_json
from coach_rl.core.clock import Phase
from coach_rl.core.errors import CheckpointError, DivergedError, RunError, exits_as_errors, warn
from coach_rl.core.log_records import Evaluation, LogRecord
from coach_rl.core.runtime import DivergenceParameters, Runtime
from coach_rl.graph_managers.evaluations import EvaluationStopped, Evaluator
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import Moments
from coach_rl.runs.checkpoint import (
    BEST,
    LAST,
    POINTERS,
    find_checkpoint,
    list_checkpoints,
    pointed,
    read_checkpoint,
)
from coach_rl.runs.folder import RunFolder, read_manifest, write_manifest
from coach_rl.runs.keeper import CheckpointKeeper, Reason
from coach_rl.runs.logs import (
    RunSinks,
    WriteFailures,
    file_sinks,
    planned_cuts,
    service_sinks,
    write_columns,
    write_evidence,
)
from coach_rl.runs.manifest import now
from coach_rl.sessions.evaluation import evaluation_json
from coach_rl.sessions.opening import with_new_streams
from coach_rl.sessions.run_parts import RunContext, RunPart
from coach_rl.sessions.settings import Audience, RunResult, RunSettings
from coach_rl.sessions.stop_requests import Interrupted, StopRequests
from coach_rl.telemetry.resources import ResourceSampler
from coach_rl.telemetry.summary import Summary


@dataclass(kw_only=True)
class LiveRun:
    """A run whose graph is built and whose folder exists."""

    graph_manager: GraphManager
    runtime: Runtime
    folder: RunFolder
    manifest: Json
    """The run's manifest, which is written."""
    settings: RunSettings
    audience: Audience
    stop: StopRequests
    keeper: CheckpointKeeper
    parts: Mapping[str, RunPart]
    """The parts of the run by name, in their order."""
    saved_at: int | None
    """Environment steps of the newest checkpoint; None where there is none."""
    trust: tuple[str, ...] = ()
    """Modules whose code the run may use, besides those of the user's own runs."""
    unsaved: str | None = None
    """Part of the run's end that could not be written, its newest checkpoint or its summary, with
    the reason; None if all of it is there."""
    missed: LogRecord | None = None
    """The best evaluation, where its checkpoint could not be written; None where there is none."""

    def __post_init__(self) -> None:
        self.failures = WriteFailures(self.folder.path)
        """The count of what could not be written."""
        self.evaluator: Evaluator | None = None
        """Makes the evaluations while training; None where the run does so itself."""
        self._resources = ResourceSampler()
        self._updates = self.graph_manager.graph.updates
        """Modes of gradient steps, as they stand in the manifest."""

    def go(self) -> RunResult:
        """Train to the end or to a stop, save, evaluate."""
        if self.audience.on_start is not None:
            self.audience.on_start(self.graph_manager, self.runtime, self.folder)
        summary = None
        sinks = RunSinks(
            self.folder.path,
            file_sinks(
                self.folder,
                self.graph_manager,
                self.manifest if self.settings.tensorboard else None,
            ),
            self.audience.sinks,
            services=service_sinks(self.folder, self.graph_manager, self.manifest),
        )
        with closing(sinks), ExitStack() as opened, self.stop.patient():
            self.context = RunContext(
                graph_manager=self.graph_manager,
                runtime=self.runtime,
                folder=self.folder,
                keeper=self.keeper,
                sinks=sinks,
                failures=self.failures,
                trust=self.trust,
            )
            for part in self.parts.values():
                opened.enter_context(part.open(self.context))
                self.evaluator = part.evaluator if part.makes_evaluations else self.evaluator
            try:
                with exits_as_errors():
                    while not self._is_trained(sinks):
                        pass
                    if self.stop.signal is None and self.settings.final_episodes.count > 0:
                        summary = self._summarise(sinks)
            except RunError as error:
                done = self.graph_manager.graph.clock.environment_steps
                data = write_evidence(self.folder.path, error, done)
                raise type(error)(f"{error}. {self._progress_and_checkpoint()}{data}") from error
            except KeyboardInterrupt as error:
                number = getattr(error, "signal", signal.SIGINT)
                message = f"interrupted. {self._progress_and_checkpoint()}"
                raise Interrupted(message, signal=number) from None
        return RunResult(
            folder=self.folder,
            length=self._length,
            environment_steps=self.graph_manager.graph.clock.environment_steps,
            ending=self.graph_manager.progress.ending,
            solved_at=self.graph_manager.progress.solved_at,
            signal=self.stop.signal if summary is None else None,
            summary=summary,
            best=self.keeper.best,
            unsaved=self.unsaved,
            incidents=self._incidents(sinks),
            parts={name: part.result() for name, part in self.parts.items()},
        )

    def _is_trained(self, sinks: RunSinks) -> bool:
        """Train to the end or to a stop; False if the run diverged and has been rolled back."""
        try:
            self._train(sinks)
        except DivergedError as error:
            clock = self.graph_manager.graph.clock
            most = self._divergence.most_roll_backs
            can_roll_back = self._rolls_back and clock.roll_backs < most
            if not (can_roll_back and list_checkpoints(self.folder.checkpoints)):
                raise
            done = clock.environment_steps
            sinks.close()
            if self.evaluator is not None:
                self.evaluator.forget()
            self._roll_back(error)
            times = clock.roll_backs
            scalars = {"divergence/environment_steps": float(done), "divergence/roll_backs": times}
            self._write(self.context.record("roll_back", scalars), sinks)
            return False
        return True

    def _roll_back(self, error: DivergedError) -> None:
        """Go back to the last checkpoint, as a resumed run does, with other random numbers.

        The run's logs, which are closed, are cut back as well.
        """
        clock = self.graph_manager.graph.clock
        attempt = clock.roll_backs + 1
        done = self._length
        checkpoint = read_checkpoint(find_checkpoint(self.folder.checkpoints))
        cuts = planned_cuts(self.folder.path, checkpoint)
        self.keeper.restore(checkpoint)
        for cut in cuts:
            cut.make()
        names = ("roll back", attempt)
        state = with_new_streams(checkpoint.state, seed=self.runtime.seed, names=names)
        self.graph_manager.load_state_dict(state)
        clock.roll_backs = attempt
        self.missed = None
        warn(
            f"{error}. Rolled back from {done} to {checkpoint.path.name}, with "
            f"new random numbers ({attempt} of {self._divergence.most_roll_backs} times)"
        )

    @property
    def _divergence(self) -> DivergenceParameters:
        return self.graph_manager.parameters.divergence

    @property
    def _rolls_back(self) -> bool:
        return self._divergence.response == "roll_back"

    def _train(self, sinks: RunSinks) -> None:
        stop = self.stop
        is_going_on = is_saved = True
        while is_going_on:
            for record in self.graph_manager.improve(
                is_stopped=stop.is_requested,
                is_paused=stop.wants_checkpoint,
                evaluator=self.evaluator,
            ):
                self._keep(record)
                self._record_updates()
                self._write(record, sinks)
                if record.kind != "note":  # notes of callbacks follow the record they are about
                    subject = record
                is_saved = self.graph_manager.progress.is_settled and self._save_if_due(
                    subject, sinks
                )
                if stop.is_requested() and self.graph_manager.progress.is_settled:
                    break
            if self.evaluator is not None and not self.graph_manager.evaluations.is_awaited:
                self.keeper.drop_pending()
            is_going_on = stop.take_checkpoint_request() and not stop.is_requested()
            done = self.graph_manager.progress.moment
            is_saved &= self.saved_at == done and not self.graph_manager.progress.wants_checkpoint
            if not is_saved and self.keeper.is_enabled:
                self._save({"last", *self._requested()}, self.context.record("checkpoint"), sinks)

    def _save_if_due(self, record: LogRecord, sinks: RunSinks) -> bool:
        if self.evaluator is not None and record.kind == "evaluation":
            self.keeper.settle(record)
            return False
        reasons = self.keeper.reasons(record)
        if self._rolls_back and not list_checkpoints(self.folder.checkpoints):
            reasons.add("last")  # to have something to go back to
        is_due = record.kind == "phase" and record.phase is Phase.TEST
        if self.evaluator is not None and is_due and self.keeper.is_enabled:
            reasons |= {"last", "awaited"}
        reasons |= self._requested()
        if reasons:
            self._save(reasons, record, sinks)
        return bool(reasons)

    def _requested(self) -> set[Reason]:
        """The reason for a checkpoint that a callback has requested; clears the request."""
        progress = self.graph_manager.progress
        is_wanted = progress.wants_checkpoint
        progress.wants_checkpoint = False
        return {"asked"} if is_wanted and self.keeper.is_enabled else set()

    def _save(self, reasons: set[Reason], record: LogRecord, sinks: RunSinks) -> None:
        """Announce it first, so that the line is among those the checkpoint keeps.

        Where it cannot be written the run continues, and tries again when the next one is due.
        """
        moment = self.graph_manager.progress.moment
        unit = self.graph_manager.parameters.source.UNIT
        if self.missed is not None and unit.counted(self.missed) == moment:  # the same agents
            reasons = {*reasons, "best"}
            record = self.missed
        is_there = self.folder.manifest.exists()
        announced = self.context.record("checkpoint", {"checkpoint/best": float("best" in reasons)})
        if self.keeper.is_enabled:
            if is_there:
                self.keeper.begin(record)
            sinks.write(announced)
        try:
            if not is_there:
                raise CheckpointError("the run's folder has lost its manifest")
            self.keeper.save(reasons, record)
        except CheckpointError as error:
            what = f"the checkpoint at {self._length}"
            self.unsaved = self.failures.note("checkpoints", what, error)
            self.missed = record if "best" in reasons else None
            sinks.write(replace(announced, kind="checkpoint_failed"))
            if is_there and not list_checkpoints(self.folder.checkpoints):
                self.keeper.begin(record)  # that line may find no room either
        else:
            self.saved_at = moment
            self.unsaved = None
            self.missed = None

    def _write(self, record: LogRecord, sinks: RunSinks) -> None:
        """Write a record of the run, and those that its parts add.

        Those of progress have the use of processor and memory every few seconds.
        """
        if record.kind == "progress" and record.is_in_files:
            scalars = {**record.scalars, **self._resources.sample_if_due()}
            record = replace(record, scalars=scalars)
        sinks.write(record)
        for part in self.parts.values():
            for each in part.follow(record):
                sinks.write(each)

    def _record_updates(self) -> None:
        """Write into the manifest how gradient steps run, where that has changed."""
        updates = self.graph_manager.graph.updates
        if updates == self._updates:
            return
        self._updates = updates
        try:
            write_manifest(self.folder, {**read_manifest(self.folder), "updates": updates})
        except (OSError, CheckpointError) as error:
            self.failures.note("manifests", "how gradient steps run", error)

    def _keep(self, record: LogRecord) -> None:
        """Write the columns of a record that has some into the file that it names."""
        if record.columns:
            try:
                write_columns(self.folder.path / f"{record.file}.npz", record.columns)
            except OSError as error:
                self.failures.note("files of records", f"the columns of {record.file}", error)

    def _incidents(self, sinks: RunSinks) -> tuple[str, ...]:
        clock = self.graph_manager.graph.clock
        counted = {
            "updates skipped, for numbers that were not finite": clock.skipped_updates,
            "roll-backs, after the run had diverged": clock.roll_backs,
            **self.failures.counted(),
        }
        return (*(f"{what}: {n:,}" for what, n in counted.items() if n), *sinks.incidents)

    @property
    def _length(self) -> Moments:
        """The length of the run so far, in the unit of its source."""
        return self.graph_manager.parameters.source.UNIT(self.graph_manager.progress.moment)

    def _progress_and_checkpoint(self) -> str:
        """Return the progress of the run, and the checkpoint that remains of it."""
        checkpoints = self.folder.checkpoints
        kept = (
            f"its last checkpoint, {find_checkpoint(checkpoints)}, was written before"
            if list_checkpoints(checkpoints)
            else "it had written no checkpoint"
        )
        return f"The run had done {self._length}; {kept}"

    def _summarise(self, sinks: RunSinks) -> Summary | None:
        """The final evaluation; None where it was stopped.

        It is written into the run's folder where all else is saved: a run with a summary is over,
        one without can be resumed.
        """
        sinks.write(self.graph_manager.evaluations.begins())
        try:
            evaluation = self.graph_manager.evaluate(
                self.settings.final_episodes,
                seed=self.runtime.seed,
                is_stopped=self.stop.is_requested,
            )
        except EvaluationStopped:
            return None
        for record in (*evaluation.levels, evaluation):  # its starts are not those before
            kind = "final_evaluation" if record is evaluation else record.kind
            scalars = {f"final_{name}": value for name, value in record.scalars.items()}
            self._write(replace(record, kind=kind, scalars=scalars), sinks)
        summary = self._summary(evaluation, sinks)
        best = self.keeper.best
        document = {
            "created": now(),
            "seed": self.runtime.seed,
            **summary.as_json(),
            "best_evaluation": None if best is None else vars(best),
            "evaluated_episodes": evaluation_json(evaluation)["episodes"],
        }
        if self.unsaved is None:
            try:
                write_json(self.folder.summary, plain_json(document))
            except OSError as error:
                self.unsaved = self.failures.note("summaries", "the summary", error)
        return summary

    def _summary(self, evaluation: Evaluation, sinks: RunSinks) -> Summary:
        """The summary of the run, which is over, with the final evaluation."""
        graph_manager = self.graph_manager
        checkpoints = self.folder.checkpoints
        graph = graph_manager.graph
        progress = graph_manager.progress
        seconds = progress.training_seconds
        target = graph_manager.parameters.validation
        names = {pointer: pointed(checkpoints, pointer) for pointer in POINTERS}
        paths = {of: name and f"{checkpoints.name}/{name}" for of, name in names.items()}
        return Summary(
            evaluation=evaluation,
            steps_per_second=evaluation.moment / seconds if seconds else 0.0,
            best_checkpoint=paths[BEST],
            last_checkpoint=paths[LAST],
            best="" if self.keeper.best is None else str(self.keeper.best),
            ending=progress.ending or "",
            target="" if target is None else target.report(progress.solved_at),
            solved_at=progress.solved_at,
            incidents=(*self._incidents(sinks), *graph.timings.unreached()),
            faults=graph.tracker.faults,
            signals=progress.signals,
        )
