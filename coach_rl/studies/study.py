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

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

from coach_rl.core.errors import ParameterError, UnknownNameError, require
from coach_rl.core.parameter_classes import ADVICE, parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive
from coach_rl.core.runtime import MatmulPrecision
from coach_rl.runs.folder import check_name
from coach_rl.studies.job import Needs


@parameter_class
class Published:
    """Scores that others have published, to stand beside one's own."""

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
    """A shipped preset or a preset file, as after `-p`; files are looked for beside the study."""
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
    """Cores and memory that each of its runs takes; None: as the study says."""
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
    """Pages in which its report stands between marks, by their paths from the study's file."""
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
        f"{name} must be one line of text without '|', for it stands in tables; got {text!r}",
    )


def _require_once(study: str, kind: str, names: Sequence[object], advice: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise ParameterError(
                f"the study '{study}' has the {kind} {name!r} {count} times; {advice}"
            )
