"""A new run of another run's experiment, from its beginning, with another seed or changes.

    repeat_experiment(run_folder, seed=1)
    repeat_experiment(run_folder, name="slower", overrides={"agent.optimizer.learning_rate": 1e-4})

Without changes, and with the same seed, its numbers are those of the other run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from coach_rl.configuration.overrides import overrides_json
from coach_rl.configuration.strict_json import read_text
from coach_rl.runs.folder import find_folder
from coach_rl.runs.manifest import Origin, check_importable, differences_since
from coach_rl.sessions.opening import Opening, OpeningArguments, rebuild, with_overrides
from coach_rl.sessions.session import Session
from coach_rl.sessions.settings import Audience, RunResult, RunSettings


def repeat_experiment(
    run: Path | Opening,
    *,
    name: str | None = None,
    overrides: Mapping[str, object] | None = None,
    seed: int | None = None,
    root: Path | None = None,
    command: Sequence[str] = (),
    settings: RunSettings | None = None,
    audience: Audience | None = None,
    **opening: Unpack[OpeningArguments],
) -> RunResult:
    """Train the experiment of another run from its beginning, in a new run folder.

    Of the other run only its manifest and its copy of the preset are read; it may be unfinished.

    Args:
        run: The other run's folder.
        name: The new experiment's name, the folder above the run's; None takes the other's.
        overrides: Changed parameters by dotted path.
        seed: The seed; None keeps the other's.
        root: The folder of all experiments; None takes the other's.
        command: The command line, for the manifest.
        settings: How to run it; None takes the defaults.
        audience: Receivers of its records besides the run's files; None for none.
        **opening: `device`, `threads` and `trust` of `Opening`.

    Raises:
        ConfigurationError: There is no such run, or a parameter does not exist or fit.
        CheckpointError: Its manifest is damaged.
    """
    how = Opening.of(run, opening)
    other = find_folder(how.run)
    before, runtime, old = rebuild(other, how.device, threads=how.threads, trust=how.trust)
    changes = dict(overrides or {})
    graph_manager = with_overrides(before, changes)
    if seed is not None:
        runtime = replace(runtime, seed=seed)
    if "threads" in changes and how.threads is None:
        runtime = replace(runtime, threads=graph_manager.parameters.threads)
    name = old["name"] if name is None else name
    root = other.path.parent.parent if root is None else root
    with Session(settings, audience, trust=tuple(how.trust)) as session:
        graph_manager = session.build(graph_manager, runtime, name=name)
        loaded = session.begin()
        manifest = session.manifest(name, Origin(command=tuple(command)))
        manifest |= {
            "preset": old["preset"],
            "panel": old["panel"],
            "differences": differences_since(old, before, graph_manager),
            "repeats": {
                "run": str(other.path),
                "seed": old["task"]["seed"],
                "changes": overrides_json(changes),
            },
            "loaded": loaded,
        }
        check_importable(session.code, needed_by=session.rebuilding)
        source = None if old["preset"] is None else read_text(other.preset)
        folder = session.create(root, name, manifest, source, known=before.parameters)
        return session.train(folder, session.keeper(folder), manifest)
