"""Opening a run: its experiment, rebuilt from its folder and adapted to its use."""

import dataclasses
import json
import operator
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch

import coach_rl
from coach_rl.configuration.file_writing import sha256_of
from coach_rl.configuration.overrides import apply_overrides
from coach_rl.configuration.parameters_json import (
    constructor_fields,
    decode,
    resolve,
    spaces_from_json,
)
from coach_rl.configuration.strict_json import Json, read_text
from coach_rl.configuration.trust import (
    Trust,
    code_in_json,
    code_in_parameters,
    is_own_preset,
    shipped_preset,
    texts_like_code,
    users_trust,
)
from coach_rl.configuration.user_modules import (
    changed_neighbours,
    let_import_named,
    let_import_recorded,
    load_module,
    preset_module,
)
from coach_rl.core.errors import CheckpointError, ConfigurationError, UnknownNameError, warn
from coach_rl.core.parameter_classes import KeepingParameters, MovableParameters
from coach_rl.core.row_noise import BLOCK
from coach_rl.core.runtime import Runtime
from coach_rl.core.seeding import generator, generator_state, integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.torch_settings import resolved_device, with_threads
from coach_rl.runs.checkpoint import Checkpoint, list_checkpoints, read_checkpoint
from coach_rl.runs.folder import (
    ONLY_POLICY,
    ONLY_RECORDS,
    RunFolder,
    find_run,
    offering_last_good,
    read_manifest,
)
from coach_rl.runs.keeper import require_same_seed
from coach_rl.runs.manifest import changes_since, deciding
from coach_rl.sessions.acting import OutsideParameters
from coach_rl.sessions.settings import RunPartParameters

_TORCH_STREAM = "noise"
"""Key of the state of a torch generator."""

_ROW_NOISE = {"generators", "blocks", "used"}
"""Keys of the state of a `RowNoise`."""

CHANGEABLE = (
    "schedule.training",
    "schedule.stop_after",
    "schedule.until_solved",
    "validation",
    "checkpoints",
    "callbacks",
    "sinks",
)
"""Parameters that may change: how long a run trains, what it keeps, its callbacks and sinks; and
those that its source of ticks names."""


class OpeningArguments(TypedDict, total=False):
    """Keyword arguments of all functions that open a run; see `Opening`."""

    device: str | None
    threads: int | None
    last_good: bool
    trust: Collection[str]


class ContinuingArguments(OpeningArguments, total=False):
    """Keyword arguments of those that train it further."""

    restart_episodes: bool


@dataclass(frozen=True, kw_only=True)
class Opening:
    """A run to open, its checkpoint, and the settings for it."""

    run: Path
    """A run's folder (its last checkpoint), one of its checkpoints, or `RUN@STEP`; see
    `find_run`."""
    device: str | None = None
    """Device of the networks from now on; None keeps the run's own, or takes `auto` where this
    machine lacks it."""
    threads: int | None = None
    """Threads of one tensor operation on the CPU from now on; None keeps the run's own. Another
    number changes the numbers of a run that continues, with a `CoachWarning`."""
    last_good: bool = False
    """If True, the newest checkpoint that can be read is taken."""
    restart_episodes: bool = False
    """If True, open training episodes are begun again instead of restored: where restoring fails,
    or takes long."""
    trust: Collection[str] = ()
    """Modules whose code the run may use besides those of the user's own runs; see `trust`. They
    are found in the working directory, too."""

    @classmethod
    def of(
        cls, run: "str | Path | Opening", arguments: OpeningArguments | ContinuingArguments
    ) -> "Opening":
        """The opening of a run with these keyword arguments."""
        for name in arguments.keys() - cls.__dataclass_fields__.keys():
            hint = "the function's `help` lists its arguments"
            raise UnknownNameError("argument", name, (), hint)
        if isinstance(run, Opening):
            return replace(run, **arguments)
        return cls(run=Path(run), **arguments)


