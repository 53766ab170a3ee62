"""Sessions that train: a new run, a run resumed in its folder, a fork of a run.

    result = run_experiment(graph_manager, Runtime(seed=1), name="cartpole")
    result = resume_experiment(run_folder, steps=EnvironmentSteps(200_000))
    fork_experiment(
        Path("experiments/cartpole/...@20000"),
        name="cartpole_slower",
        overrides={"agent.optimizer.learning_rate": 1e-4},
    )

A fork is a new run that starts from another one's state, with changed parameters. The run it comes
from, its parent, stays as it is.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self, Unpack

from coach_rl.configuration.overrides import format_overrides, overrides_json
from coach_rl.configuration.parameters_json import encode, spaces_to_json
from coach_rl.configuration.preset_file import require_given_once
from coach_rl.configuration.strict_json import Json, read_text
from coach_rl.configuration.trust import code_in_parameters, remember_own_code
from coach_rl.configuration.user_modules import imported_folders
from coach_rl.core.errors import CheckpointError, ConfigurationError, UnknownNameError, warn
from coach_rl.core.runtime import Runtime
from coach_rl.core.scratch import Scratch
from coach_rl.core.shown_text import shown_level
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.torch_settings import resolved
from coach_rl.graph_managers.watcher import EvaluationWatcher
from coach_rl.runs.checkpoint import UNFINISHED, Checkpoint, put_aside, steps_of
from coach_rl.runs.folder import (
    EXPERIMENTS,
    ONLY_POLICY,
    RunFolder,
    check_name,
    create_run_folder,
    find_folder,
    read_manifest,
    write_manifest,
)
from coach_rl.runs.keeper import CheckpointKeeper, check_disk_space
from coach_rl.runs.lock import locked
from coach_rl.runs.logs import planned_cuts
from coach_rl.runs.manifest import (
    Origin,
    check_importable,
    code_of,
    differences_since,
    experiment_json,
    made_with,
    make_manifest,
    now,
    remember_code,
)
from coach_rl.runs.sources import keep_differences
from coach_rl.sessions.evaluation import live_graph, require_graph_manager
from coach_rl.sessions.live_run import LiveRun
from coach_rl.sessions.loaded_levels import Meaning, load_levels, recorded
from coach_rl.sessions.opening import (
    ContinuingArguments,
    OpenedRun,
    Opening,
    open_run,
    warn_of_missing_memories,
    with_changes,
    with_length,
    with_overrides,
)
from coach_rl.sessions.problems import require_startable
from coach_rl.sessions.run_parts import RunPart, require_compatible
from coach_rl.sessions.settings import Audience, RunPartParameters, RunResult, RunSettings
from coach_rl.sessions.stop_requests import StopRequests

DEFAULT_ROOT = EXPERIMENTS
"""The folder of all experiments."""


class Session:
    """The steps that every training takes, in their order; a context.

    with Session(settings, audience) as session:            # takes signals
        session.build(graph_manager, runtime)               # nothing is written until here
        folder = session.create(root, name, manifest, source)
        result = session.train(folder, session.keeper(folder), manifest)

    Args:
        settings: How to run it; None takes the defaults.
        audience: Receivers of its records besides the run's files; None for none.
        trust: Modules whose code the run may use, besides those of the user's own runs.
    """

    def __init__(
        self,
        settings: RunSettings | None,
        audience: Audience | None,
        trust: Sequence[str] = (),
    ) -> None:
        self.settings = settings or RunSettings()
        self.audience = audience or Audience()
        self._trust = tuple(trust)
        self._stop = StopRequests(self.audience.announce)
        self._on_activity = self._stop.following(self.audience.on_activity)
        self._opened = ExitStack()
        self._scratch = Scratch()
        self.parts: dict[str, RunPart] = {}
        """The parts of the run by name, in their order."""
        self.rebuilding: list[str] = []
        """Names of those that rebuild the run in another process."""
        self.evaluating_part: Json = {}
        """The manifest's record of the one that makes evaluations; empty where none does.

        A run that is resumed or forked while evaluations are pending needs it to finish them.
        """
        self.code: list[str] = []
        """All code that the manifest of a new run names, each as `module:name`."""
        self._watchers: list[EvaluationWatcher] = []

    def __enter__(self) -> Self:
        self._opened.enter_context(self._stop)
        return self

    def __exit__(self, *exception: object) -> bool | None:
        return self._opened.__exit__(*exception)  # type: ignore[arg-type] # three of them

    def hold(self, folder: Path) -> None:
        """Lock a run's folder until the end; RunInUseError if another process holds it."""
        self._opened.enter_context(locked(folder))
        self._opened.enter_context(self._scratch.within(folder))

    def build(
        self,
        graph_manager: GraphManager,
        runtime: Runtime,
        *,
        name: str = "",
        begins: bool = True,
    ) -> GraphManager:
        """Build the graph, with callbacks and watchers of evaluations; it is closed at the end.

        Args:
            graph_manager: The experiment.
            runtime: Seed, device, threads and precision.
            name: The name of the folder above the run's; empty: the run has a folder.
            begins: Whether training episodes begin; False where those of a checkpoint continue.

        Returns:
            The experiment as its manifest records it.

        Raises:
            ConfigurationError: It cannot be built.
        """
        require_startable(graph_manager, runtime, self.settings, name=name)
        graph_manager = self._with_records_at_checkpoints(graph_manager)
        self.graph_manager = graph_manager = recorded(graph_manager)
        parameters = graph_manager.parameters
        runtime = resolved(runtime, parameters.threads, parameters.divergence)
        self.runtime = replace(runtime, on_activity=self._on_activity, scratch=self._scratch)
        for each in self.settings.parts:
            self._add(each)
            require_compatible(self.parts)
        graph = live_graph(
            graph_manager,
            self.runtime,
            callbacks=self.audience.callbacks,
            watchers=self._watchers,
            begins=begins,
        )
        self.policy = self.settings.checkpoints or parameters.checkpoints
        self._opened.enter_context(graph)
        return graph_manager

    def _with_records_at_checkpoints(self, graph_manager: GraphManager) -> GraphManager:
        """The experiment with a log record for each of its periodic checkpoints, taken at them."""
        parameters = graph_manager.parameters
        every = parameters.checkpoints.every_steps
        schedule = parameters.schedule
        if every is None or every.count >= schedule.progress_interval.count:
            return graph_manager
        if self.audience.announce is not None:
            self.audience.announce(
                f"schedule.progress_interval is {every.count:,} in place of "
                f"{schedule.progress_interval.count:,}, as checkpoints are taken at log records"
            )
        schedule = replace(schedule, progress_interval=every)
        return type(graph_manager)(replace(parameters, schedule=schedule))

    def begin(self, manifest: Json | None = None) -> Json:
        """Prepare the first step of a run: load what other runs have trained.

        Args:
            manifest: The run's where it has one, which names what was loaded; None of a new run.

        Returns:
            What was loaded, for the manifest.
        """
        if self.policy.enabled:
            obstacle = self.graph_manager.graph.obstacle_to_restoring
            _warn_of_restarts(self.graph_manager.parameters.environment.level, obstacle)
        return load_levels(self.graph_manager, manifest)

    def manifest(self, name: str, origin: Origin) -> Json:
        """The manifest of a new run."""
        graph_manager = self.graph_manager
        graph = self.graph_manager.graph
        experiment = experiment_json(graph_manager, self.runtime, self.policy)
        self.code = code_of(graph_manager, experiment)
        made = make_manifest(graph_manager, experiment, self.code, name=name, origin=origin)
        spaces = spaces_to_json(graph.spaces)
        made |= self.message | {"spaces": spaces}
        return made | self.evaluating_part | {"updates": graph.updates}

    @property
    def message(self) -> Json:
        """The entry of the run's purpose in its manifest, where there is one."""
        return {"message": self.settings.message} if self.settings.message else {}

    def await_evaluations(self, opened: OpenedRun) -> None:
        """Add the part that the pending evaluations of a run need, where it is not given.

        Args:
            opened: The run, whose checkpoint was loaded.

        Raises:
            ConfigurationError: Its manifest doesn't name the part, or the part cannot be found.
        """
        if self.graph_manager.evaluations.is_awaited and not self.evaluating_part:
            self._add(opened.evaluating_part())

    def create(
        self, root: Path, name: str, manifest: Json, source: str | None, *, known: object = None
    ) -> RunFolder:
        """The folder of a new run, which is held from now on.

        Args:
            root: The folder of all experiments.
            name: The experiment's name.
            manifest: The run's.
            source: The preset's source; None for an experiment without a preset.
            known: Parameters of a run that it is made from; code that it names besides is trusted
                from now on, whenever the run is rebuilt on this machine. None: none is.
        """
        self.check(root / name)
        if known is not None:
            named = {*code_in_parameters(self.graph_manager.parameters)}
            named -= {*code_in_parameters(known)}
            remember_own_code(named, None, imported_folders(named))
        folder = create_run_folder(root, name, manifest, source)
        self.hold(folder.path)
        keep_differences(folder)
        return folder

    def check(self, folder: Path, saved: Checkpoint | None = None) -> None:
        """Refuse a run whose checkpoints don't fit on the disk.

        Args:
            folder: Where they will be.
            saved: The checkpoint that the run continues from, which holds as much as the next ones;
                None: there is none yet.
        """
        graph = self.graph_manager.graph
        policy = self.policy
        if policy.enabled and policy.memories:
            planned = graph.clock.planned
            steps = planned.count if isinstance(planned, EnvironmentSteps) else None
            if saved is not None and saved.has_memories:
                agents = saved.state["agents"]
            else:
                agents = {name: agent.state_dict() for name, agent in graph.agents.items()}
            check_disk_space(agents, folder, checkpoints=policy.most, planned_steps=steps)

    def keeper(self, folder: RunFolder) -> CheckpointKeeper:
        """The keeper of the run's checkpoints."""
        return CheckpointKeeper(
            folder,
            self.graph_manager.state_dict,
            policy=self.policy,
            seed=self.runtime.seed,
            unit=self.graph_manager.parameters.source.UNIT,
            on_activity=self._on_activity,
        )

    def _add(self, parameters: RunPartParameters) -> None:
        """Build a part of the run."""
        name = parameters.name
        part = parameters.build(self.settings)
        self.parts[name] = part
        self._watchers += part.watchers
        if part.is_rebuilt_elsewhere:
            self.rebuilding.append(name)
        if part.makes_evaluations:
            self.evaluating_part = {"evaluator": encode(parameters, name)}

    def train(
        self,
        folder: RunFolder,
        keeper: CheckpointKeeper,
        manifest: Json,
        saved_at: int | None = None,
    ) -> RunResult:
        """Train to the end or to a stop.

        Args:
            folder: The run's, which is held.
            keeper: Keeps its checkpoints.
            manifest: Its manifest, which is written.
            saved_at: The moment of the newest checkpoint; None where there is none.
        """
        return LiveRun(
            graph_manager=self.graph_manager,
            runtime=self.runtime,
            folder=folder,
            manifest=manifest,
            settings=self.settings,
            audience=self.audience,
            stop=self._stop,
            keeper=keeper,
            parts=self.parts,
            saved_at=saved_at,
            trust=self._trust,
        ).go()


