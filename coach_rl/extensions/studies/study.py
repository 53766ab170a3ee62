"""A study: a question to many runs, as a value.

def study() -> Study:
    return Study(
        name="learning_rates",
        question="Does a smaller learning rate help PPO on CartPole?",
        variants=(
            Variant(name="shipped", preset="CartPole_PPO"),
            Variant(name="smaller", preset="CartPole_PPO", changes={"learning_rate": 3e-4}),
        ),
        seeds=(0, 1, 2, 3, 4),
        steps=50_000,
        baseline="shipped",
    )
"""

import hashlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import field, replace
from pathlib import Path

from coach_rl.configuration.preset_file import Preset, load_preset, require_given_once
from coach_rl.configuration.presets import PresetReference, find_preset
from coach_rl.configuration.user_modules import file_error, load_module
from coach_rl.core.errors import (
    CoachError,
    ConfigurationError,
    ParameterError,
    UnknownNameError,
    require,
)
from coach_rl.core.parameter_classes import ADVICE, parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive
from coach_rl.core.runtime import MatmulPrecision, Runtime
from coach_rl.core.steps import EnvironmentSteps, Hours
from coach_rl.extensions.studies.job import Job, Needs, identity
from coach_rl.graph_managers.parameters import require_known_metric
from coach_rl.runs.folder import check_name
from coach_rl.sessions.session import DEFAULT_ROOT

DEFAULT_FUNCTION = "study"
"""The function that a study's file defines."""
STUDY = "study"
VARIANT = "variant"
"""Labels of a study's jobs."""


@parameter_class
class Published:
    """Published scores of others, for comparison."""

    score: float
    """The score."""
    source: str
    """Its authors, and the number of their seeds."""
    curve: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    """Mean and standard deviation over seeds, by environment steps."""


def _describe_seeds(value: object) -> str:
    return f"; write range({value}) for so many" if isinstance(value, int) else ""


@parameter_class
class Variant:
    """One of the ways to train that a study compares."""

    name: str
    """Its name in tables and in the manifests of its runs."""
    preset: str
    """A shipped preset or a preset file, as after `-p`; paths are relative to the study's file."""
    changes: Mapping[str, object] = field(default_factory=dict)
    """Changes of the preset's panel and parameters, by panel name or dotted path."""
    changes_by_seed: Mapping[NonNegative[int], Mapping[str, object]] = field(default_factory=dict)
    """Further changes in the runs of single seeds, such as what each of them loads, by seed."""
    level: str | None = None
    """The environment's level; None: the preset's."""
    steps: Positive[int] | None = None
    """Environment steps to train for; None: the study's."""
    seeds: NonEmpty[tuple[NonNegative[int], ...]] | None = field(
        default=None, metadata={ADVICE: _describe_seeds}
    )
    """Seeds of its runs; None: the study's."""
    matmul_precision: MatmulPrecision = "highest"
    """Precision of float32 matrix products."""
    needs: Needs | None = None
    """Cores and memory that each of its runs takes; None: the study's."""
    published: Published | None = None
    """Scores to compare it with; None: there are none."""

    def __post_init__(self) -> None:
        _require_one_line("Variant.name", self.name)
        for seed, changes in self.changes_by_seed.items():
            twice = [name for name in changes if name in self.changes]
            require(
                not twice,
                f"the variant '{self.name}' changes {', '.join(twice)} twice, in changes and in "
                f"changes_by_seed for seed {seed}; name it in one of them",
            )


@parameter_class
class Study:
    """A question to many runs: variants, each trained on each seed."""

    name: str
    """Name of the folder of its runs."""
    question: str = ""
    """The question that it answers, for readers of its report; empty: the first sentence of the
    docstring of the function in its file."""
    about: str = ""
    """Anything else that they should know; empty: the rest of that docstring."""
    variants: NonEmpty[tuple[Variant, ...]]
    """The variants that are compared."""
    seeds: NonEmpty[tuple[NonNegative[int], ...]] = field(metadata={ADVICE: _describe_seeds})
    """Seeds of each variant's runs."""
    steps: Positive[int] | None = None
    """Environment steps that each run trains for; None: as its preset has it."""
    hours: Positive[float] | None = None
    """Hours of its own time after which a run stops; None: no limit."""
    metric: str = "reward_mean"
    """Metric of evaluations that scores a run: reward_mean, success_rate, low/goal_share, ...."""
    baseline: str | None = None
    """Name of the variant with which those on the same level are compared; None: no comparison."""
    episodes: Positive[int] | None = None
    """Episodes of an evaluation after training that scores a run, as `coach evaluate` makes it.
    None: the final evaluation that every run ends with is its score."""
    pages: tuple[str, ...] = ()
    """Pages with its report between marks, relative to the study's file."""
    device: str = "auto"
    """Device of the networks: auto, cpu, cuda or cuda:N."""
    threads: Positive[int] | None = None
    """Threads of one tensor operation on the CPU; None: those of each variant's preset."""
    needs: Needs | None = None
    """Cores and memory that each run takes; None: a core for each of its threads."""

    def __post_init__(self) -> None:
        check_name(self.name)
        _require_one_line("Study.question", self.question or "-")
        names = [variant.name for variant in self.variants]
        _require_once(self.name, "variant", names, "rename all but one")
        for seeds in (self.seeds, *(variant.seeds for variant in self.variants if variant.seeds)):
            _require_once(self.name, "seed", seeds, "name it once")
        for variant in self.variants:
            seeds = variant.seeds or self.seeds
            others = [seed for seed in variant.changes_by_seed if seed not in seeds]
            require(
                not others,
                f"changes_by_seed of the variant '{variant.name}' names seeds that it has no run "
                f"of: {', '.join(map(str, others))}; its seeds are {', '.join(map(str, seeds))}",
            )
        if self.baseline is not None and self.baseline not in names:
            raise UnknownNameError("variant", self.baseline, names, where="as baseline")


