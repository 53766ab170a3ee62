"""A process that evaluates a run's agents while the run trains on.

    run_experiment(..., settings=RunSettings(parts=(BackgroundEvaluation(),)))

    with closing(EvaluationProcess(folder, runtime)) as evaluator:
        for record in graph_manager.improve(evaluator=evaluator):
            ...

The process rebuilds the experiment from the run's folder, as `coach evaluate` does, and receives
the agents' policies; it plays the same episodes as the run itself would. It ends with the run, and
is started again if it ends before.
"""

import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import ClassVar

from coach_rl.core.errors import CoachError, RunError, warn
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.evaluations import EvaluationRequest, Scores
from coach_rl.processes.worker_messages import WorkerLost
from coach_rl.processes.worker_process import WorkerProcess
from coach_rl.runs.folder import RunFolder
from coach_rl.sessions.evaluation import live_graph
from coach_rl.sessions.opening import rebuild
from coach_rl.sessions.run_parts import RunContext, RunPart
from coach_rl.sessions.settings import RunPartParameters, RunSettings

MOST_RESTARTS = 3
"""Number of times in a row that the process is started again without finishing an evaluation."""


@parameter_class
class BackgroundEvaluation(RunPartParameters):
    """Evaluations while training, in a process of their own; training does not wait for them.

    A run that is resumed while some are pending has it in any case.
    """

    name: ClassVar[str] = "background evaluation"

    def build(self, settings: RunSettings) -> RunPart:
        others = tuple(part for part in settings.parts if part is not self)
        return BackgroundEvaluations(others)


class BackgroundEvaluations(RunPart):
    """Makes the evaluations of a run in a process of its own.

    Args:
        others: Parameters of the run's other parts, which take part in that process as well.
    """

    makes_evaluations = True
    is_rebuilt_elsewhere = True

    def __init__(self, others: tuple[RunPartParameters, ...]) -> None:
        self._others = others

    @contextmanager
    def open(self, run: RunContext) -> Iterator[None]:
        process = EvaluationProcess(run.folder, run.runtime, run.trust, parts=self._others)
        with closing(process) as self.evaluator:
            yield


class EvaluationProcess:
    """Evaluates a run's agents in a process of its own; an `Evaluator`.

    Args:
        run: The run's folder, whose manifest is written.
        runtime: The run's.
        trust: Modules whose code the run may use, besides those of the user's own runs.
        parts: Parameters of the run's parts that take part in the process; see
            `RunPartParameters.join`.
    """

    def __init__(
        self,
        run: RunFolder,
        runtime: Runtime,
        trust: tuple[str, ...] = (),
        *,
        parts: tuple[RunPartParameters, ...] = (),
    ) -> None:
        folder = RunFolder(run.path.absolute())
        make = partial(
            RunEvaluations,
            folder,
            device=runtime.device,
            threads=runtime.threads,
            trust=trust,
            parts=parts,
        )
        self._worker = WorkerProcess(make, start_method="spawn", imports_script=False)
        self._pending: deque[tuple[EvaluationRequest, Future[Scores]]] = deque()

    def submit(self, evaluation: EvaluationRequest) -> None:
        if all(evaluation is not each for each, _ in self._pending):
            self._pending.append((evaluation, self._worker.submit(RunEvaluations.play, evaluation)))

    def has_answered(self, *, wait_seconds: float = 0.0) -> bool:
        if not self._pending:
            return False
        _, future = self._pending[0]
        if wait_seconds:
            wait([future], timeout=wait_seconds)
        if future.done() and isinstance(lost := future.exception(), WorkerLost):
            self._restart(lost)
            return self.has_answered(wait_seconds=wait_seconds)
        return future.done()

    def answer(self) -> Scores:
        _, future = self._pending.popleft()
        try:
            return future.result()
        except CoachError as error:
            raise RunError(f"an evaluation failed: {error}") from error

    def forget(self) -> None:
        for _, future in self._pending:
            future.cancel()
        self._pending.clear()

    def close(self) -> None:
        """End the process, whatever it does."""
        self._worker.close(grace=0.0)

    def _restart(self, lost: WorkerLost) -> None:
        """Replace the process, which has ended, and repeat its requests."""
        if self._worker.losses > MOST_RESTARTS:
            raise RunError(
                f"evaluations have failed {MOST_RESTARTS + 1} times in a row: {lost}; resume "
                "without --background_evaluation, or give it more memory"
            )
        warn(
            f"an evaluation was lost: {lost}; another process repeats it, and no result is lost",
        )
        self._worker.restart()
        waiting = self._pending
        self._pending = deque()
        for evaluation, _ in waiting:
            self.submit(evaluation)


class RunEvaluations:
    """The evaluations of a run, in the process that makes them; see `EvaluationProcess`."""

    def __init__(
        self,
        run: RunFolder,
        *,
        device: str,
        threads: int | None,
        trust: tuple[str, ...],
        parts: tuple[RunPartParameters, ...],
    ) -> None:
        warnings.simplefilter("ignore")  # the run itself gives the same
        self._graph_manager, runtime, _ = rebuild(
            run, device, threads=threads, learns=False, trust=trust
        )
        self._open = ExitStack()
        self._open.enter_context(live_graph(self._graph_manager, runtime, training=False))
        self._after_each = [
            part.join(self._graph_manager, run, process="evaluation") for part in parts
        ]

    def play(self, evaluation: EvaluationRequest) -> Scores:
        """The scores of an evaluation."""
        scores = self._graph_manager.evaluations.scores_of(
            evaluation.policies, clock=evaluation.clock
        )
        for call in self._after_each:  # not at the end: the process may be killed without notice
            call()
        return scores