def run_experiment(
    graph_manager: GraphManager,
    runtime: Runtime | None = None,
    *,
    name: str,
    root: Path = DEFAULT_ROOT,
    origin: Origin | None = None,
    settings: RunSettings | None = None,
    audience: Audience | None = None,
) -> RunResult:
    """Run an experiment from its beginning, in a new run folder.

    The folder is made only after the graph is built, so a wrong parameter leaves nothing behind.
    The graph manager is closed at the end, whatever happens.

    Args:
        graph_manager: What to run; its graph is not yet created.
        runtime: Seed, device, threads and precision; None takes their defaults, and the
            experiment's threads.
        name: The experiment's name, the folder above the run's.
        root: The folder of all experiments.
        origin: Where the experiment came from; None when from nowhere but this call.
        settings: How to run it; None takes the defaults.
        audience: Receivers of its records besides the run's files; None for none.

    Raises:
        ConfigurationError: The experiment cannot be built or saved, or its parameters cannot be
            recorded.
        RunError: Something went wrong while running.
    """
    require_graph_manager(graph_manager)
    with Session(settings, audience) as session:
        graph_manager = session.build(graph_manager, runtime or Runtime(), name=name)
        loaded = session.begin()
        manifest = session.manifest(name, origin or Origin()) | {"loaded": loaded}
        check_importable(session.code, needed_by=session.rebuilding)
        remember_code(session.code, origin)
        preset = origin.preset if origin else None
        folder = session.create(root, name, manifest, preset.source if preset else None)
        return session.train(folder, session.keeper(folder), manifest)


