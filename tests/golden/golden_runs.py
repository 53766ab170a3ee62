"""Short runs whose figures are kept, so that a change that moves numbers is noticed.

A run goes through the command line and is read from its folder, so that nothing inside the engine
can be renamed without these runs staying what they are.

Record them again after a deliberate change of numbers, and say why in CHANGELOG.md::

    python tests/golden/golden_runs.py [NAME ...]

Figures are compared by how they are computed, since other processors round differently: see
`differences`.
"""

import argparse
import importlib.util
import json
import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes.util import find_library
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from coach_rl.configuration.presets import shipped_presets
from coach_rl.core.steps import EnvironmentEpisodes

RECORDED = Path(__file__).with_name("recorded.json")
TWO_LEVELS = Path(__file__).with_name("two_levels.py")
UNTIMED = ("evaluation", "level", "train")
"""Kinds of records without memory use or speed."""
CANCELLING = {"train/policy_loss": 1e-6, "train/q_value": 1e-7, "train/advantage": 1e-7}
"""Means whose terms cancel, and the difference that passes besides: roundings of the terms."""
DIVERGENCE = "train/approx_kl"
"""A mean of the squares of changes of log-probabilities, halved."""
LOG_PROBABILITY = 1e-5
"""What passes for the rounding of such a change."""
FLOAT32 = 1.2e-7
"""Spacing of float32 at 1, from which ratios of probabilities are counted."""
EXPLAINED = "train/explained_variance"
"""A quotient by the variance of the returns, which may be close to 0; see `condition`."""


@dataclass(frozen=True, kw_only=True)
class GoldenRun:
    """A short run of a preset."""

    preset: str
    """A shipped preset, or a file and its function."""
    steps: int
    changes: str
    """What `-cp` changes, so that the run learns early and little."""
    level: str | None = None
    """The task, where it isn't the preset's own."""
    package: str | None = None
    """A package that the preset needs beside the plain installation."""
    library: str | None = None
    """A library of the system that it needs, such as EGL."""
    tolerance: float = 1e-5
    """Largest relative difference, for the rounding of another processor."""

    @property
    def settings(self) -> str:
        """What `-cp` changes, and the length where the preset's own setting of it is not used."""
        is_given = self.changes.startswith("steps=")
        return self.changes if is_given else f"{self.changes}; schedule.training={self.steps}"


ONE = "schedule.evaluation_episodes=1; "
PPO = ONE + (
    "num_envs=2; schedule.evaluation_interval=256; agent.algorithm.rollout=64; "
    "agent.algorithm.epochs=2; agent.algorithm.minibatch=32; "
)
RECURRENT = "agent.network.torso.embedder=(8,); agent.network.torso.recurrence.size=8; "
EARLY = (
    "agent.memory.capacity=1000; agent.learning.learning_starts=40; "
    "agent.learning.report_every=10; "
)
REPLAY = EARLY + "agent.learning.batch=16; agent.learning.updates_per_step=0.2; "
ATARI = "environment.max_episode_steps=50; "
REPLAY_ATARI = ONE + REPLAY + "schedule.evaluation_interval=120; num_envs=2; " + ATARI
OFF_POLICY = ONE + REPLAY + "schedule.heatup=40; schedule.evaluation_interval=120; "
SMALL = "batch=16; layers=(16, 16); "
MUJOCO = ONE + EARLY + SMALL + "heatup=40; evaluation_interval=160; updates_per_step=0.2; "
STACK = ONE + SMALL + "num_envs=4; environment.max_episode_steps=60; "
SELDOM = "evaluation_interval=400; "
SHORT = "evaluation_environment.max_episode_steps=60; "


def below(path: str, changes: str) -> str:
    """Changes of parameters whose names follow a path."""
    return "".join(f"{path}.{change}; " for change in changes.split("; "))


def learning(*levels: str) -> str:
    """Changes by which every level learns early, from a small memory; paths, top level first."""
    top = "memory.capacity=1000; learning.report_every=5; learning.learning_starts=10"
    low = "memory.capacity=1000; learning.report_every=20; learning.learning_starts=60"
    return below(levels[0], top) + "".join(below(level, low) for level in levels[1:])


