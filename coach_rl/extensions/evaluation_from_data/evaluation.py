"""Judging a run's policy from a data set, without acting.

evaluation, file = evaluate_from_data("experiments/CartPole_PPO/RUN", "./cartpole.npz")
evaluation.estimates["doubly_robust"].low
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.ppo_agent import PPOAgent
from coach_rl.configuration.file_writing import make_folder, unused
from coach_rl.configuration.strict_json import plain_json, write_json
from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.errors import ConfigurationError, require, require_no_problems, warn
from coach_rl.core.levels import received_by
from coach_rl.core.records import FloatArray, IntArray
from coach_rl.core.seeding import generator, integer_seed
from coach_rl.extensions.data.action_probabilities import (
    ACTION_LOG_PROB,
    ONE_OF_A_CONTINUUM,
    has_numbers,
)
from coach_rl.extensions.data.files import read_data
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.extensions.evaluation_from_data.doubly_robust import (
    direct_method,
    doubly_robust,
    weighted_doubly_robust,
)
from coach_rl.extensions.evaluation_from_data.estimates import (
    CONFIDENCE,
    RatioSum,
    ValueEstimate,
    resample_counts,
)
from coach_rl.extensions.evaluation_from_data.fitted_q import (
    UPDATES,
    ModelName,
    fitted_linear,
    fitted_network,
)
from coach_rl.extensions.evaluation_from_data.importance_sampling import (
    per_decision_sampling,
    trajectory_sampling,
    weighted_per_decision_sampling,
    weighted_trajectory_sampling,
)
from coach_rl.extensions.evaluation_from_data.judged_policy import (
    JudgedData,
    cut_off_episodes,
    judged,
)
from coach_rl.extensions.evaluation_from_data.logged_episodes import LoggedEpisodes
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.levels.level_checks import agent_spaces
from coach_rl.runs.manifest import now
from coach_rl.sessions.evaluation import trained_graph
from coach_rl.sessions.opening import Opening, OpeningArguments

ESTIMATORS: Mapping[str, Callable[[LoggedEpisodes], RatioSum]] = {
    "is": trajectory_sampling,
    "wis": weighted_trajectory_sampling,
    "pdis": per_decision_sampling,
    "wpdis": weighted_per_decision_sampling,
    "dm": direct_method,
    "dr": doubly_robust,
    "wdr": weighted_doubly_robust,
}
"""The estimators by name."""
WITH_MODEL = frozenset({"dm", "dr", "wdr"})
"""Those that need a model of the policy's values."""
WITHOUT_WEIGHTS = frozenset({"dm"})
"""Those that need no probabilities."""


@dataclass(frozen=True, kw_only=True)
class EvaluationFromData:
    """A policy's discounted return, as a data set knows it."""

    data: str
    """The data set."""
    checkpoint: str
    """Name of the checkpoint that was judged."""
    sampling: bool
    """True: the policy as it explores; False: as it acts greedily."""
    discount: float
    """Gamma, per decision."""
    episodes: int
    """Episodes of the data."""
    transitions: int
    """Their decisions."""
    truncated: int
    """Episodes that were cut off: estimators with a model continue behind them."""
    behaviour: float
    """Mean discounted return of the data themselves."""
    estimates: Mapping[str, ValueEstimate]
    """Estimates by the names of estimators."""


