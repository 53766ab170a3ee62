"""Sessions: open a run and train, resume, fork, evaluate, play or load it.

May import core, telemetry, graph_managers, configuration, runs and processes. Start with
`session` and `evaluation`; `run_parts` is for what takes part in a run.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.sessions.evaluation import evaluate_run, evaluate_untrained
    from coach_rl.sessions.loaded_levels import load_levels
    from coach_rl.sessions.repeating import repeat_experiment
    from coach_rl.sessions.run_parts import PartResult, RunContext, RunPart, Written
    from coach_rl.sessions.session import fork_experiment, resume_experiment, run_experiment
    from coach_rl.sessions.settings import Audience, RunPartParameters, RunResult, RunSettings
    from coach_rl.sessions.trained_agent import TrainedAgent, load
    from coach_rl.sessions.training import train
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Audience", "PartResult", "RunContext", "RunPart", "RunPartParameters", "RunResult",
    "RunSettings", "TrainedAgent", "Written", "evaluate_run", "evaluate_untrained",
    "fork_experiment", "load", "load_levels", "repeat_experiment", "resume_experiment",
    "run_experiment", "train",
]  # fmt: skip