def learners(*numbers: int) -> str:
    """The same of levels of a stack by their numbers."""
    return learning(*(f"stack.{number}.agent.learner" for number in numbers))


HAC = STACK + SELDOM + "stack.0.horizon=8; stack.1.horizon=10; " + learners(0, 1)
HIRO = (
    STACK
    + learning("levels.0.agent", "levels.1.agent")
    + "horizon=5; schedule.heatup=60; schedule.evaluation_interval=300; "
)
ADJACENT = below(
    "levels.0.agent.actor_terms.0.adjacency", "every=100; epochs=2; cell=0.1; near=0.01; far=0.03"
)
LANDMARKS = below(
    "levels.0.agent.actor_terms.0.landmarks",
    "starts=200; candidates=30; near_goal=0; novelty.every=50",
)
ONE_SKILL = below(
    "levels.1.agent", "memory.capacity=1000; learning.learning_starts=40; learning.report_every=10"
)
FLAT = STACK + SELDOM + "hierarchy=none; " + learning("levels.0.agent.learner")


def two_members(rollout: int, *, num_envs: int) -> str:
    """Changes by which both members of a group learn from so many decisions, twice in halves."""
    algorithm = f"rollout={rollout}; epochs=2; minibatch={rollout // 2}"
    return (
        ONE
        + f"num_envs={num_envs}; schedule.evaluation_interval=100; "
        + below("agent.members.0.agent.algorithm", algorithm)
        + below("agent.members.1.agent.algorithm", algorithm)
    )