def evaluate_from_data(
    run: str | Path | Opening,
    data: str | Path,
    *,
    estimators: Sequence[str] = (),
    discount: float | None = None,
    sampling: bool = False,
    seed: int | None = None,
    model: ModelName = "network",
    model_updates: int = UPDATES,
    **opening: Unpack[OpeningArguments],
) -> tuple[EvaluationFromData, Path | None]:
    """Judge a run's policy from a data set, and change nothing in the run.

    Models of the policy's values are cross-fitted: the values of an episode are those of a model
    of the other half of the episodes, so that they know nothing of its own rewards.

    Args:
        run: A run's folder, one of its checkpoints, or `RUN@STEP`.
        data: The data set, as `read_data` reads it.
        estimators: Names in `ESTIMATORS`; empty: all.
        discount: Gamma; None: the agent's.
        sampling: Whether the policy is judged as it explores, instead of as it acts greedily.
        seed: Of draws, models and intervals; None: the run's.
        model: The model of estimators that need one.
        model_updates: Gradient updates of a network.
        **opening: `device`, `threads`, `last_good` and `trust` of `Opening`.

    Returns:
        The evaluation, and the file in the run's folder that holds it; None where the folder
        cannot be written to, with a `CoachWarning`.

    Raises:
        ConfigurationError: The policy cannot be judged so, or the data have not what is needed.
        SpaceError: The data have other spaces.
        CheckpointError: A file of the run is damaged, or it has no checkpoint yet.
    """
    names = tuple(estimators) or tuple(ESTIMATORS)
    for name in names:
        require(
            name in ESTIMATORS,
            f"there is no estimator '{name}'; allowed: {', '.join(ESTIMATORS)}",
        )
    source = str(data)
    with trained_graph(Opening.of(run, opening), num_envs=1) as (graph_manager, opened):
        seed = opened.runtime.seed if seed is None else seed
        agent, recorded = _agent_and_data(graph_manager, source)
        discount = _discount_of(agent) if discount is None else discount
        _check_data(source, recorded, agent, names, discount)
        graph = graph_manager.graph
        graph.sample_in_evaluations(sampling)
        seen = judged(
            agent,
            recorded,
            graph.evaluation.clock,
            seed=integer_seed(seed, "policy from data"),
            for_model=bool(WITH_MODEL & {*names}),
        )
        _check_policy(seen, names)
        episodes = _logged(
            seen, names, discount=discount, seed=seed, model=model, updates=model_updates
        )
    counts = resample_counts(episodes.count, generator(seed, "bootstrap over episodes"))
    evaluation = EvaluationFromData(
        data=source,
        checkpoint=opened.require_checkpoint("evaluate").path.name,
        sampling=sampling,
        discount=discount,
        episodes=episodes.count,
        transitions=len(recorded),
        truncated=cut_off_episodes(recorded),
        behaviour=float((episodes.rewards @ episodes.discounts).mean()),
        estimates=estimates(names, episodes, counts),
    )
    document = {"created": now(), "seed": seed, "model": model, **asdict(evaluation)}
    folder = opened.folder.path / "evaluations_from_data"
    try:
        make_folder(folder)
        file = unused(folder / f"{evaluation.checkpoint}.json")
        write_json(file, plain_json(document))
    except OSError as error:
        warn(f"the evaluation cannot be written to {opened.folder.path}: {error.strerror}")
        return evaluation, None
    return evaluation, file


def estimate(name: str, episodes: LoggedEpisodes, counts: Iterable[FloatArray]) -> ValueEstimate:
    """An estimate with its percentile interval.

    Args:
        name: The estimator's, in `ESTIMATORS`.
        episodes: The data.
        counts: What `resample_counts` draws for them, in blocks [B, E].
    """
    return estimates((name,), episodes, counts)[name]


def estimates(
    names: Sequence[str], episodes: LoggedEpisodes, counts: Iterable[FloatArray]
) -> dict[str, ValueEstimate]:
    """Estimates by the names of estimators, whose intervals are of the same resamples."""
    found = {name: ESTIMATORS[name](episodes) for name in names}
    blocks = [{name: each.resampled(block) for name, each in found.items()} for block in counts]
    tail = (1 - CONFIDENCE) / 2
    made = {}
    for name, each in found.items():
        resampled = np.concatenate([block[name] for block in blocks])
        low, high = np.quantile(resampled, [tail, 1 - tail])
        is_weighted = name not in WITHOUT_WEIGHTS
        made[name] = ValueEstimate(
            estimator=name,
            value=each.value(),
            low=float(low),
            high=float(high),
            effective_samples=episodes.effective_samples if is_weighted else float(episodes.count),
        )
    return made


def _agent_and_data(
    graph_manager: GraphManager, source: str
) -> tuple[FilteredAgent[Any], Recorded]:
    """The agent that is judged, and the data in the spaces of its level."""
    levels = graph_manager.graph.evaluation.levels
    if len(levels) > 1:
        raise ConfigurationError(
            f"a policy of one level can be judged from data, and there are {len(levels)}; evaluate "
            "a hierarchy in its environment, without --from"
        )
    (level,) = levels
    agent = level.agent
    if not isinstance(agent, FilteredAgent):
        raise ConfigurationError(
            f"the probabilities of the actions of level '{level.name}' ({type(agent).__name__}) "
            "are not known; evaluate it in its environment, without --from"
        )
    seen = agent_spaces(level.environment.spaces, received_by(level.params))
    recorded = read_data(source, observation_space=seen.observation, action_space=seen.action)
    if not len(recorded):
        raise ConfigurationError(f"the data set '{source}' has no transitions; choose another one")
    return agent, recorded


def _discount_of(agent: FilteredAgent[Any]) -> float:
    match agent:
        case OffPolicyAgent() if hasattr(agent.params, "algorithm"):  # one that clones has none
            return agent.discount
        case PPOAgent():
            return agent.params.algorithm.discount
    raise ConfigurationError(
        f"agent '{agent.name}' has no discount; give one with --value_discount"
    )


def _check_data(
    source: str,
    recorded: Recorded,
    agent: FilteredAgent[Any],
    names: Sequence[str],
    discount: float,
) -> None:
    """Raise an error with all that the estimators need and the data don't have."""
    require(0 < discount <= 1, f"discount must lie in (0, 1], got {discount}")
    require_no_problems(_problems(source, recorded, agent, names, discount))


