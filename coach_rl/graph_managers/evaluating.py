"""Playing episodes of an evaluation: greedily, and without changing anything.

scores = play(graph.evaluation, EnvironmentEpisodes(10), seed=1)
print(scores.metrics()["evaluation/reward_mean"], scores.arrays()["episode/reward"])
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from coach_rl.core.activity import OnActivity, ignore_activity
from coach_rl.core.errors import EnvironmentFault
from coach_rl.core.records import Array, EnvResponse, Fault, IntArray
from coach_rl.core.seeding import generator, integer_seed
from coach_rl.core.steps import EnvironmentEpisodes, require_unit
from coach_rl.graph_managers.episode_recorder import EvaluationWatcher
from coach_rl.graph_managers.episode_tracker import EpisodeTracker, FinishedEpisodes
from coach_rl.graph_managers.stack import Stack
from coach_rl.telemetry.statistics import bootstrap_interval, interquartile_mean

TELL_EVERY = 1_000
"""Steps after which an evaluation says again how far it is."""


class EvaluationStopped(Exception):
    """An evaluation was asked to stop before all of its episodes were played."""


def never() -> bool:
    """Default stop condition: never stop."""
    return False


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The scores of an evaluation's episodes."""

    episodes: FinishedEpisodes
    """All of them, in the order in which they ended."""
    reports_success: bool
    """True if the environment reported success in any of them."""
    levels: Mapping[str, Mapping[str, float]]
    """Statistics of the sub-episodes of each level of a hierarchy; see `level_metrics`."""
    faults: Mapping[str, int]
    """Number of the simulators' failures, by cause."""
    cut_off: int = 0
    """Number of episodes that reached the step limit."""
    signals: Mapping[str, float] = field(default_factory=dict)
    """Statistics of the signals, as `evaluation_signals/<signal>/<statistic>`."""

    def metrics(self, *, with_success: bool = False) -> dict[str, float]:
        """The metrics of the evaluation.

        Args:
            with_success: Whether success is known to be reported, so that none means failure.
        """
        reward = self.episodes.reward
        low, high = bootstrap_interval(reward, interquartile_mean, rng=generator(0, "bootstrap"))
        metrics = {
            "evaluation/episodes": float(len(reward)),
            "evaluation/reward_mean": float(reward.mean()),
            "evaluation/reward_std": float(reward.std()),
            "evaluation/reward_iqm": float(interquartile_mean(reward)),
            "evaluation/reward_iqm_low": low,
            "evaluation/reward_iqm_high": high,
            "evaluation/length_mean": float(self.episodes.length.mean()),
        }
        if with_success or self.reports_success:
            metrics["evaluation/success_rate"] = float(self.episodes.success.mean())
            metrics["evaluation/success_any_rate"] = float(self.episodes.success_any.mean())
        if self.cut_off:
            metrics["evaluation/episodes_cut_off"] = float(self.cut_off)
        for name, own in self.episodes.agents.items():
            metrics[f"evaluation/reward_mean/{name}"] = float(own.mean())
        if self.faults:
            metrics["evaluation/faults"] = float(sum(self.faults.values()))
        return {**metrics, **self.signals}

    def arrays(self, *, with_success: bool = False) -> dict[str, Array]:
        """The figures of each episode, [E] each."""
        episodes = self.episodes
        arrays: dict[str, Array] = {
            "episode/reward": episodes.reward,
            "episode/length": episodes.length,
        }
        if with_success or self.reports_success:
            arrays["episode/success"] = episodes.success
            arrays["episode/success_any"] = episodes.success_any
        return arrays | {f"episode/reward/{name}": own for name, own in episodes.agents.items()}