def rebuild(
    folder: RunFolder,
    device: str | None = None,
    *,
    threads: int | None = None,
    learns: bool = True,
    outside: OutsideParameters | None = None,
    trust: Collection[str] = (),
) -> tuple[GraphManager, Runtime, Json]:
    """The experiment a run folder holds, from its manifest alone.

    A `CoachWarning` names changes since its last part was made that may change its numbers.
    A run from a GPU comes back without one, also where it captured CUDA graphs or pinned memory;
    one without a checkpoint starts again, and is refused where a new run would be.

    Args:
        folder: The run's.
        device: As of `Opening`, and so are threads and trust.
        threads: Threads of one tensor operation on the CPU.
        learns: Whether it continues learning; otherwise its replay memories keep nothing and take
            no room, and only the environment of evaluations is decoded.
        outside: Replaces its environments, which are not decoded; None keeps them.
        trust: Modules whose code may be run.

    Returns:
        The graph manager (not yet created), the runtime, and the manifest.

    Raises:
        CheckpointError: The manifest cannot be read.
        ConfigurationError: Its parameters do not fit the classes they name.
    """
    manifest = read_manifest(folder)
    document = manifest["parameters"]
    if outside is not None:  # an object stands for itself
        document = {**document, "environment": outside, "evaluation_environment": None}
    if not learns:
        document = _in_evaluations(document)
    trusted = users_trust(trust)
    if manifest["preset"] is not None:
        named = json.dumps([manifest["graph_manager"], document], default=str)
        needed = manifest["preset"]["module"] in named
        trusted = _with_preset(folder, manifest["preset"], trusted, needed=needed, learns=learns)
    names = [str(manifest["graph_manager"]), *code_in_json([document, manifest["task"]])]
    if trusted.untrusted(names):  # the error names all at once
        names += texts_like_code([document])
    trusted.require(names, folder.manifest)
    with _reading(folder.manifest, manifest):
        let_import_recorded(manifest["module_folders"])
    let_import_named((f"{module}:" for module in trust), Path.cwd())
    with _reading(folder.manifest, manifest):
        recorded = decode(manifest["task"], "task", trust=trusted)
    runtime = _task_now(recorded, folder.manifest, device, threads)
    if outside is None and ONLY_POLICY not in manifest:
        with _reading(folder.manifest, manifest):
            _warn_of_changes(folder, manifest, runtime)
    with _reading(folder.manifest, manifest):
        graph_manager_type = resolve(manifest["graph_manager"], "graph_manager", trust=trusted)
        parameters = decode(document, trust=trusted)
    if not (isinstance(graph_manager_type, type) and issubclass(graph_manager_type, GraphManager)):
        raise ConfigurationError(
            f"{folder.manifest} names '{manifest['graph_manager']}', which is no GraphManager"
        )
    if not is_dataclass(parameters):
        raise CheckpointError(f"{folder.manifest} is damaged: its parameters are no dataclass")
    if list_checkpoints(folder.checkpoints):
        parameters = moved(parameters, runtime.device)
    if not learns:
        parameters = replaced(parameters, KeepingParameters, lambda part: part.keeping_nothing())
    graph_manager = graph_manager_type(parameters)
    return graph_manager, with_threads(runtime, graph_manager.parameters.threads), manifest


@dataclass(frozen=True, kw_only=True)
class OpenedRun:
    """A run read from its folder; its graph is not yet created."""

    opening: Opening
    folder: RunFolder
    checkpoint: Checkpoint | None
    """The checkpoint to start from; None where the run has none yet."""
    graph_manager: GraphManager
    runtime: Runtime
    manifest: Json

    @property
    def later(self) -> list[Path]:
        """The run's checkpoints after the one to start from, earliest first."""
        known = list_checkpoints(self.folder.checkpoints)
        return known[known.index(self.checkpoint.path) + 1 :] if self.checkpoint else []

    def require_checkpoint(self, purpose: str) -> Checkpoint:
        """The checkpoint to start from; CheckpointError if there is none yet to `purpose`."""
        if self.checkpoint is None:
            raise CheckpointError(
                f"the run {self.folder.path} has no checkpoint yet to {purpose}; let it train first"
            )
        return self.checkpoint

    def evaluating_part(self) -> RunPartParameters:
        """The part that has made the run's evaluations, for those that are still pending.

        Raises:
            ConfigurationError: Its manifest names none, or it cannot be found or trusted.
        """
        file = self.folder.manifest
        if "evaluator" not in self.manifest:
            raise ConfigurationError(
                f"{file} does not name the part of the run that made its evaluations, and some are "
                "still pending; give that part again (RunSettings.parts)"
            )
        trusted = users_trust(self.opening.trust)
        with _reading(file, self.manifest):
            part = decode(self.manifest["evaluator"], "evaluator", trust=trusted)
        if not isinstance(part, RunPartParameters):
            raise CheckpointError(f"{file} is damaged: its evaluator is no part of a run")
        return part

    def restore(
        self, graph_manager: GraphManager, changes: str = "", *, new_seed: int | None = None
    ) -> None:
        """Load the checkpoint's state.

        Args:
            graph_manager: The run's, or one with changed parameters; its graph is created.
            changes: What was changed in the experiment since, for errors.
            new_seed: Seed from which agents draw other random numbers; None keeps their streams.

        Raises:
            CheckpointError: The state does not fit.
        """
        checkpoint = self.require_checkpoint("restore")
        with fitting(checkpoint, changes):
            state = checkpoint.state
            if new_seed is not None:
                state = with_new_streams(state, seed=new_seed, names=("fork",))
            if ONLY_POLICY in self.manifest:
                graph_manager.evaluations.load_agents(state)
            else:
                restarts = self.opening.restart_episodes
                graph_manager.load_state_dict(state, restart_episodes=restarts)
        if ONLY_POLICY in self.manifest:
            warn(
                f"{self.folder.path} has policies alone, so optimisers, replay memories and "
                "training episodes begin new",
            )


