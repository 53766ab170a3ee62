"""A process that evaluates a run's agents while the run trains on.

    with EvaluationProcess(folder, runtime) as evaluator:
        for record in graph_manager.improve(evaluator=evaluator):
            ...

The process rebuilds the experiment from the run's folder, as `coach evaluate` does, and is sent
what the agents know; it plays the same episodes as the run itself would. It ends with the run,
however that ends, and is started again where it ends before.
"""

import json
import os
import pickle
import subprocess
import sys
import traceback
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, Self

from coach_rl.core.errors import CoachError, CoachWarning, RunError
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.evaluations import AskedEvaluation, EvaluationStopped, Scores
from coach_rl.runs.folder import RunFolder
from coach_rl.sessions.evaluation import live_graph
from coach_rl.sessions.profile import RunProfile
from coach_rl.sessions.rebuilding import rebuild

READY = "ready"
MOST_RESTARTS = 3
"""Times that the process is started again in one run."""


class EvaluationProcess:
    """Makes the evaluations of a run in a process of its own; an `Evaluator`.

    Args:
        run: The run's folder, whose manifest is written.
        runtime: The run's.
        trust: Modules whose code the run may use, besides those of the user's own runs.
        profile: Whether it is profiled, in files of its own.
    """

    def __init__(
        self,
        run: RunFolder,
        runtime: Runtime,
        trust: tuple[str, ...] = (),
        *,
        profile: bool = False,
    ) -> None:
        given = {"device": runtime.device, "threads": runtime.threads, "profile": profile}
        self._command = (str(run.path.absolute()), json.dumps({**given, "trust": trust}))
        self._waiting: deque[AskedEvaluation] = deque()
        self._answer: Scores | CoachError | None = None
        self._restarts = 0
        self._doing: Literal["starting", "nothing", "evaluating"] = "starting"
        self._is_unwanted = False
        """True if nobody needs the result of the evaluation that is being made."""
        self._start()

    def ask(self, evaluation: AskedEvaluation) -> None:
        """Add an evaluation to those that are to be made, unless it is among them."""
        if all(evaluation is not each for each in self._waiting):
            self._waiting.append(evaluation)
            self._send_next()

    def has_answered(self, *, wait_seconds: float = 0.0) -> bool:
        """Return whether the first evaluation is over, after waiting for it that long at most."""
        while self._answer is None and self._connection.poll(wait_seconds):
            try:
                heard = pickle.loads(self._connection.recv_bytes())
            except (EOFError, OSError):
                self._start_again()
                continue
            if heard != READY and not self._is_unwanted:
                self._answer = heard
            self._doing, self._is_unwanted = "nothing", False
            self._send_next()
        return self._answer is not None

    def answer(self) -> Scores:
        """Take the result of the first evaluation from the list; raises the error it ended with."""
        answer, self._answer = self._answer, None
        self._waiting.popleft()
        self._send_next()
        if isinstance(answer, CoachError):
            raise answer
        assert answer is not None, "nothing has been answered"
        return answer

    def forget(self) -> None:
        """Drop all evaluations that were asked for."""
        self._is_unwanted = self._doing == "evaluating"
        self._waiting.clear()
        self._answer = None

    def close(self) -> None:
        """End the process, whatever it does."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _start(self) -> None:
        self._connection, theirs = Pipe()
        number = theirs.fileno()
        words = [sys.executable, "-m", __name__, str(number), str(os.getpid()), *self._command]
        # A session of its own: Ctrl-C in a terminal is for the run, which may still wait for it.
        self._process = subprocess.Popen(words, pass_fds=[number], start_new_session=True)
        theirs.close()
        self._doing = "starting"

    def _start_again(self) -> None:
        """Take another process in place of one that has ended; what it was asked is asked again."""
        self.close()
        code = self._process.returncode
        if self._restarts == MOST_RESTARTS:
            raise RunError(
                f"the process that evaluates has ended {MOST_RESTARTS + 1} times, the last time "
                f"with exit code {code}; resume without --evaluate_aside, or give it more memory"
            )
        self._restarts, self._is_unwanted = self._restarts + 1, False
        warnings.warn(
            f"the process that evaluates has ended with exit code {code}; another one makes the "
            "evaluation again, and nothing is lost",
            CoachWarning,
            stacklevel=4,
        )
        self._start()

    def _send_next(self) -> None:
        """Give the process the first evaluation where it does nothing, and reads it at once."""
        if self._doing == "nothing" and self._waiting and self._answer is None:
            try:
                _send(self._connection, self._waiting[0])
            except OSError:
                return  # it has ended, which shows when it is listened to
            self._doing = "evaluating"


def _serve(
    connection: Connection,
    parent: int,
    run: Path,
    *,
    device: str,
    threads: int,
    profile: bool,
    trust: Sequence[str],
) -> None:
    """Evaluate what comes through a connection until it is closed."""
    graph_manager, runtime, _ = rebuild(
        RunFolder(run), device, threads=threads, learns=False, trust=trust
    )
    with live_graph(graph_manager, runtime, training=False):
        timed = RunProfile(graph_manager, process="evaluation") if profile else None
        _send(connection, READY)
        while True:
            asked = pickle.loads(connection.recv_bytes())
            scores = graph_manager.evaluations.scores_of(
                asked.policies, clock=asked.clock, is_stopped=lambda: os.getppid() != parent
            )
            if timed is not None:  # whoever ends this process gives no notice
                with suppress(OSError):  # the run says that of its own profile
                    timed.write(timed.profile(), run)
            _send(connection, scores)


def _send(connection: Connection, value: object) -> None:
    """Send a value whole; tensors are not to be shared between the processes."""
    connection.send_bytes(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


def _main() -> None:
    connection = Connection(int(sys.argv[1]))
    parent, run, given = int(sys.argv[2]), Path(sys.argv[3]), json.loads(sys.argv[4])
    warnings.simplefilter("ignore")  # the run itself has said them
    try:
        _serve(connection, parent, run, **given)
    except (EOFError, BrokenPipeError, ConnectionResetError, EvaluationStopped):
        return  # the run is over
    except CoachError as error:
        _send(connection, RunError(f"an evaluation failed: {error}"))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        _send(connection, RunError(f"an evaluation failed: {what}"))


if __name__ == "__main__":
    _main()
