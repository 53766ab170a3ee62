"""The replay memory of a run's checkpoint as a data set in the environment's own spaces."""

from pathlib import Path
from typing import Unpack

import numpy as np

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.levels import LevelDescription
from coach_rl.core.records import Array
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.data.minari_data import episodes_of
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.memories.batches import (
    ACTION_PARTS,
    ACTIONS,
    DURATIONS,
    FOLLOWS,
    INFOS,
    MASK,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    REWARDS,
    TERMINATED,
    TRUNCATED,
    extra,
    under,
)
from coach_rl.sessions.opening import Opening, OpeningArguments, open_run

AGENT = "agent"
"""Name under which the memory shows actions."""


def memory_of(
    run: Path, **arguments: Unpack[OpeningArguments]
) -> tuple[Recorded, EnvironmentSpaces]:
    """The transitions in the memory of a run's lowest agent, and their spaces.

    Args:
        run: The run, or one of its checkpoints.
        **arguments: Those of `Opening`.

    Raises:
        ConfigurationError: The agent has no replay memory, or the checkpoint leaves it out, or it
            holds other observations, rewards or ends than the environment's: those of filters,
            bonuses, goals and levels above.
    """
    opened = open_run(Opening.of(run, arguments))
    checkpoint = opened.require_checkpoint("write the memory of")
    if not checkpoint.has_memories:
        raise ConfigurationError(
            f"{checkpoint.path} was saved without replay memories; record episodes instead: "
            "`coach evaluate RUN --record FILE.npz`"
        )
    with opened.graph_manager as graph_manager:
        graph_manager.create_graph(opened.runtime)
        opened.restore(graph_manager)
        levels = graph_manager.graph.training.levels
        level = levels[-1]
        agent = level.agent
        known = level.environment.spaces
        if not isinstance(agent, OffPolicyAgent):
            raise ConfigurationError(
                f"the agent of level '{level.params.name}' of {run} has no replay memory; record "
                "episodes instead: `coach evaluate RUN --record FILE.npz`"
            )
        _check_own(agent, level.params, run, is_alone=len(levels) == 1)
        _check_unfiltered(agent, run, known)
        shown = agent.memory.trajectories(AGENT)
        columns = {path: shown[path] for path in (REWARDS, TERMINATED, TRUNCATED, DURATIONS)}
        columns |= {path: each for path, each in shown.items() if path.startswith(extra(INFOS))}
        for prefix in (OBSERVATIONS, NEXT_OBSERVATIONS):
            for key, space in known.observation.items():
                columns[f"{prefix}{key}"] = shown[f"{prefix}{key}"].astype(space.dtype, copy=False)
        recorded = Recorded.of(_episodes(columns | _actions(agent, shown), shown))
    return recorded, known


def _check_own(
    agent: OffPolicyAgent, level: LevelDescription, run: Path, *, is_alone: bool
) -> None:
    """Raise `ConfigurationError` where rewards or ends are not the environment's alone."""
    what = ""
    if not is_alone or level.goal_space is not None or level.horizon is not None:
        what = f"rewards and ends of level '{level.name}', with its goals and sub-episodes"
    elif agent.stages.adds_to_reward:
        what = "rewards with the agent's bonus"
    if what:
        raise ConfigurationError(
            f"the memory of {run} holds {what}, not those of the environment; record episodes "
            "instead: `coach evaluate RUN --record FILE.npz`, or `coach train ... --record`"
        )


def _check_unfiltered(agent: OffPolicyAgent, run: Path, known: EnvironmentSpaces) -> None:
    """Raise `ConfigurationError` where the memory does not hold what the environment showed."""
    changed = sorted(agent.input_filter.changed_keys & known.observation.spaces.keys())
    if changed or agent.input_filter.changes_reward:
        what = ", ".join([*changed, *["rewards"] * agent.input_filter.changes_reward])
        raise ConfigurationError(
            f"the memory of {run} holds what the agent's InputFilter has made ({what}), not what "
            "the environment showed; record episodes instead: `coach evaluate RUN --record "
            "FILE.npz`"
        )


def _actions(agent: OffPolicyAgent, shown: dict[str, Array]) -> dict[str, Array]:
    """The actions as the environment was sent them, [N, T, ...] each."""
    path = f"/agents/{AGENT}{ACTIONS}"
    own = shown[path] if path in shown else dict(under(f"{path}/", shown))
    count = shown[MASK].size

    def flat(array: Array) -> Array:
        return array.reshape(count, *array.shape[2:])

    chosen = {key: flat(each) for key, each in own.items()} if isinstance(own, dict) else flat(own)
    sent = agent.output_filter.apply(chosen)
    parts = (
        {f"{ACTION_PARTS}{key}": each for key, each in sent.items()}
        if isinstance(sent, dict)
        else {ACTIONS: sent}
    )
    return {path: each.reshape(*shown[MASK].shape, *each.shape[1:]) for path, each in parts.items()}


def _episodes(columns: dict[str, Array], shown: dict[str, Array]) -> list[dict[str, Array]]:
    """The episodes in all rows; one that is cut off counts as truncated."""
    ends = shown[TERMINATED] | shown[TRUNCATED]
    if FOLLOWS in shown:
        ends[:, :-1] |= ~shown[FOLLOWS][:, 1:]
    found = []
    for row, begin, end in episodes_of(shown[MASK], ends):
        episode = {path: column[row, begin:end] for path, column in columns.items()}
        truncated = episode[TRUNCATED].copy()
        truncated[-1] |= not episode[TERMINATED][-1]
        found.append(
            {**episode, TRUNCATED: truncated, DURATIONS: episode[DURATIONS].astype(np.int64)}
        )
    return found