def resume_experiment(
    run: Path | Opening,
    *,
    steps: EnvironmentSteps | None = None,
    changes: Mapping[str, object] | None = None,
    drop_later: bool = False,
    command: Sequence[str] = (),
    settings: RunSettings | None = None,
    audience: Audience | None = None,
    **opening: Unpack[ContinuingArguments],
) -> RunResult:
    """Continue a run in its folder, from its last checkpoint or the one named.

    Log lines after that checkpoint are dropped, because they will be written again. A run that was
    killed before its first checkpoint starts again; one whose checkpoints have been deleted is
    refused.

    Args:
        run: A run's folder, or one of its checkpoints (`RUN/checkpoints/step_2048`, `RUN@2048`,
            `RUN@best`).
        steps: Environment steps to train to, in all; None keeps the run's own plan.
        changes: Other parameters from now on, by path: see `opening.CHANGEABLE`; None
            changes nothing.
        drop_later: Whether checkpoints after the one named, and the logs after it, are deleted.
        command: The command line, for the manifest.
        settings: How to run it; None takes the defaults.
        audience: Receivers of its records besides the run's files; None for none.
        **opening: `device`, `threads`, `last_good`, `restart_episodes` and `trust` of `Opening`;
            damaged checkpoints after the last good one are renamed.

    Raises:
        RunInUseError: Another process holds it.
        ConfigurationError: There is nothing to continue with, or nothing left to do, or there are
            later checkpoints, and `drop_later` is False.
        CheckpointError: A file of the run is damaged, or all checkpoints have been deleted.
    """
    how = Opening.of(run, opening)
    if steps is not None:
        _require_one_length(changes or {})
    _require_more_than_policy(how.run)
    with Session(settings, audience, trust=tuple(how.trust)) as session:
        session.hold(find_folder(how.run).path)  # before anything is read, which may be replaced
        session.audience.on_activity("reading the checkpoint")
        opened = open_run(how)
        session.audience.on_activity("")
        folder = opened.folder
        checkpoint = opened.checkpoint
        if not (how.last_good or drop_later):
            _require_latest(opened)
        graph_manager = with_changes(opened.graph_manager, changes or {})
        if steps is not None:
            graph_manager = with_length(graph_manager, steps)
        is_new = checkpoint is None
        graph_manager = session.build(graph_manager, opened.runtime, begins=is_new)
        if checkpoint is None:
            _require_never_saved(opened)
            session.begin(opened.manifest)
        else:
            opened.restore(graph_manager)
            session.await_evaluations(opened)
            warn_of_missing_memories(checkpoint)
            may_conclude = not (changes or steps or folder.summary.exists())
            _require_work(graph_manager, checkpoint.path, may_conclude=may_conclude)
        session.check(folder.checkpoints, checkpoint)
        cuts = planned_cuts(folder.path, checkpoint)
        if how.last_good:
            put_aside(opened.later)
        keeper = session.keeper(folder)
        keeper.restore(checkpoint)
        for cut in cuts:
            cut.make()
        folder.summary.unlink(missing_ok=True)
        manifest = opened.manifest
        has_episodes = checkpoint is None or not checkpoint.state.get("obstacle_to_restoring")
        manifest["resumes"].append(
            {
                "time": now(),
                "command": list(command),
                "from": None if checkpoint is None else checkpoint.path.name,
                "restarted_episodes": how.restart_episodes or not has_episodes,
                **session.message,
                **made_with(code_of(graph_manager, manifest)),
            }
        )
        manifest |= experiment_json(graph_manager, session.runtime, session.policy)
        manifest |= session.evaluating_part | {"updates": graph_manager.graph.updates}
        write_manifest(folder, manifest)
        keep_differences(folder)
        done = None if checkpoint is None else graph_manager.progress.moment
        return session.train(folder, keeper, manifest, done)