def known_spaces(folder: RunFolder, manifest: Json) -> EnvironmentSpaces:
    """The spaces of a run's environment, as its manifest has them."""
    with _reading(folder.manifest, manifest):
        return spaces_from_json(manifest["spaces"], source=str(folder.manifest))


def open_run(opening: Opening, *, learns: bool = True, has_environments: bool = True) -> OpenedRun:
    """Read a run; nothing in it is changed.

    Args:
        opening: Which, and how.
        learns: Whether it continues learning; see `rebuild`.
        has_environments: Whether its environments are used; otherwise its agents only act.

    Raises:
        ConfigurationError: There is no such run, or it cannot be rebuilt.
        CheckpointError: A file of it is damaged; names it, and the newest good checkpoint.
    """
    folder, path = find_run(opening.run, last_good=opening.last_good)
    if path is None and ONLY_RECORDS in read_manifest(folder):
        raise ConfigurationError(
            f"the run {folder.path} was imported without its checkpoints, so nothing can continue "
            "from it; use the run itself where it was made"
        )
    outside = None
    if not has_environments:
        spaces = known_spaces(folder, read_manifest(folder))
        outside = OutsideParameters(level=str(folder.path), spaces=spaces)
    graph_manager, runtime, manifest = rebuild(
        folder,
        opening.device,
        threads=opening.threads,
        learns=learns,
        outside=outside,
        trust=opening.trust,
    )
    checkpoint = None
    if path is not None:
        with offering_last_good(folder):
            checkpoint = read_checkpoint(path, memories=learns)
        require_same_seed(checkpoint, manifest["task"]["seed"])
        if learns:
            _require_same_rows(checkpoint, graph_manager.parameters.num_envs)
    return OpenedRun(
        opening=opening,
        folder=folder,
        checkpoint=checkpoint,
        graph_manager=graph_manager,
        runtime=runtime,
        manifest=manifest,
    )


def _require_same_rows(checkpoint: Checkpoint, num_envs: int) -> None:
    """Raise `CheckpointError` where the manifest has other rows, before any room is taken."""
    saved = len(checkpoint.state.get("tracker", {}).get("length", ())) or num_envs
    if saved != num_envs:
        raise CheckpointError(
            f"the manifest has num_envs {num_envs:,}, but {checkpoint.path} was taken with "
            f"{saved:,}; the manifest has been changed or damaged: put its num_envs back"
        )


def warn_of_missing_memories(checkpoint: Checkpoint) -> None:
    """Warn where learning from a checkpoint cannot be exact because it lacks replay memories."""
    if not checkpoint.has_memories:
        warn(
            f"{checkpoint.path.name} was saved without replay memories, so the resumed run is not "
            "exact: its agents act with what they have learned, and learn again once their "
            "memories hold learning.learning_starts transitions",
        )


@contextmanager
def fitting(checkpoint: Checkpoint, changes: str = "") -> Iterator[None]:
    """Errors while a state is loaded become a CheckpointError in one line.

    Args:
        checkpoint: Whose state.
        changes: What was changed in the experiment since, for the error.
    """
    although = f" with {changes}" if changes else ""
    written = _written_by(checkpoint.written_by)
    try:
        yield
    except (
        CheckpointError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RuntimeError,
    ) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else error
        raise CheckpointError(
            f"{checkpoint.path} does not fit the experiment{although}: {reason} ({written})"
        ) from error