def _problems(
    source: str,
    recorded: Recorded,
    agent: FilteredAgent[Any],
    names: Sequence[str],
    discount: float,
) -> Iterator[ConfigurationError]:
    models = [name for name in names if name in WITH_MODEL]
    truncated = cut_off_episodes(recorded)
    if discount == 1 and models and truncated:
        yield ConfigurationError(
            f"{truncated:,} episodes of '{source}' were cut off, behind which {', '.join(models)} "
            "have no bound with a discount of 1; give a lower --value_discount, or "
            "--estimators without them"
        )
    weighted = [name for name in names if name not in WITHOUT_WEIGHTS]
    if not weighted:
        return
    log_prob = recorded.columns.get(ACTION_LOG_PROB)
    weigh = f"and {', '.join(weighted)} weigh episodes by them"
    remedy = (
        f"{weigh}; record data with `coach evaluate RUN --sampling --record FILE`, by an agent "
        "whose probabilities are known, or give --estimators dm"
    )
    if log_prob is None and has_numbers(agent.acts_in) and choice_sizes(agent.acts_in):
        yield ConfigurationError(
            f"the data set '{source}' has no probabilities of its actions (action_log_prob), as "
            f"mixed actions never have, {weigh}; give --estimators dm"
        )
    elif log_prob is None:
        yield ConfigurationError(
            f"the data set '{source}' has no probabilities of its actions (action_log_prob), "
            f"{remedy}"
        )
    elif not log_prob.any():
        yield ConfigurationError(
            f"the data set '{source}' was made by a deterministic policy, all probabilities of its "
            f"actions are 1, {remedy}"
        )


def _check_policy(seen: JudgedData, names: Sequence[str]) -> None:
    """Raise `ConfigurationError` where a policy without probabilities is to be weighed."""
    weighted = [name for name in names if name not in WITHOUT_WEIGHTS]
    if weighted and seen.obstacle:
        is_greedy_in_box = seen.obstacle == ONE_OF_A_CONTINUUM
        raise ConfigurationError(
            f"{seen.obstacle}, and {', '.join(weighted)} weigh episodes by probabilities; give "
            f"{'--sampling, or ' if is_greedy_in_box else ''}--estimators dm"
        )


def _logged(
    seen: JudgedData,
    names: Sequence[str],
    *,
    discount: float,
    seed: int,
    model: ModelName,
    updates: int,
) -> LoggedEpisodes:
    """The episodes as estimators read them, with the values of models where one needs them."""
    behaviour = seen.recorded.columns.get(ACTION_LOG_PROB)
    log_ratios: FloatArray = np.zeros(len(seen.recorded))
    if not seen.obstacle and behaviour is not None:
        log_ratios = seen.log_prob - behaviour
    values = None
    action_values = None
    if WITH_MODEL & {*names}:
        values, action_values = _cross_fitted(
            seen, discount=discount, seed=seed, model=model, updates=updates
        )
    return LoggedEpisodes(
        rewards=seen.padded(seen.rewards),
        log_ratios=seen.padded(log_ratios),
        discount=discount,
        action_values=action_values,
        values=values,
    )


def _cross_fitted(
    seen: JudgedData, *, discount: float, seed: int, model: ModelName, updates: int
) -> tuple[FloatArray, FloatArray]:
    """Values of the policy [E, T + 1] and of the data's actions [E, T], by the other half's model.

    Raises:
        ConfigurationError: There is one episode alone.
    """
    recorded = seen.recorded
    count = len(recorded.begins)
    if count < 2:
        raise ConfigurationError(
            "a model is fitted to one half of the episodes for the other, and there is one; give "
            "data of several episodes"
        )
    half: IntArray = generator(seed, "half of the episodes").permutation(count) % 2
    is_cut_off = seen.continues[recorded.begins + recorded.lengths - 1]
    of_policy = np.zeros(len(recorded) + count)
    of_data = np.zeros(len(recorded))
    for own in range(2):
        among = np.flatnonzero(half[seen.episode] != own)
        fitted = (
            fitted_linear(seen, among, discount=discount)
            if model == "linear"
            else fitted_network(
                seen,
                among,
                discount=discount,
                seed=integer_seed(seed, "half", str(own)),
                updates=updates,
            )
        )
        inside = np.flatnonzero(half[seen.episode] == own)
        behind = len(recorded) + np.flatnonzero((half == own) & is_cut_off)
        of_policy[inside], of_data[inside] = fitted(inside)
        of_policy[behind] = fitted(behind)[0]
    values = np.concatenate([seen.padded(of_policy[: len(recorded)]), np.zeros((count, 1))], axis=1)
    values[np.arange(count), recorded.lengths] = of_policy[len(recorded) :]
    return values, seen.padded(of_data)
