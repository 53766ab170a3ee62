"""The promises of every agent, one check per promise.

    spaces = EnvironmentSpaces(observation=Dict(...), action=Box(...))
    check_agent(MyAgentParameters(...), spaces)

runs them all and raises `ContractViolation` at the first that fails. With pytest, each check is a
test of its own:

    class TestMine(AgentContract):
        def trial(self):
            return AgentTrial.of(MyAgentParameters(...), spaces)

The agent acts in a world of random answers, so give it settings with which it learns within a few
hundred decisions. "Equal" means equal to the last bit.
"""

import copy
import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.spaces import Dict

from coach_rl.core.agents import AgentContext, PacedAgent
from coach_rl.core.clock import Phase
from coach_rl.core.discrete_actions import forbidden
from coach_rl.core.errors import ActionError, CoachWarning, ConfigurationError, SpaceError
from coach_rl.core.goals import is_standard
from coach_rl.core.parts import description_of, timed_calls, walk
from coach_rl.core.records import take
from coach_rl.core.runtime import Runtime
from coach_rl.core.spaces import EnvironmentSpaces, check_actions
from coach_rl.core.state import Appended
from coach_rl.extensions.testing.agent_trial import (
    AFTER,
    ROWS,
    AgentTrial,
    Check,
    frozen_copies,
    parts_of,
    same_actions,
)
from coach_rl.extensions.testing.environment_contract import Finding, add_tests, tried
from coach_rl.extensions.testing.goal_contract import GOAL_CHECKS
from coach_rl.extensions.testing.trial import ContractViolation, expect, expect_same_state, refused

GENERATORS = (
    "draw from the rows' RowNoise and from generators that are made of context.seed, never from "
    "numpy's or torch's global ones"
)
SAVED_NAMES = "list every attribute that changes in SAVED"


def actions_have_the_promised_form(trial: AgentTrial) -> None:
    """Actions have one row for each observation, in the dtype and bounds of the space."""
    play = trial.play()
    space = trial.context.spaces.action
    for phase in (Phase.HEATUP, Phase.TRAIN, Phase.TEST):
        action = play.tick(phase)
        for key, values in parts_of(action).items():
            expect(
                isinstance(values, np.ndarray) and len(values) == ROWS,
                f"act() returned {_shape(values)} for {ROWS} rows in {phase.name}{_of(key)}; "
                "return a numpy array [R, ...]",
            )
            wanted = getattr(space[key] if isinstance(space, Dict) else space, "dtype", None)
            expect(
                values.dtype == wanted,
                f"act() returned {values.dtype} in {phase.name}{_of(key)}; return the space's "
                f"dtype, {wanted}",
            )
        try:
            check_actions(space, action)
        except ActionError as error:
            raise ContractViolation(
                f"act() returned actions outside {space} in {phase.name}: {error}; return the "
                "space's dtype and shape, clipped to its bounds"
            ) from error


def actions_are_allowed_by_their_masks(trial: AgentTrial) -> None:
    """An agent with an action mask takes allowed actions alone, in every phase."""
    key = trial.mask_key
    play = trial.play()
    if key is None:
        return
    for phase in (Phase.HEATUP, Phase.TRAIN, Phase.TEST):
        for _ in range(AFTER):
            mask = play.request().observation[key]
            wrong = forbidden(trial.context.spaces.action, play.tick(phase), mask)
            expect(
                not wrong.any(),
                f"act() took an action that its mask '{key}' forbids in {phase.name}; choose by "
                "request.observation['allowed_actions']",
            )


def what_is_given_stays_as_it_is(trial: AgentTrial) -> None:
    """Neither a request nor an outcome is written to."""
    play = trial.play()
    for phase in (Phase.HEATUP, Phase.TRAIN, Phase.TRAIN):
        request = play.request()
        clock = play.clock(phase)
        is_same = frozen_copies(iter([request.rows, request.starts, *request.observation.values()]))
        play.actions.append(play.agent.act(play.rows, request, clock))
        expect(is_same(), "act() wrote into the arrays of its request; copy them first")
        outcome = play.outcome()
        is_same = frozen_copies(iter([outcome.reward, *outcome.observation.values()]))
        play.agent.observe(play.rows, outcome, clock)
        expect(is_same(), "observe() wrote into the arrays of its outcome; copy them first")


def same_seed_same_numbers(trial: AgentTrial) -> None:
    """Two agents of one seed act and learn alike."""
    again = trial.play().heatup().train(trial.ticks)
    first = trial.trained
    expect(
        same_actions(first.actions[: len(again.actions)], again.actions),
        f"two agents with the same seed acted differently; {GENERATORS}",
    )
    expect_same_state(
        first.state(),
        again.state(),
        f"two agents with the same seed learned different numbers; {GENERATORS}",
    )