def moved(parameters: object, device: str) -> object:
    """Portable parameters: without options that depend on the machine of the recorded run.

    An engine made with `auto` takes its mode from the checkpoint, with a warning where that is not
    possible.

    Args:
        parameters: Those of an experiment.
        device: Where networks live from now on.
    """
    return replaced(parameters, MovableParameters, lambda part: part.moved_to(device))


def with_new_streams(state: State, *, seed: int, names: tuple[str | int, ...]) -> State:
    """A saved state whose agents, on all levels, draw other random numbers from here on.

    Simulators keep their streams: other actions lead elsewhere anyway.

    Args:
        state: What a graph manager's `state_dict` returned.
        seed: The run's.
        names: The reason for new streams; equal ones give equal streams.
    """

    def changed(part: object, path: tuple[str, ...]) -> object:
        match part:
            case Mapping() if "bit_generator" in part:
                return generator_state(generator(seed, *names, *path))
            case Mapping():
                new = {
                    key: below if _is_simulator(key, below) else changed(below, (*path, key))
                    for key, below in part.items()
                }
                if new.keys() == _ROW_NOISE:  # numbers drawn ahead are of the old streams
                    new["used"] = np.full_like(part["used"], BLOCK)
                return new
            case list():
                return [changed(below, (*path, str(n))) for n, below in enumerate(part)]
            case torch.Tensor() if path[-1] == _TORCH_STREAM and part.dtype == torch.uint8:
                return torch.Generator().manual_seed(integer_seed(seed, *names, *path)).get_state()
        return part

    return {key: changed(part, (key,)) for key, part in state.items()}


def with_changes(graph_manager: GraphManager, changes: Mapping[str, object]) -> GraphManager:
    """The same experiment with some of its parameters changed.

    Args:
        graph_manager: The experiment; its graph is not yet created.
        changes: Values by path, each one of `CHANGEABLE` or below one, or of the source's.

    Raises:
        ConfigurationError: Another parameter, or a value that does not fit.
    """
    if not changes:
        return graph_manager
    changeable = (*CHANGEABLE, *graph_manager.parameters.source.CHANGEABLE)
    for path in changes:
        if not any(f"{path}.".startswith(f"{allowed}.") for allowed in changeable):
            raise ConfigurationError(
                f"a run that is resumed keeps its '{path}'; what may change: "
                f"{', '.join(changeable)}"
            )
    return type(graph_manager)(apply_overrides(graph_manager.parameters, changes))


def with_length(graph_manager: GraphManager, steps: EnvironmentSteps) -> GraphManager:
    """The same experiment with another number of environment steps to train for, in all."""
    parameters = graph_manager.parameters
    schedule = replace(parameters.schedule, training=steps)
    return type(graph_manager)(replace(parameters, schedule=schedule))


def with_overrides(graph_manager: GraphManager, overrides: Mapping[str, object]) -> GraphManager:
    """The same experiment with any of its parameters changed, also to what a user's module has."""
    changed = apply_overrides(graph_manager.parameters, overrides)
    let_import_named(code_in_parameters(changed), Path.cwd())
    return type(graph_manager)(changed)