def play(
    stack: Stack,
    episodes: EnvironmentEpisodes,
    *,
    seed: int,
    step_limit: int | None = None,
    watcher: EvaluationWatcher | None = None,
    is_stopped: Callable[[], bool] = never,
    on_activity: OnActivity = ignore_activity,
) -> Scores:
    """Play episodes in an evaluation's own stack.

    Each row plays its fixed share of the episodes, so short episodes don't crowd out long ones. An
    episode that a failure of the simulator cut short is not counted; another one is played.

    Args:
        stack: Where; it begins anew first.
        episodes: How many.
        seed: Seed of their starts.
        step_limit: Steps after which an episode is cut off and counts as truncated; None: never.
        watcher: What looks at them; None for nothing.
        is_stopped: Asked at every step whether to give up.
        on_activity: Called with how many episodes are over.

    Raises:
        EvaluationStopped: `is_stopped` said so.
        EnvironmentFault: More episodes were cut short than there are to play.
    """
    require_unit(episodes, EnvironmentEpisodes, "episodes")
    share, rest = divmod(episodes.count, stack.num_envs)
    due = np.full(stack.num_envs, share)  # [N] episodes that each row has still to play
    due[:rest] += 1
    stack.begin_anew(seed)
    if watcher is not None:
        watcher.begin(stack)
    tracker, cut_short = EpisodeTracker(stack.num_envs), 0
    played: list[FinishedEpisodes] = []
    stuck = np.zeros(stack.num_envs, np.bool_)  # [N] in an episode that was cut off
    ticks = cut_off = 0
    stack.begin_counting(due > 0)
    on_activity(_activity(watcher, 0, episodes))
    while due.any():
        if is_stopped():
            raise EvaluationStopped
        answer = stack.tick()
        if answer.faults:
            cut_short += int(np.count_nonzero(answer.lost))
            _require_whole_episodes(answer.faults, cut_short, episodes)
        if watcher is not None:
            watcher.note_tick(answer)
        ended = answer.terminated | answer.truncated
        if step_limit is not None:
            answer = _limited(answer, tracker.lengths, step_limit)
        finished = tracker.note(answer)
        if finished is not None:
            counted = (due[finished.rows] > 0) & ~stuck[finished.rows]
            is_over = (answer.terminated | answer.truncated) & ~answer.lost
            cut = (answer.truncated & ~ended)[is_over]
            cut_off += int(np.count_nonzero(counted & cut))
            stuck[finished.rows] = cut
            due[finished.rows[counted]] -= 1
            stack.count_only(due > 0)
            played.append(_selected(finished, counted))
            on_activity(_activity(watcher, episodes.count - due.sum(), episodes))
        if due.any() and stuck[due > 0].all():  # nobody left who could play the rest
            seed, watcher = integer_seed(seed, "after the step limit"), None
            stack.reset(seed)
            tracker.restart()
            stuck[:] = False
        ticks += 1
        if ticks % TELL_EVERY == 0:
            doing = _activity(watcher, episodes.count - due.sum(), episodes)
            on_activity(f"{doing}, step {ticks:,}")
    on_activity("")
    return Scores(
        episodes=_joined(played),
        reports_success=tracker.reports_success,
        levels=level_metrics(stack, "evaluation_level"),
        faults=tracker.faults,
        cut_off=cut_off,
        signals=stack.signals.drain("evaluation_signals"),
    )


def _activity(watcher: EvaluationWatcher | None, over: int, episodes: EnvironmentEpisodes) -> str:
    """The activity of an evaluation, in words, and how many episodes are over."""
    is_drawing = watcher is not None and watcher.is_drawing
    doing = "evaluating and drawing a film" if is_drawing else "evaluating"
    return f"{doing}, {over} of {episodes.count} episodes"


def level_metrics(
    stack: Stack, room: str, learns: Mapping[str, float] | None = None
) -> dict[str, dict[str, float]]:
    """Return the figures of each level since the last call, by the level's name.

    Levels with nothing to say are left out, and so is a single level whose sub-episodes are the
    episodes.

    Args:
        stack: Whose levels.
        room: The beginning of the figures' names.
        learns: Whether each level learns now, by name; None where all always do.
    """
    found = {name: {f"{room}/learns": value} for name, value in (learns or {}).items()}
    if all(level.params.goal_space is None for level in stack.levels):
        return found
    for level in stack.levels:
        own = {f"{room}/{name}": value for name, value in level.drain().items()}
        if own:
            found[level.name] = own | found.get(level.name, {})
    return found


def _require_whole_episodes(
    faults: Sequence[Fault], cut_short: int, episodes: EnvironmentEpisodes
) -> None:
    """Raise `EnvironmentFault` when failures have cut short more episodes than are to be played."""
    if cut_short > episodes.count:
        raise EnvironmentFault(
            f"the environment failed in {cut_short} episodes of an evaluation of {episodes.count}, "
            f"the last time: {faults[-1].message}"
        )


def _limited(answer: EnvResponse, lengths: IntArray, step_limit: int) -> EnvResponse:
    """The answer, truncated where an episode of `lengths` [N] steps before it reaches the limit."""
    reached = lengths[answer.rows] + answer.duration >= step_limit
    if not reached.any():
        return answer
    return replace(answer, truncated=answer.truncated | (reached & ~answer.terminated))


def _selected(finished: FinishedEpisodes, mask: Array) -> FinishedEpisodes:
    """The episodes where `mask` [E] is true."""
    parts = {each.name: getattr(finished, each.name) for each in fields(finished)}
    agents = {name: reward[mask] for name, reward in parts.pop("agents").items()}
    return FinishedEpisodes(**{name: part[mask] for name, part in parts.items()}, agents=agents)


def _joined(played: list[FinishedEpisodes]) -> FinishedEpisodes:
    """The episodes of several ticks, one after the other."""
    names = [each.name for each in fields(FinishedEpisodes) if each.name != "agents"]
    return FinishedEpisodes(
        **{name: np.concatenate([getattr(part, name) for part in played]) for name in names},
        agents={
            name: np.concatenate([part.agents[name] for part in played])
            for name in played[0].agents
        },
    )