def fork_experiment(
    run: Path | Opening,
    *,
    name: str,
    overrides: Mapping[str, object] | None = None,
    steps: EnvironmentSteps | None = None,
    seed: int | None = None,
    root: Path | None = None,
    command: Sequence[str] = (),
    settings: RunSettings | None = None,
    audience: Audience | None = None,
    **opening: Unpack[ContinuingArguments],
) -> RunResult:
    """Start a new run from the state of another one, and train it.

    Without changes its numbers are those that the parent continues with. Its manifest lists its
    ancestors, and what each fork changed. `best` is the best since the fork.

    Args:
        run: The parent: a run's folder (its last checkpoint), one of its checkpoints, or
            `RUN@STEP`.
        name: The new experiment's name, the folder above the run's.
        overrides: Changed parameters by dotted path; whatever leaves the state loadable.
        steps: Environment steps to train to, in all; None keeps the parent's plan.
        seed: A new seed: exploration and batches are drawn from new streams, environments continue
            with theirs. None keeps the parent's seed and streams.
        root: The folder of all experiments; None takes the parent's, and for a policy without its
            run ./experiments.
        command: The command line, for the manifest.
        settings: How to run it; None takes the defaults.
        audience: Receivers of its records besides the run's files; None for none.
        **opening: `device`, `threads`, `last_good`, `restart_episodes` and `trust` of `Opening`.

    Raises:
        ConfigurationError: There is no such run, a parameter does not exist or fit, or nothing is
            left to train.
        CheckpointError: A file of the parent is damaged, or its state does not fit the changes.
    """
    how = Opening.of(run, opening)
    check_name(name)
    opened = open_run(how)
    checkpoint = opened.require_checkpoint("fork from")
    graph_manager, changes = _changed(opened, _with_length(overrides, steps))
    runtime = opened.runtime if seed is None else replace(opened.runtime, seed=seed)
    if "threads" in changes and how.threads is None:
        runtime = replace(runtime, threads=graph_manager.parameters.threads)
    with Session(settings, audience, trust=tuple(how.trust)) as session:
        begins = ONLY_POLICY in opened.manifest
        graph_manager = session.build(graph_manager, runtime, name=name, begins=begins)
        opened.restore(graph_manager, format_overrides(changes), new_seed=seed)
        session.await_evaluations(opened)
        now = Meaning.of(graph_manager)
        for level in now.levels:
            now.require_same(level.name, Meaning.recorded(checkpoint.path), level.name)
        warn_of_missing_memories(checkpoint)
        _require_work(graph_manager, checkpoint.path, may_conclude=False)
        manifest = session.manifest(name, Origin(command=tuple(command)))
        manifest |= _inherited(opened, checkpoint, changes, seed)
        manifest["differences"] = differences_since(
            opened.manifest, opened.graph_manager, graph_manager
        )
        if root is None:
            has_experiment = ONLY_POLICY not in opened.manifest
            root = opened.folder.path.parent.parent if has_experiment else DEFAULT_ROOT
        source = None if opened.manifest["preset"] is None else read_text(opened.folder.preset)
        known = opened.graph_manager.parameters
        folder = session.create(root, name, manifest, source, known=known)
        keeper = session.keeper(folder)
        done = graph_manager.progress.moment
        keeper.begin_at(checkpoint, done)
        return session.train(folder, keeper, manifest, done)


