"""Settings of each command of `coach`: one frozen dataclass per command, its flags by name.

Light on purpose, like `arguments`, which fills them in: nothing here needs torch.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

DEFAULT_EPISODES = 20
"""Episodes of an evaluation without a number."""

DEFAULT_HISTOGRAM_STEPS = 10_000
"""Environment steps from one set of histograms to the next, where none are given."""

MatmulPrecision = Literal["highest", "high", "medium"]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The changes to a preset."""

    level: str | None = None
    num_envs: int | None = None
    custom_parameter: str = ""


@dataclass(frozen=True, kw_only=True)
class Collecting:
    """Workers that collect for a run; what is None is as the preset, or the run, has it."""

    workers: int | None = None
    on: str | None = None


@dataclass(frozen=True, kw_only=True)
class Length:
    """Length of a run; what is None is as the preset, or the run, has it."""

    steps: int | None = None
    hours: float | None = None
    until_solved: str | None = None
    """A target such as `reward=475`; `preset` for the preset's own, `off` to train on."""


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """Policy of checkpoints; what is None is as the preset, or the run, has it."""

    checkpoint_seconds: float | None = None
    checkpoint_steps: int | None = None
    keep: int | None = None
    keep_every: int | None = None
    best: str | None = None
    no_memories: bool = False
    no_checkpoints: bool = False


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Settings of opening a run that exists; None: as the run has it."""

    device: str | None = None
    threads: int | None = None
    last_good: bool = False
    trust: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Film:
    """Settings of filming: whether and how evaluations are filmed."""

    dump_gifs: bool = False
    dump_mp4: bool = False
    video_frames: int | None = None
    video_skip: int | None = None
    video_of: str | None = None
    video_episodes: str | None = None
    video_every: int | None = None
    video_row: int | None = None


@dataclass(frozen=True, kw_only=True)
class Output:
    """The output of a run: what it writes and shows."""

    no_tensorboard: bool = False
    histograms: int | None = None
    """Environment steps from one set to the next; None for none."""
    evaluate_aside: bool = False
    profile: bool = False
    film: Film = field(default_factory=Film)
    plain: bool = False
    print_networks_summary: bool = False


@dataclass(frozen=True, kw_only=True)
class Train:
    """`coach train PRESET`, in short `coach -p PRESET`."""

    preset: str
    changes: Changes
    collecting: Collecting
    length: Length
    keeping: Keeping
    tracker: str | None = None
    inspect: str | None = None
    seed: int = 0
    device: str = "auto"
    threads: int | None = None
    matmul_precision: MatmulPrecision = "highest"
    experiment_name: str | None = None
    experiment_path: Path | None = None
    output: Output


@dataclass(frozen=True, kw_only=True)
class TrainSeeds:
    """`coach train PRESET --seeds SEEDS`: one run for each seed."""

    preset: str
    changes: Changes
    length: Length
    keeping: Keeping
    tracker: str | None = None
    seeds: tuple[int, ...] = ()
    jobs: int | None = None
    """Runs at once; None: as many as the machine carries."""
    on: str = "local"
    """The place where they run."""
    device: str = "auto"
    threads: int | None = None
    matmul_precision: MatmulPrecision = "highest"
    experiment_name: str | None = None
    experiment_path: Path | None = None
    no_tensorboard: bool = False
    plain: bool = False


@dataclass(frozen=True, kw_only=True)
class Resume:
    """`coach resume RUN`, in short `coach -crd RUN`; what is None stays as it was."""

    run: Path
    on: str | None = None
    length: Length
    keeping: Keeping
    tracker: str | None = None
    inspect: str | None = None
    opening: Opening
    drop_later: bool = False
    restart_episodes: bool = False
    output: Output


@dataclass(frozen=True, kw_only=True)
class Fork:
    """`coach fork RUN --as NAME`; what is None stays as it was in the run it starts from."""

    run: Path
    experiment_name: str = ""
    experiment_path: Path | None = None
    custom_parameter: str = ""
    length: Length
    keeping: Keeping
    tracker: str | None = None
    inspect: str | None = None
    opening: Opening
    seed: int | None = None
    restart_episodes: bool = False
    output: Output


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """`coach evaluate RUN`, in short `coach --evaluate -crd RUN`; what is None is the run's own."""

    run: Path
    changes: Changes
    opening: Opening
    episodes: int = DEFAULT_EPISODES
    sampling: bool = False
    seed: int | None = None
    film: Film
    plain: bool = False


@dataclass(frozen=True, kw_only=True)
class EvaluateUntrained:
    """`coach evaluate -p PRESET`: agents as they are before any training."""

    preset: str
    changes: Changes
    episodes: int = DEFAULT_EPISODES
    sampling: bool = False
    seed: int = 0
    device: str = "auto"
    threads: int | None = None
    matmul_precision: MatmulPrecision = "highest"
    plain: bool = False


@dataclass(frozen=True, kw_only=True)
class Describe:
    """`coach describe PRESET`."""

    preset: str
    changes: Changes
    length: Length
    keeping: Keeping
    inspect: str | None = None
    device: str = "auto"


@dataclass(frozen=True, kw_only=True)
class CheckEnvironment:
    """`coach check ENVIRONMENT`."""

    environment: str
    """A level's name, `module:Class` included."""


@dataclass(frozen=True, kw_only=True)
class CheckPreset:
    """`coach check -p PRESET`: the environment that a preset trains in."""

    preset: str
    changes: Changes


@dataclass(frozen=True, kw_only=True)
class ListPresets:
    """`coach list [WORD]`, in short `coach -l`."""

    word: str = ""
    """Only presets whose name contains it, in any case."""


Settings = (
    Train
    | TrainSeeds
    | Resume
    | Fork
    | Evaluate
    | EvaluateUntrained
    | Describe
    | CheckEnvironment
    | CheckPreset
    | ListPresets
)