CONTROL = "environment.max_episode_steps=50; "
NEW_STATES = "agent.bonus.warmup=40; agent.bonus.batch=48; agent.bonus.updates=2; "
"""Changes by which the networks of a bonus learn within 256 steps."""
FROM_DATA = (
    "steps=60; updates=40; batch=16; layers=(8, 8); evaluation_interval=50; num_envs=2; "
    + ONE
    + "agent.learning.report_every=20; environment.max_episode_steps=25"
)
LEVELS_FROM_DATA = FROM_DATA.replace(
    "agent.learning", "stack.0.agent.learning.report_every=20; stack.1.agent.learning"
).replace("updates=40", "updates=20")  # of each level
GRAPH_FROM_DATA = (
    FROM_DATA.replace("agent.learning", "stack.1.agent.learning")
    + "; build_every=20; places=20; longest=1000.0; stack.0.agent.places.candidates=200; "
    + "stack.0.agent.report_every=5; stack.1.horizon=5"
)
ANT: dict[str, Any] = dict(
    level="ant_maze_u12",
    tolerance=0.02,  # an ant that falls onto its legs amplifies rounding a thousandfold
)
SETTINGS: dict[str, dict[str, Any]] = {
    "Atari_DQN": dict(
        steps=200,
        changes=REPLAY_ATARI + "evaluation_environment.max_episode_steps=50; protocol=B",
        level="breakout",
        package="ale_py",
        tolerance=3e-4,  # convolutions by another processor's kernels
    ),
    "Atari_PPO": dict(steps=256, changes=PPO + ATARI, package="ale_py"),
    "Atari_Rainbow": dict(
        steps=200,
        changes=REPLAY_ATARI + "agent.network.streams=(8,)",
        level="breakout",
        package="ale_py",
    ),
    "Acrobot_PPO": dict(steps=256, changes=PPO),
    "AntMaze_Graph": dict(
        ANT,
        steps=300,
        changes=ONE
        + "num_envs=4; layers=(16, 16); rollout=64; epochs=2; minibatch=32; horizon=5; "
        + "evaluation_interval=300; levels.0.agent.report_every=20; "
        + "environment.max_episode_steps=60; "
        + SHORT,
    ),
    "AntMaze_Graph_TD3": dict(
        ANT,
        steps=300,
        changes=STACK
        + "horizon=5; evaluation_interval=300; levels.0.agent.report_every=20; "
        + SHORT
        + learning("levels.1.agent.learner"),
    ),
    "AntMaze_HAC": dict(ANT, steps=160, changes=HAC + SHORT),
    "AntMaze_HIRO": dict(steps=300, changes=HIRO + SHORT),
    "AntMaze_HRAC": dict(ANT, steps=300, changes=HIRO + ADJACENT + SHORT),
    "AntMaze_HRAC, landmarks": dict(
        ANT,
        steps=300,
        changes=HIRO + ADJACENT + LANDMARKS + "hierarchy=higl; novelty_updates=0.1; " + SHORT,
    ),
    "AntReacher_HAC": dict(steps=160, changes=HAC, tolerance=ANT["tolerance"]),
    "BitFlip_DQN": dict(steps=240, changes=OFF_POLICY + "bits=6"),
    "BitFlip_DQN_HER": dict(steps=240, changes=OFF_POLICY + "bits=6; num_envs=2"),
    "Cables_PPO": dict(steps=256, changes=PPO + "places=4"),
    "CartPole_DQN": dict(steps=200, changes=OFF_POLICY),
    "CartPole_DQN, dueling, three steps": dict(
        steps=200, changes=OFF_POLICY + "dueling=True; n_step=3; num_envs=2"
    ),
    "CartPole_PPO": dict(steps=256, changes=PPO),
    "CartPole_Rainbow": dict(steps=200, changes=OFF_POLICY),
    "Chain_PPO": dict(steps=256, changes=PPO + "bonus=rnd; " + NEW_STATES),
    "Chain_PPO, NovelD": dict(steps=256, changes=PPO + "bonus=noveld; " + NEW_STATES),
    "ConnectFour_PPO": dict(steps=256, changes=PPO + "opponent=rules"),
    "CartPole_SAC": dict(steps=160, changes=OFF_POLICY),
    "Fetch_DDPG_HER": dict(
        steps=160,
        changes=MUJOCO.replace("heatup=40; ", "schedule.heatup=40; ").replace(
            "updates_per_step", "agent.learning.updates_per_step"
        ),
        package="gymnasium_robotics",
    ),
    "FourRooms_PPO_Options": dict(
        steps=1200, changes=ONE + "schedule.evaluation_interval=1200; num_envs=4; rollout=40"
    ),
    "Gates_HiTS": dict(
        steps=400, changes=STACK + SELDOM + "horizon=8; longest=10; " + learners(0, 1)
    ),
    "Gates_HiTS, no times, stopping on failure": dict(
        steps=400,
        changes=STACK
        + SELDOM
        + "hierarchy=hac; horizon=8; longest=10; "
        + "stack.0.agent.actions=None; stack.0.parts=(StopOnFailure(),); "
        + learners(0, 1),
    ),
    "CartPole_CQL": dict(steps=60, changes=FROM_DATA),
    "DMControl_PPO": dict(
        level="cheetah-run", steps=256, changes=PPO + CONTROL, package="dm_control"
    ),
    "DMControl_Pixels_SAC": dict(
        steps=80,
        changes=ONE
        + "environment.max_episode_steps=10; environment.picture_size=40; heatup=20; batch=4; "
        + "evaluation_interval=60; layers=(16,); features=4; updates_per_step=0.5; "
        + "agent.memory.capacity=200; "
        + "agent.learning.learning_starts=20; agent.learning.report_every=10; "
        + "agent.actor.torso.convolutions=((4, 5, 3), (4, 3, 2)); "
        + "agent.critic.torso.convolutions=((4, 5, 3), (4, 3, 2))",
        package="dm_control",
        library="EGL",
        tolerance=0.05,  # pictures by another OpenGL
    ),
    "DMControl_SAC": dict(
        level="cartpole-swingup", steps=160, changes=MUJOCO + CONTROL, package="dm_control"
    ),
    "DMControl_TD3": dict(
        level="finger-spin", steps=160, changes=MUJOCO + CONTROL, package="dm_control"
    ),
    "LunarLander_DQN": dict(steps=200, changes=OFF_POLICY, package="Box2D"),
    "MiniGrid_PPO": dict(
        steps=256,
        changes=PPO
        + "mission=words; units=8; recurrence=gru; sequence=8; entropy_coefficient=0.01",
        level="BabyAI-GoToObjS4",
        package="minigrid",
    ),
    "Mujoco_BC": dict(steps=60, changes=FROM_DATA),
    "Mujoco_DDPG": dict(level="hopper", steps=160, changes=MUJOCO),
    "Mujoco_Distillation": dict(
        steps=160,
        changes=ONE
        + EARLY
        + "num_envs=2; batch=16; sequence=8; size=8; layers=(8,); updates_per_step=0.2; "
        + "teacher_steps=100; evaluation_interval=160",
    ),
    "Mujoco_IQL": dict(steps=60, changes=FROM_DATA),
    "Mujoco_PPO": dict(
        level="walker2d",
        steps=256,
        changes=ONE + "num_envs=2; evaluation_interval=256; rollout=64; epochs=2; minibatch=32",
    ),
    "Mujoco_PPO_KL": dict(level="hopper", steps=256, changes=PPO),
    "Mujoco_ReBRAC": dict(steps=60, changes=FROM_DATA),
    "Mujoco_SAC": dict(level="hopper", steps=160, changes=MUJOCO),
    "Mujoco_SAC, learned temperature": dict(
        level="walker2d", steps=160, changes=MUJOCO + "temperature=None; num_envs=2"
    ),
    "Mujoco_TD3": dict(level="hopper", steps=160, changes=MUJOCO),
    "Mujoco_TD3_BC": dict(steps=60, changes=FROM_DATA),
    "Pendulum_DDPG": dict(steps=120, changes=OFF_POLICY),
    "Pendulum_HAC": dict(steps=400, changes=HAC),
    "Pendulum_HAC, three levels": dict(
        steps=400,
        changes=STACK
        + SELDOM
        + "levels=3; stack.0.horizon=4; stack.1.horizon=4; stack.2.horizon=6; "
        + learners(0, 1, 2),
    ),
    "Pendulum_HAC, flat": dict(steps=400, changes=FLAT),
    "Pendulum_PPO": dict(steps=256, changes=PPO),
    "Pendulum_SAC": dict(steps=120, changes=OFF_POLICY),
    "PointMass_DIAYN": dict(
        steps=300,
        changes=ONE + SMALL + "schedule.evaluation_interval=300; num_envs=2; " + ONE_SKILL,
    ),
    **{
        f"PointMass_PPO_Skills, {skills}": dict(
            steps=1200,
            changes=ONE
            + f"schedule.evaluation_interval=1200; num_envs=4; rollout=40; skills={skills}",
            tolerance=1e-3,  # 258 updates on another processor's rounding
        )
        for skills in ("own", "one", "option_critic")
    },
    "PointMaze_DataGraph": dict(steps=60, changes=GRAPH_FROM_DATA),
    "PointMaze_GCIQL": dict(steps=60, changes=FROM_DATA),
    "PointMaze_GCIQL, cloning": dict(steps=60, changes=f"{FROM_DATA}; algorithm=gcbc"),
    "PointMaze_HAC": dict(steps=400, changes=HAC),
    "PointMaze_HAC, flat, repeated actions": dict(
        steps=400, changes=FLAT + "exploration=epsilon_z_greedy; "
    ),
    "PointMaze_HAC, graph": dict(
        steps=400,
        changes=STACK + SELDOM + "hierarchy=graph; stack.0.agent.report_every=5; " + learners(1),
    ),
    "PointMaze_HAC, graph below a learner": dict(
        steps=400,
        changes=STACK
        + SELDOM
        + "hierarchy=graph_below; levels=3; stack.0.horizon=8; "
        + "stack.1.horizon=2; stack.2.horizon=10; stack.1.agent.report_every=5; "
        + learners(0, 2),
    ),
    "PointMaze_HIQL": dict(steps=60, changes=LEVELS_FROM_DATA),
    "PointMaze_HIRO": dict(
        steps=180,
        changes=HIRO,
        tolerance=0.002,  # sub-goals are corrected by comparing candidates that lie close together
    ),
    "PointMaze_LESSON": dict(
        steps=180, changes=HIRO + "levels.1.goal_space.torso.middleware=(8, 8)"
    ),
    "PointMaze_METRA": dict(
        steps=160,
        changes=ONE
        + SMALL
        + "num_envs=2; environment.max_episode_steps=30; schedule.evaluation_interval=160; "
        + ONE_SKILL,
    ),
    "SpeakerListener_MAPPO": dict(steps=120, changes=two_members(16, num_envs=1), package="mpe2"),
    "SpeakerListener_PPO": dict(steps=200, changes=two_members(50, num_envs=2), package="mpe2"),
    "TicTacToe_PPO": dict(steps=120, changes=two_members(16, num_envs=1), package="pettingzoo"),
    "two levels, TD3 above TD3": dict(preset=f"{TWO_LEVELS}:td3_above_td3", steps=400, changes=""),
    "two levels, DQN above PPO": dict(preset=f"{TWO_LEVELS}:dqn_above_ppo", steps=600, changes=""),
    "TMaze_PPO_Options": dict(
        steps=600,
        changes=ONE
        + "schedule.evaluation_interval=600; num_envs=4; rollout=40; recurrence=min_gru",
    ),
    "POPGym_PPO": dict(
        steps=300,
        changes=PPO + RECURRENT + "agent.algorithm.sequence=8; agent.network.torso.middleware=(8,)",
        package="popgym",
    ),
    "Platform_PPO": dict(steps=256, changes=PPO),
    "Workshop_PPO": dict(
        steps=64,
        changes=ONE
        + "num_envs=1; schedule.evaluation_interval=64; task=push; "
        + below("agent.algorithm", "rollout=8; epochs=1; minibatch=8")
        + "environment.max_episode_steps=20",
    ),
    "Workshop_PPO_Selector": dict(
        steps=128,
        changes=ONE
        + "schedule.evaluation_interval=128; num_envs=1; preempt=True; horizon=4; "
        + "environment.max_episode_steps=20; "
        + below("levels.0.agent.algorithm", "rollout=12; minibatch=12")
        + "".join(f"levels.{number}.agent=UniformAgentParameters(); " for number in (1, 2, 3)),
        tolerance=1e-4,  # twelve advantages that differ by a hundredth of the values, normalised
    ),
    "TMaze_PPO": dict(steps=300, changes=PPO + RECURRENT + "agent.algorithm.sequence=8; length=4"),
    "TMaze_DQN": dict(
        steps=300,
        changes=ONE
        + REPLAY
        + RECURRENT
        + "schedule.evaluation_interval=300; num_envs=4; length=4; "
        + "agent.memory.draws.length=8; agent.memory.draws.burn_in=2; recurrence=lstm",
    ),
}
"""Settings of each run by its name, which begins with its preset where that is a shipped one."""
EVERY_RUN = {
    name: GoldenRun(**{"preset": name.partition(",")[0]} | settings)
    for name, settings in SETTINGS.items()
}
"""The runs by name."""
_SHIPPED = shipped_presets()
RUNS = {
    name: run for name, run in EVERY_RUN.items() if ".py" in run.preset or run.preset in _SHIPPED
}
"""Those whose presets are there: some lack where an extension has been deleted."""