def _require_more_than_policy(run: Path) -> None:
    """Refuse to resume a policy without the rest of its run."""
    folder = find_folder(run)
    if ONLY_POLICY in read_manifest(folder):
        raise ConfigurationError(
            f"{folder.path} has policies alone, so it cannot be resumed; begin a new run with "
            f"them: `coach fork {run} --as NAME --steps N`"
        )


def _require_work(graph_manager: GraphManager, checkpoint: Path, *, may_conclude: bool) -> None:
    """Refuse a run that is over; one that was stopped before its last evaluation may conclude.

    Args:
        graph_manager: The experiment, with the checkpoint's state.
        checkpoint: Where it would continue.
        may_conclude: Whether a run without training left may still evaluate.

    Raises:
        ConfigurationError: Nothing is left to do; the message has the flags that train further.
    """
    ending = graph_manager.progress.ending
    clock = graph_manager.graph.clock
    if ending is None or may_conclude:
        return
    schedule = graph_manager.parameters.schedule
    source = graph_manager.parameters.source
    name = checkpoint.name
    if ending == "solved":
        solved_at = graph_manager.progress.solved_at
        assert solved_at is not None
        why = (
            f"the run stops when it reaches {graph_manager.parameters.validation}, which it did "
            f"after {source.UNIT(solved_at)}; train on with --until_solved off, or give another "
            "target"
        )
    elif schedule.training.is_reached(clock):
        training = schedule.training
        done = schedule.training.counted(clock)
        why = (
            f"{name} has done {done:.10g} of {training.count:.10g} {training.noun}; "
            f"{source.how_to_train_further(clock)}"
        )
    elif schedule.stop_after is None or not schedule.stop_after.is_reached(clock):
        why = f"a callback has stopped the run ({ending}); {source.how_to_train_further(clock)}"
    else:
        why = f"{name} has run for its {schedule.stop_after}; give more in all with --hours"
    raise ConfigurationError(f"nothing left to train: {why}")


