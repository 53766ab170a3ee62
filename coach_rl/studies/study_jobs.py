"""The jobs that a study consists of, and the check that all of them can be made."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from coach_rl.configuration.preset_file import Preset, load_preset
from coach_rl.configuration.presets import PresetReference, find_preset
from coach_rl.core.errors import CoachError, ConfigurationError, ParameterError
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps, Hours
from coach_rl.graph_managers.parameters import require_known_metric
from coach_rl.sessions.runner import DEFAULT_ROOT
from coach_rl.studies.job import Job, Needs
from coach_rl.studies.job_run import identity
from coach_rl.studies.study import Study, Variant

STUDY, VARIANT = "study", "variant"
"""Labels of a study's jobs."""


def jobs_of(study: Study, *, root: Path = DEFAULT_ROOT, tensorboard: bool = True) -> list[Job]:
    """A job for each seed of each variant, all variants of a seed before the next seed.

    So a study that is interrupted has something to say about every variant.

    Args:
        study: The study.
        root: The folder of all experiments.
        tensorboard: Whether the runs write TensorBoard files.

    Raises:
        ConfigurationError: A variant's preset, or something that it changes, does not exist.
    """
    seeds = {variant.name: variant.seeds or study.seeds for variant in study.variants}
    rounds = range(max(map(len, seeds.values())))
    presets: dict[str, str] = {}
    overrides: dict[tuple[str, int], dict[str, object]] = {}
    threads: dict[tuple[str, int], int] = {}
    for variant in study.variants:
        with _about(study, variant.name):
            preset = load_preset(find_preset(variant.preset))
            presets[variant.name] = _named(preset.reference, variant.preset)
            for seed in seeds[variant.name]:
                changes = _overrides(study, variant, preset, seed)
                overrides[variant.name, seed] = changes
                threads[variant.name, seed] = (
                    study.threads or preset.configure(changes).parameters.threads
                )
    return [
        Job(
            preset=presets[variant.name],
            overrides=overrides[variant.name, seed],
            task=Runtime(
                seed=seed,
                device=study.device,
                matmul_precision=variant.matmul_precision,
                threads=threads[variant.name, seed],
            ),
            name=study.name,
            root=root,
            labels={STUDY: study.name, VARIANT: variant.name},
            tensorboard=tensorboard,
            needs=variant.needs or study.needs or Needs(cores=threads[variant.name, seed]),
        )
        for index in rounds
        for variant in study.variants
        for seed in seeds[variant.name][index : index + 1]
    ]


def check_study(study: Study) -> None:
    """Build the experiment of every variant, so that what is wrong is said before anything runs.

    A variant with changes of single seeds has an experiment for each seed.

    Raises:
        ConfigurationError: A variant cannot be built, is the same as another one, or has no
            evaluations with the study's metric.
    """
    names: dict[tuple[str, ...], str] = {}
    jobs = jobs_of(study)
    for variant in study.variants:
        own = [job for job in jobs if job.labels[VARIANT] == variant.name]
        different = own if variant.changes_by_seed else own[:1]
        for job in different:
            with _about(study, variant.name):
                _check_job(study, job)
        alike = tuple(identity(replace(job, task=replace(job.task, seed=0))) for job in different)
        other = names.setdefault(alike, variant.name)
        if other != variant.name:
            raise ParameterError(
                f"the variants '{other}' and '{variant.name}' of the study '{study.name}' have the "
                "same parameters, so their runs would be the same; change or leave out one of them"
            )


def _check_job(study: Study, job: Job) -> None:
    """Build the experiment of a job, and look for the study's metric among its own."""
    graph_manager = load_preset(find_preset(job.preset)).configure(job.overrides)
    levels = [level.name for level in graph_manager.parameters.levels]
    require_known_metric(f"in the study '{study.name}'", study.metric, levels)
    with closing(graph_manager):
        graph_manager.create_graph(job.task)


def _named(reference: PresetReference, text: str) -> str:
    """A preset as a process in another folder finds it: a shipped one by name, a file by path."""
    return f"{reference.path}:{reference.function}" if ".py" in text else text


def _overrides(study: Study, variant: Variant, preset: Preset, seed: int) -> dict[str, object]:
    """Changes that a variant makes to its preset for a seed: its own, its level, the budget."""
    overrides = {**variant.changes, **variant.changes_by_seed.get(seed, {})}
    steps = variant.steps or study.steps
    settings = {
        "level": ("environment.level", variant.level),
        "steps": ("schedule.training", None if steps is None else EnvironmentSteps(steps)),
        "hours": ("schedule.stop_after", None if study.hours is None else Hours(study.hours)),
    }
    for field, (path, given) in settings.items():
        if given is not None:
            name, value = preset.setting(path, given)
            if name in overrides:
                raise ConfigurationError(f"{name} is given twice, by {field} and by changes")
            overrides[name] = value
    return overrides


@contextmanager
def _about(study: Study, variant: str) -> Iterator[None]:
    """Errors inside name the variant that they are about."""
    try:
        yield
    except CoachError as error:
        raise ConfigurationError(
            f"the variant '{variant}' of the study '{study.name}': {error}"
        ) from error