def figures(run: GoldenRun, folder: Path) -> dict[str, Any]:
    """Make a run and read its figures.

    Args:
        run: The run.
        folder: Where its experiment folder is made.

    Returns:
        `log`: every record without times, in order; `networks`: those of the last
        checkpoint.
    """
    return figures_of(run_folder(run, folder, "-c"), run)


def figures_of(
    made: Path, run: GoldenRun, *, kinds: tuple[str, ...] = UNTIMED, from_line: int = 0
) -> dict[str, Any]:
    """The figures of a finished run.

    Args:
        made: Its folder.
        run: The run.
        kinds: Kinds of records to keep.
        from_line: Lines of its log that are left out.
    """
    records = map(json.loads, (made / "log.jsonl").read_text().splitlines()[from_line:])
    names = ("kind", "level", "agent", "environment_steps", "training_steps")
    last = max((made / "checkpoints").glob("step_*"), key=lambda each: int(each.name[5:]))
    return {
        "log": [
            {n: each[n] for n in names} | {"scalars": untimed(each["scalars"])}
            for each in records
            if each["kind"] in kinds
        ],
        "networks": networks(load_file(last / "tensors.safetensors")),
    }


def run_folder(run: GoldenRun, folder: Path, *flags: str, changes: str = "") -> Path:
    """Make a run; the folder it leaves.

    Args:
        run: The run.
        folder: Where its experiment folder is made.
        flags: More flags, such as that of the device.
        changes: More changes of its parameters, as `-cp` takes them.
    """
    from coach_rl.cli.main import main  # not where only the names of runs are asked for

    words = [
        "-p",
        run.preset,
        "--seed",
        "7",
        "-cp",
        f"{run.settings}; {changes}",
    ]
    words += [*flags, "--plain", "-ntb", "--threads", "1", "-ep", str(folder), "-e", "golden"]
    if run.level is not None:
        words += ["-lvl", run.level]
    if main(words):
        raise RuntimeError(f"coach {' '.join(words)} failed")
    (made,) = (folder / "golden").iterdir()
    return made