def _require_latest(opened: OpenedRun) -> None:
    """Refuse to drop checkpoints that came after the one named."""
    if opened.later:
        assert opened.checkpoint is not None
        folder = opened.folder.path
        chosen = opened.checkpoint.path.name
        raise ConfigurationError(
            f"{folder} has continued from {chosen} to {opened.later[-1].name}; resuming from "
            f"{chosen} would delete later checkpoints ({len(opened.later)}) and the logs after it. "
            f"To keep both: `coach fork {folder}@{chosen} --as NAME`; to delete them: --drop_later"
        )


def _require_never_saved(opened: OpenedRun) -> None:
    """Refuse to start again, which drops the logs, where the run did have checkpoints.

    One that was killed while it wrote its first has announced it, and left a part of it behind.
    """
    folder = opened.folder
    manifest = opened.manifest
    if not manifest["parameters"].get("checkpoints", {}).get("enabled", True):
        raise CheckpointError(
            f"the run {folder.path} keeps no checkpoints (checkpoints.enabled=False), so it cannot "
            "be resumed; start a new run"
        )
    if manifest.get("ancestry"):
        raise CheckpointError(
            f"the fork {folder.path} has no checkpoint: it was killed before its first one, or all "
            "have been deleted; fork the run it comes from again"
        )
    log = folder.path / "log.jsonl"
    kind = re.compile(rb'"kind": ?"(checkpoint(?:_failed)?)"')
    announced: list[bytes] = []
    if log.exists():
        with log.open("rb") as file:
            announced = [found for line in file for found in kind.findall(line)]
    is_announced = announced.count(b"checkpoint") > announced.count(b"checkpoint_failed")
    if is_announced and not list(folder.checkpoints.glob(UNFINISHED)):
        raise CheckpointError(
            f"all checkpoints of the run {folder.path} have been deleted, so it cannot be resumed; "
            "start a new run, or delete its log.jsonl to start this one again"
        )


def _with_length(
    changes: Mapping[str, object] | None, steps: EnvironmentSteps | None
) -> dict[str, object]:
    """Changes by their path, with the steps to train for, which none of them may set."""
    if steps is None:
        return dict(changes or {})
    _require_one_length(changes or {})
    return {**(changes or {}), "schedule.training": steps}


def _require_one_length(changes: Mapping[str, object]) -> None:
    """Refuse a length among the changes, where steps are given."""
    require_given_once("schedule.training", changes, by=", as steps and as a change")


def _changed(
    opened: OpenedRun, overrides: dict[str, object]
) -> tuple[GraphManager, dict[str, object]]:
    """The experiment with its changes, and those by their path."""
    if "num_envs" in overrides:
        raise ConfigurationError(
            "num_envs cannot be changed in a fork: open episodes, memories and random streams "
            f"belong to the {opened.graph_manager.parameters.num_envs} environments of the run; "
            "leave it out"
        )
    try:
        return with_overrides(opened.graph_manager, overrides), overrides
    except UnknownNameError as error:
        if error.name not in (opened.manifest["panel"] or {}):
            raise
        raise ConfigurationError(
            f"{error} ('{error.name}' is on the control panel of the run's preset; a fork changes "
            "the run's own parameters, by their paths)"
        ) from error


def _inherited(
    opened: OpenedRun, checkpoint: Checkpoint, changes: Mapping[str, object], seed: int | None
) -> Json:
    """The parts of a fork's manifest that come from its parent's."""
    parent = opened.manifest
    step = {
        "run": str(opened.folder.path),
        "checkpoint": checkpoint.path.name,
        "environment_steps": steps_of(checkpoint.path),
        "seed": parent["task"]["seed"],
        "changes": overrides_json(changes if seed is None else {**changes, "seed": seed}),
    }
    inherited = {key: parent[key] for key in ("preset", "panel", "loaded") if key in parent}
    return {**inherited, "ancestry": [*parent.get("ancestry", []), step]}


def _warn_of_restarts(level: str, obstacle: str | None) -> None:
    """Warn that open episodes are in no checkpoint, where there is an obstacle to saving them.

    Args:
        level: The name of the environment.
        obstacle: Reason why they cannot be saved; None where they can.
    """
    if obstacle is None:
        return
    warn(
        f"open episodes of '{shown_level(level)}' cannot be saved: "
        f"{obstacle}. Checkpoints hold everything else, and a resumed run restarts these "
        "episodes",
    )