def rows_act_alone_as_among_others(trial: AgentTrial) -> None:
    """Decisions of a row depend on no other row."""
    among = trial.play(trial.build())
    alone = trial.play(trial.build(), rows=1)
    found = [take(parts_of(each), np.array([0])) for each in among.tested(samples=True)]
    expected = [dict(parts_of(each)) for each in alone.tested(samples=True)]
    expect(
        same_actions(list(found), list(expected), nearly=True),
        "a row acted differently among others than alone; draw row i's noise from a stream of "
        "(seed, i), e.g. a RowNoise, and keep what is remembered of rows apart",
    )


def rows_and_actions_stay_together(trial: AgentTrial) -> None:
    """A request of some rows, in any order, gets the actions of these rows."""
    whole, part = trial.play(), trial.play()
    clock = whole.clock(Phase.TEST)
    chosen = np.array([2, 0])
    expected = take(
        parts_of(whole.agent.act(whole.rows, whole.request(greedy=True), clock)), chosen
    )
    found = parts_of(part.agent.act(part.rows, part.request(chosen, greedy=True), clock))
    if trial.greedy:
        expect(
            same_actions([dict(found)], [dict(expected)], nearly=True),
            "for rows 2 and 0, act() returned other actions than for these among all rows; index "
            "the row state by request.rows, and return actions in their order",
        )


def greedy_in_test(trial: AgentTrial) -> None:
    """Actions in TEST don't depend on random numbers."""
    if not trial.greedy:
        return
    one, other = (trial.play(trial.build(), seed=seed).tested() for seed in (1, 2))
    expect(
        same_actions(one, other),
        "actions in TEST depend on the seed of the rows; choose greedily where request.greedy is "
        "set, and draw nothing there",
    )


def evaluations_change_nothing(trial: AgentTrial) -> None:
    """Ticks in TEST leave the agent as it is."""
    play = trial.trained
    before = play.agent.state_dict()
    trial.play(play.agent, seed=5).tested(10)
    trial.play(play.agent, seed=6).tested(3, samples=True)
    expect_same_state(
        before,
        play.agent.state_dict(),
        "an evaluation changed the agent; write to statistics, memories and counters only where "
        "clock.learns",
    )


def workers_act_as_the_run_does(trial: AgentTrial) -> None:
    """Decisions are those of the run where a worker makes them."""
    run, worker = (trial.play().heatup() for _ in range(2))
    for _ in range(2 * AFTER):
        clock = run.clock(Phase.TRAIN)
        # Where an episode begins, statistics of filters may change in the run alone.
        own = replace(clock, acts_only=not run.begins.any())
        expect(
            same_actions([run.act(clock)], [worker.act(own)]),
            "the agent acts otherwise by the clock of a worker (--workers), where clock.learns is "
            "False; read clock.trains for whether it is in training, or request.greedy",
        )
        for play in (run, worker):
            play.agent.observe(play.rows, play.outcome(), clock)
            play.agent.train(clock)


def training_counts_its_steps(trial: AgentTrial) -> None:
    """Reports count the gradient steps, with finite metrics of full names."""
    for report in trial.trained.reports:
        steps = report.training_steps
        expect(
            isinstance(steps, int) and steps >= 0,
            f"train() reported training_steps={steps!r}; report the number of gradient steps made",
        )
        for name, value in report.metrics.items():
            expect(
                "/" in name and isinstance(value, float | int) and math.isfinite(value),
                f"train() reported the metric {name!r} = {value!r}; metrics are finite numbers "
                "named room/quantity, such as train/policy_loss",
            )


def training_changes_the_policy(trial: AgentTrial) -> None:
    """An agent that made gradient steps acts by other parameters than before."""
    play = trial.trained
    if not play.training_steps:
        return
    before, after = trial.build().policy_state_dict(), play.agent.policy_state_dict()
    try:
        expect_same_state(before, after, "")
    except ContractViolation:
        return
    raise ContractViolation(
        f"after {play.training_steps} training steps policy_state_dict() is that of a new agent; "
        "mark what acting needs in SAVED, as SavedAttribute(name, policy=True)"
    )