@contextmanager
def evaluated_as(recorded: dict[str, Any]) -> Iterator[None]:
    """Context in which runs end with an evaluation of one episode where no figure is of the last.

    Args:
        recorded: The run's recorded figures, which have some of the last where levels have goals.
    """
    from coach_rl.cli import train

    settings_of = train.run_settings
    names = [name for each in recorded["log"] for name in each["scalars"]]
    if not any(name.startswith("final_") for name in names):
        train.run_settings = lambda given: replace(
            settings_of(given), final_episodes=EnvironmentEpisodes(1)
        )
    try:
        yield
    finally:
        train.run_settings = settings_of


def untimed(scalars: dict[str, float]) -> dict[str, float]:
    """The scalars that are no times."""
    return {
        name: value
        for name, value in scalars.items()
        if not name.startswith("time/") and not name.endswith("/planning_seconds")
    }


def networks(tensors: dict[str, np.ndarray[Any, Any]]) -> dict[str, list[float]]:
    """Mean and root mean square of each network, by its path, e.g. `agents/low/critic/target`."""
    found = defaultdict(list)
    for path, values in tensors.items():
        parts = [part for part in path.split("/") if part not in ("state", "network", "networks")]
        version = next((part for part in parts if part in ("online", "target")), None)
        if version is not None:
            name = "/".join(parts[: parts.index(version) + 1])
            found[name].append(values.astype(np.float64).ravel())
    joined = {path: np.concatenate(values) for path, values in sorted(found.items())}
    return {p: [float(v.mean()), float(np.sqrt((v**2).mean()))] for p, v in joined.items()}