def _require_one_line(name: str, text: str) -> None:
    require(
        bool(text.strip()) and not any(each in text for each in "|\n\r"),
        f"{name} must be one line of text without '|', since it is shown in tables; got {text!r}",
    )


def _require_once(study: str, kind: str, names: Sequence[object], advice: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise ParameterError(
                f"the study '{study}' has the {kind} {name!r} {count} times; {advice}"
            )


def load_study(text: str) -> Study:
    """The study in `FILE.py` or, where a file has several, `FILE.py:FUNCTION`.

    The preset files and pages that it names are relative to its folder.

    Raises:
        ConfigurationError: There is no such file, it fails, or what it returns is no Study.
        UnknownNameError: It has no function of that name.
    """
    split = re.fullmatch(r"(.+\.py):(\w+)", text)
    location, name = (split[1], split[2]) if split else (text, DEFAULT_FUNCTION)
    path = Path(location).expanduser().resolve()
    if path.suffix != ".py" or not path.is_file():
        raise ConfigurationError(
            f"there is no study file '{location}'; give a .py file with {DEFAULT_FUNCTION}()"
        )
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the study {path}: {error}") from error
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    module_name = "_".join(("coach_study", re.sub(r"\W", "_", path.stem), digest))
    module = load_module(module_name, source, path=path, file=path, kind="study")
    function = getattr(module, name, None)
    if not callable(function):
        functions = [
            each
            for each, thing in vars(module).items()
            if callable(thing) and getattr(thing, "__annotations__", {}).get("return") in _RETURNS
        ]
        if name == DEFAULT_FUNCTION and not functions:
            raise ConfigurationError(
                f"{location} defines no {DEFAULT_FUNCTION}: a function that returns a Study"
            )
        raise UnknownNameError(
            "study", name, functions, _advice(location, functions), where=f"in {location}"
        )
    try:
        study = function()
    except CoachError as error:
        raise ConfigurationError(f"study {path}: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise file_error(path, error, "study") from error
    if not isinstance(study, Study):
        raise ConfigurationError(
            f"study {path}: {name}() must return a Study, got {type(study).__name__}"
        )
    question, _, about = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
    return replace(
        study,
        question=study.question or " ".join(question.split()),
        about=study.about or about.strip(),
        variants=tuple(_beside(path.parent, variant) for variant in study.variants),
        pages=tuple(str((path.parent / page).resolve()) for page in study.pages),
    )


_RETURNS = (Study, "Study")


def _advice(location: str, functions: list[str]) -> str:
    if functions:
        return f"name one of its studies: {location}:{functions[0]}"
    return f"define `def {DEFAULT_FUNCTION}() -> Study` in it"


def _beside(folder: Path, variant: Variant) -> Variant:
    """The variant, whose preset file is found from everywhere."""
    file, colon, function = variant.preset.partition(":")
    found = folder / Path(file).expanduser()
    if not file.endswith(".py") or not found.is_file():
        return variant
    return replace(variant, preset=f"{found.resolve()}{colon}{function}")


def jobs_of(study: Study, *, root: Path = DEFAULT_ROOT) -> list[Job]:
    """A job for each seed of each variant, all variants of a seed before the next seed.

    So a study that is interrupted has results for every variant.

    Args:
        study: The study.
        root: The folder of all experiments.

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
            needs=variant.needs or study.needs or Needs(cores=threads[variant.name, seed]),
        )
        for index in rounds
        for variant in study.variants
        for seed in seeds[variant.name][index : index + 1]
    ]


def check_study(study: Study) -> None:
    """Build the experiment of every variant, so that errors are raised before anything runs.

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
    """Build the experiment of a job, and check that it has the study's metric."""
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
    for word, (path, given) in settings.items():
        if given is not None:
            name, value = preset.setting(path, given)
            require_given_once(name, overrides, preset.panel, f", by {word} and by changes")
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