def training_is_not_due_before_it_is_announced(trial: AgentTrial) -> None:
    """`decisions_until_training` is a lower bound."""
    play = trial.play().heatup()
    if not isinstance(play.agent, PacedAgent):
        return
    for _ in range(trial.ticks):
        announced = play.agent.decisions_until_training()
        before = play.training_steps
        play.tick(Phase.TRAIN)
        expect(
            play.training_steps == before or announced <= ROWS,
            f"train() was due after {ROWS} decisions, and decisions_until_training() had announced "
            f"{announced}; return a number that is never too large, at least 1",
        )


def state_round_trip(trial: AgentTrial) -> None:
    """An agent that is saved, with its rows, continues in another one as if it had not stopped."""
    play = trial.play().heatup().train(trial.ticks // 2)
    play.act(play.clock(Phase.TRAIN))  # decisions are open
    resumed = trial.play(trial.build(seed=8), seed=4).load(play.state())
    _expect_same_future(trial, play, resumed, "an agent that was loaded into a new one")


def state_replaces_everything(trial: AgentTrial) -> None:
    """Loading leaves nothing of what the agent had learned before."""
    play = trial.play().heatup().train(trial.ticks // 2)
    play.act(play.clock(Phase.TRAIN))
    other = trial.play(trial.build(seed=8), seed=4).heatup(2).train(trial.ticks)
    other.act(other.clock(Phase.TRAIN))
    other.load(play.state())
    _expect_same_future(trial, play, other, "an agent that was loaded into one that had learned")


def state_shares_no_memory(trial: AgentTrial) -> None:
    """A saved state stays as it is while the agent learns."""
    play = trial.play().heatup().train(trial.ticks // 2)
    state = _without_appended({"agent": play.agent.state_dict(), "rows": play.rows.state_dict()})
    before = copy.deepcopy(state)
    play.train(trial.ticks)
    expect_same_state(
        before,
        state,
        "a saved state changed while the agent learned; let state_dict() copy its arrays",
    )


def policy_loads_elsewhere(trial: AgentTrial) -> None:
    """A new agent acts like the one whose policy it was given."""
    play = trial.trained
    policy = play.agent.policy_state_dict()
    if not policy:
        return
    for what, state in (("policy_state_dict", policy), ("state_dict", play.agent.state_dict())):
        other = trial.build()
        other.load_policy(state)
        if trial.greedy:
            expect(
                same_actions(
                    trial.play(play.agent, seed=5).tested(),
                    trial.play(other, seed=5).tested(),
                    nearly=True,
                ),
                f"an agent given what {what}() returned acts differently; mark all that acting "
                "needs in SAVED, as SavedAttribute(name, policy=True)",
            )


def another_policy_is_refused(trial: AgentTrial) -> None:
    """The policy of another kind of agent is refused with a `SpaceError`."""
    if trial.build().policy_state_dict():
        refused(
            lambda: trial.build().load_policy({"another": {}}),
            SpaceError,
            "load_policy() must refuse what another kind of agent knew with a SpaceError",
        )


def cut_off_rows_continue(trial: AgentTrial) -> None:
    """Rows whose simulator failed restart, and the agent continues to learn."""
    play = trial.play().heatup().train(trial.ticks // 2)
    clock = play.clock(Phase.TRAIN)
    play.act(clock)
    play.agent.cut_off(play.rows, np.array([1]), clock)
    play.begins = np.array([False, True, False])
    before = play.training_steps
    play.train(trial.ticks)
    learned = trial.trained.training_steps > 0
    expect(
        not learned or play.training_steps > before,
        "after cut_off() of a row the agent made no gradient steps any more",
    )


def restarted_rows_continue(trial: AgentTrial) -> None:
    """Rows that restart after a gap make no transition across it."""
    play = trial.play().heatup().train(trial.ticks // 2)
    play.agent.restart_rows(play.rows)
    play.begins = np.ones(ROWS, np.bool_)
    before = play.training_steps
    play.train(trial.ticks)
    expect(
        not trial.trained.training_steps or play.training_steps > before,
        "after restart_rows() the agent made no gradient steps any more",
    )


def parts_can_be_walked(trial: AgentTrial) -> None:
    """The parts that `parts()` names can be described, timed and inspected."""
    agent = trial.build()
    for part in walk(agent):
        expect(isinstance(part.name, str), f"parts() has the name {part.name!r}; use a string")
    for call in timed_calls(agent):
        expect(
            callable(getattr(call.owner, call.method, None)),
            f"TIMED names {type(call.owner).__name__}.{call.method}, which is no method",
        )
    expect(isinstance(description_of(agent), str), "description() must return a string")


AGENT_CHECKS: tuple[Check, ...] = (
    actions_have_the_promised_form,
    actions_are_allowed_by_their_masks,
    what_is_given_stays_as_it_is,
    same_seed_same_numbers,
    rows_act_alone_as_among_others,
    rows_and_actions_stay_together,
    greedy_in_test,
    evaluations_change_nothing,
    workers_act_as_the_run_does,
    training_counts_its_steps,
    training_changes_the_policy,
    training_is_not_due_before_it_is_announced,
    state_round_trip,
    state_replaces_everything,
    state_shares_no_memory,
    policy_loads_elsewhere,
    another_policy_is_refused,
    cut_off_rows_continue,
    restarted_rows_continue,
    parts_can_be_walked,
)
"""Every promise, in the order in which `check_agent` tries them."""


def check_agent(parameters: Any, spaces: EnvironmentSpaces, **settings: Any) -> None:
    """Run every check on an agent that has its environment for itself.

    Args:
        parameters: The agent.
        spaces: What it observes and where it acts.
        settings: Of the `AgentTrial`, such as `greedy=False`.

    Raises:
        ContractViolation: A promise is broken; the message names it and the remedy.
    """
    trial = AgentTrial.of(parameters, spaces, **settings)
    for check in AGENT_CHECKS:
        check(trial)


def examine_agents(graph_manager: Any) -> Iterator[Finding]:
    """Try the agent and the own goals of each level; yields one finding per promise.

    Args:
        graph_manager: The experiment, whose graph is not built yet.
    """
    graph_manager.create_graph(Runtime(seed=7, device="cpu"))
    graph = graph_manager.graph
    for level in graph.levels:
        context = graph.contexts[level.name]
        yield from examine_agent(level.agent, context)
        goals = context.place.goal
        if goals is not None and not is_standard(type(goals)):
            trial = AgentTrial(parameters=level.agent, context=context)
            for check in GOAL_CHECKS:
                yield tried(check, trial, of=f"goals of {level.name}: ")


def examine_agent(parameters: Any, context: AgentContext) -> Iterator[Finding]:
    """Try an agent at its place; yields one finding per promise."""
    name = parameters.name
    trial = AgentTrial(parameters=parameters, context=context)
    with warnings.catch_warnings(action="ignore", category=CoachWarning):
        try:
            below = replace(context.place, agent_below=None)
            replace(trial, context=replace(context, place=below)).build()
        except ConfigurationError:
            text = "left out: it needs the agent of the level below at work; train it instead"
            yield Finding("warned", f"{name}: checks", text)
            return
        for check in AGENT_CHECKS:
            yield tried(check, trial, of=f"{name}: ")
        if not trial.trained.training_steps:
            text = f"it made no gradient steps in {trial.most_ticks:,} ticks; make it learn sooner"
            yield Finding("warned", f"{name}: learning", text)


class AgentContract:
    """Makes each check a pytest test; inherit it, name your class `Test...`, define `trial`."""

    def trial(self) -> AgentTrial:
        """The trial that the checks run."""
        raise NotImplementedError(f"{type(self).__name__} must define trial()")


add_tests(AgentContract, AGENT_CHECKS, lambda contract: contract.trial())


def _expect_same_future(trial: AgentTrial, play: Any, resumed: Any, what: str) -> None:
    """The decisions that are open end, and both continue alike."""
    for each in (play, resumed):
        each.agent.observe(each.rows, each.outcome(), each.clock(Phase.TRAIN))
        each.actions.clear()
        each.reports.clear()
        each.train(trial.ticks // 2 + AFTER)
    expect(
        same_actions(play.actions, resumed.actions),
        f"{what} acted differently afterwards; {SAVED_NAMES}, the rows' too",
    )
    expect(
        _reported(play) == _reported(resumed),
        f"{what} reported other metrics afterwards; {SAVED_NAMES}, the sums of metrics too",
    )
    expect_same_state(
        play.state(),
        resumed.state(),
        f"{what} learned different numbers afterwards; {SAVED_NAMES}, memory, optimiser and "
        "random generators among them",
    )


def _reported(play: Any) -> list[dict[str, float]]:
    """The metrics of a play's reports, without times."""
    return [
        {name: value for name, value in each.metrics.items() if not name.startswith("time/")}
        for each in play.reports
    ]


def _without_appended(state: Any) -> Any:
    """A state without what is read from the object when it is needed."""
    if not isinstance(state, dict):
        return state
    parts = {key: _without_appended(part) for key, part in state.items()}
    return {key: part for key, part in parts.items() if not isinstance(part, Appended)}


def _shape(values: Any) -> str:
    return f"an array {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__


def _of(key: str) -> str:
    return f" under '{key}'" if key else ""