def condition(prediction: np.ndarray[Any, Any], target: np.ndarray[Any, Any]) -> float:
    """How much rounding an explained variance amplifies.

    Returns:
        The largest change of 1 - var(target - prediction) / var(target) where each prediction and
        each target changes by a small share of itself, divided by that share.
    """
    residual = target - prediction
    variance, unexplained = target.var(), residual.var()
    if variance == 0:
        return 0.0
    by_residual = (residual - residual.mean()) / variance
    by_target = unexplained / variance**2 * (target - target.mean())
    change = np.abs(by_residual * prediction) + np.abs((by_residual - by_target) * target)
    return float(2 * change.mean())


@contextmanager
def noted_conditions() -> Iterator[dict[float, float]]:
    """Notes the `condition` of every explained variance that PPO computes, by its value."""
    from coach_rl.agents import ppo_agent

    computed, noted = ppo_agent.explained_variance, {}

    def noting(prediction: Any, target: Any) -> Any:
        value = computed(prediction, target)
        noted[float(value)] = condition(prediction.double().numpy(), target.double().numpy())
        return value

    ppo_agent.explained_variance = noting
    try:
        yield noted
    finally:
        ppo_agent.explained_variance = computed


def with_conditions(found: dict[str, Any], noted: dict[float, float]) -> dict[str, Any]:
    """The figures of a run with what `noted_conditions` noted meanwhile."""
    log = [
        each | {"condition": float(f"{noted[each['scalars'][EXPLAINED]]:.3g}")}
        if EXPLAINED in each["scalars"]
        else each
        for each in found["log"]
    ]
    return found | {"log": log}


