"""Short runs of presets, and a comparison of loaded agents with evaluations."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np

import coach_rl
from coach_rl.core.records import Observation
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.runs.folder import RunFolder
from coach_rl.sessions.opening import rebuild
from coach_rl.sessions.session import run_experiment
from tests.small_runs import QUIET, preset, state_of

EPISODES = 4
SMALL = {
    "schedule.evaluation_interval": None,
    "schedule.progress_interval": EnvironmentSteps(1),
    "schedule.heatup": EnvironmentSteps(0),
    "schedule.evaluation_episodes": EnvironmentEpisodes(EPISODES),
}
"""Changes by which a run makes no evaluation."""


def short_run(name: str, changes: Mapping[str, object], root: Path) -> Path:
    """The folder of 600 steps of a preset, with changes that let it learn at once."""
    graph_manager = preset(name).configure(
        {**SMALL, "schedule.training": EnvironmentSteps(600), **changes}
    )
    result = run_experiment(
        graph_manager,
        Runtime(seed=1, device="cpu", threads=1),
        name=name.rpartition(":")[2],
        root=root,
        settings=QUIET,
    )
    return result.folder.path


def ends_of_equal_episodes(run: Path, ticks: int = 520) -> int:
    """The number of episodes that end while a loaded agent acts as an evaluation does.

    Fails at the first tick in which an observation differs in any bit.
    """
    graph_manager, task, _ = rebuild(RunFolder(run), learns=False)
    with graph_manager:
        graph_manager.create_graph(task, training=False)
        graph_manager.evaluations.load_agents(state_of(run))
        evaluation = graph_manager.graph.evaluation
        evaluation.reset(5)
        parameters = graph_manager.parameters
        environment = parameters.evaluation_environment or parameters.environment
        agent, ends = coach_rl.load(run), 0
        with closing(environment.build(num_envs=EPISODES)) as outside:
            heard = outside.reset(5)
            for _ in range(ticks):
                outside.send(agent.act(heard.first_observation))
                heard, expected = outside.recv(), evaluation.tick()
                assert same(expected.observation, heard.observation)
                ended = heard.terminated | heard.truncated
                agent.reset(ended)
                ends += int(ended.sum())
    return ends


def same(one: Observation, other: Observation) -> bool:
    """True if all arrays are equal."""
    return all(np.array_equal(one[key], other[key]) for key in one)


def observation_of(agent: coach_rl.TrainedAgent, rows: tuple[int, ...] = ()) -> Observation:
    """Observations that an agent can act on."""
    rng = np.random.default_rng(0)
    return {
        key: rng.uniform(-0.1, 0.1, (*rows, *part.shape)).astype(part.dtype)
        for key, part in agent.spaces.observation.spaces.items()
    }


def check_sampled_actions(agent: coach_rl.TrainedAgent) -> None:
    """Sampled actions repeat with the seed, and are others than greedy ones."""
    seen = observation_of(agent, (64,))

    def drawn(**how: int) -> object:
        agent.reset(**how)
        return np.concatenate([agent.act(seen, greedy=False) for _ in range(9)])

    first, following, again = drawn(seed=3), drawn(), drawn(seed=3)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, following)
    agent.reset()
    greedy = [agent.act(seen) for _ in range(9)]
    assert not np.array_equal(first, np.concatenate(greedy))