@contextmanager
def _reading(file: Path, manifest: Json) -> Iterator[None]:
    """Errors while a manifest is interpreted are one line that names its file and its version.

    Raises:
        CheckpointError: An entry is missing or cannot be what it is.
        ConfigurationError: It names parameters or code that this version does not have.
    """
    written = _written_by(manifest["versions"].get("coach-rl"))
    try:
        with warnings.catch_warnings():
            if ONLY_POLICY in manifest:  # defaults of new fields keep what it does
                warnings.filterwarnings("ignore", ".* was written before .* had the field")
            yield
    except KeyError as error:
        raise CheckpointError(f"{file} is damaged: it lacks {error} ({written})") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{file} cannot be read: {error} ({written})") from error
    except (TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise CheckpointError(f"{file} is damaged: {error} ({written})") from error


def _written_by(version: object) -> str:
    """The version that wrote a file, beside this one."""
    return f"written by coach_rl {version}, this is {coach_rl.__version__}"


def _task_now(recorded: object, manifest: Path, device: str | None, threads: int | None) -> Runtime:
    """The run's runtime settings with those given now, on a device that exists here."""
    if not isinstance(recorded, Runtime):
        raise CheckpointError(f"{manifest} is damaged: its task is no Runtime")
    try:
        found = resolved_device(recorded.device if device is None else device)
    except ConfigurationError:
        if device is not None:
            raise
        found = resolved_device("auto")
    threads = recorded.threads if threads is None else threads
    return replace(recorded, device=found, threads=threads)


def _warn_of_changes(folder: RunFolder, manifest: Json, runtime: Runtime) -> None:
    parts = [part for part in (manifest, *manifest["resumes"]) if "versions" in part]
    changes = changes_since(parts[-1], deciding())
    for name in ("device", "threads"):
        then = manifest["task"][name]
        now = getattr(runtime, name)
        if then not in ("auto", now):
            changes.append(f"{name} {then}, now {now}")
    folders = dict(manifest["module_folders"])
    if (preset := manifest["preset"]) is not None:
        folders[str(Path(preset["file"]).parent)] = preset["neighbours"]
    for place, files in folders.items():
        changes += [f"another {name}" for name in changed_neighbours(Path(place), files)]
    if changes:
        warn(
            f"{folder.path} was made with {', '.join(changes)}; its numbers may differ from those "
            "of a run that was never stopped"
        )


def _in_evaluations(document: Json) -> Json:
    """Parameters, as JSON, whose environment is that of evaluations, where it has its own.

    So a run can be evaluated where its environment of training does not exist any more. Callbacks
    and sinks belong to training.
    """
    document = {key: [] if key in ("callbacks", "sinks") else of for key, of in document.items()}
    if (own := document.get("evaluation_environment")) is None:
        return document
    return {**document, "environment": own, "evaluation_environment": None}


def _with_preset(
    folder: RunFolder, entry: Json, trusted: Trust, *, needed: bool, learns: bool
) -> Trust:
    """Bring the preset's module back under its old name, so that its classes can be found.

    A preset that is not trusted is left alone, and then its classes cannot be found.

    Args:
        folder: Where the copy is.
        entry: The manifest's entry of the preset.
        trusted: The modules that are trusted without it.
        needed: Whether something that is going to be built is defined in it.
        learns: Whether the run continues learning; then the preset may register environments, too.

    Returns:
        Trust in the preset as well, where it was brought back.
    """
    module = entry["module"]
    file = Path(entry["file"])
    source = read_text(folder.preset)
    if entry.get("sha256") != sha256_of(source):
        raise CheckpointError(
            f"{folder.preset} is damaged or has been edited: it does not match its checksum in the "
            "manifest; restore it from a copy, or train a changed preset in a new run"
        )
    shipped = shipped_preset(source)
    is_known = shipped is not None or is_own_preset(source, str(file))
    if not is_known and module not in trusted.modules:
        return trusted
    if module != preset_module(file, source):
        raise CheckpointError(f"{folder.preset} is not the preset that the run was made from")
    if not is_known:
        warn(f"running {folder.preset}, which is trusted")
    try:
        load_module(module, source, path=folder.preset, file=shipped or file)
    except ConfigurationError as error:
        if needed or learns:
            raise
        warn(
            f"the run's copy of its preset cannot be loaded: {error}; nothing in this evaluation "
            "names it, so it continues without",
        )
    return trusted.plus(module)


def replaced(parameters: Any, kind: type, change: Callable[[Any], object]) -> Any:
    """The parameters with `change` made to every part of a kind, wherever it stands.

    Args:
        parameters: Frozen dataclasses and tuples.
        kind: The class that the parts belong to: a role of `core.parameter_classes`.
        change: From a part, what is in it already changed, to the new one.
    """
    if isinstance(parameters, tuple):
        parts = tuple([replaced(part, kind, change) for part in parameters])
        return parameters if all(map(operator.is_, parts, parameters)) else parts
    if not dataclasses.is_dataclass(parameters) or isinstance(parameters, type):
        return parameters
    changes: dict[str, object] = {}
    for each in constructor_fields(type(parameters)):
        old = getattr(parameters, each.name)
        new = replaced(old, kind, change)
        if new is not old:
            changes[each.name] = new
    new_part: object = dataclasses.replace(parameters, **changes) if changes else parameters
    return change(new_part) if isinstance(new_part, kind) else new_part


def _is_simulator(key: str, part: object) -> bool:
    """True for the simulators below the lowest level; what other levels act on is a level."""
    return key == "environment" and not (isinstance(part, Mapping) and "agent_rows" in part)