def differences(found: dict[str, Any], recorded: dict[str, Any], tolerance: float) -> list[str]:
    """Where figures of a run differ from recorded ones by more than another processor's rounding.

    Each figure may differ by what the tolerance does to what it is made of:

    - the tolerance, relative to itself, as a rule; for those in `CANCELLING` some more;
    - an explained variance: what it does if predictions and returns differ by the tolerance;
    - a KL divergence: what it does if log-probabilities differ by rounding, besides;
    - a network's mean parameter: the tolerance of their root mean square, since they cancel.

    Args:
        found: The figures of a run.
        recorded: Those that it had.
        tolerance: The run's.
    """
    if len(found["log"]) != len(recorded["log"]):
        return [f"/log: {len(found['log'])} entries instead of {len(recorded['log'])}"]
    moved = []
    for number, (one, other) in enumerate(zip(found["log"], recorded["log"], strict=True)):
        allowed = {
            name: tolerance * abs(value) + CANCELLING.get(name, 0.0)
            for name, value in other["scalars"].items()
        }
        if DIVERGENCE in allowed:
            size = math.sqrt(2 * abs(other["scalars"][DIVERGENCE]))
            allowed[DIVERGENCE] += LOG_PROBABILITY * size + FLOAT32
        if "condition" in other:
            allowed[EXPLAINED] = tolerance * other["condition"]
        moved += [
            f"/log/{number}/{name}: {one[name]} instead of {other[name]}"
            for name in other.keys() - {"scalars", "condition"}
            if one[name] != other[name]
        ]
        moved += _beyond(one["scalars"], other["scalars"], allowed, f"/log/{number}/scalars")
    means, sizes = (
        tuple(
            {name: each[at] for name, each in run["networks"].items()} for run in (found, recorded)
        )
        for at in (0, 1)
    )
    allowed = {name: tolerance * size for name, size in sizes[1].items()}
    moved += _beyond(*means, allowed, "/networks/mean")
    return moved + _beyond(*sizes, allowed, "/networks/root_mean_square")


def _beyond(
    found: dict[str, float], recorded: dict[str, float], allowed: dict[str, float], path: str
) -> list[str]:
    """Which values differ by more than is allowed, all by name."""
    if set(found) != set(recorded):
        return [f"{path}: other names: {sorted(set(found) ^ set(recorded))}"]
    return [
        f"{path}/{name}: {found[name]} instead of {value}"
        for name, value in recorded.items()
        if not math.isclose(found[name], value, rel_tol=0.0, abs_tol=allowed[name])
    ]


def is_installed(run: GoldenRun) -> bool:
    """Whether what a run needs beside the plain installation is there: package and library."""
    has_package = run.package is None or importlib.util.find_spec(run.package) is not None
    return has_package and (run.library is None or find_library(run.library) is not None)


def rounded(value: Any) -> Any:
    """The figures with nine digits, which is more than is compared."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def record(names: list[str]) -> None:
    """Make the named runs again and keep their figures; without names all."""
    kept = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    for name in names or RUNS:
        with tempfile.TemporaryDirectory() as folder, noted_conditions() as noted:
            kept[name] = rounded(with_conditions(figures(RUNS[name], Path(folder)), noted))
    write_figures(RECORDED, kept)


def write_figures(path: Path, kept: dict[str, Any]) -> None:
    """Write figures by the names of runs, a line each, in the order of `RUNS`."""
    lines = [f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in RUNS if name in kept]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="runs to record again; default: all")
    record(parser.parse_args().names)
