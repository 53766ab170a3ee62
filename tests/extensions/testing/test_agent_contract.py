"""Each promise of the agents' contract is noticed when an agent breaks it."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.core import EnvironmentSpaces, EnvironmentSteps, SavedAttribute, parameter_class
from coach_rl.core.clock import Phase
from coach_rl.extensions.testing import (
    AGENT_CHECKS,
    AgentContract,
    AgentTrial,
    ContractViolation,
    check_agent,
    examine_agent,
)

SPACES = EnvironmentSpaces(
    observation=Dict({"observation": Box(-9, 9, (2,), np.float32)}),
    action=Box(-2, 2, (2,), np.float32),
)
CHECKS = {check.__name__: check for check in AGENT_CHECKS}
SETTINGS = {
    "algorithm": PPOAlgorithmParameters(rollout=EnvironmentSteps(24), minibatch=8, epochs=1),
    "update_mode": "eager",
}


@parameter_class
class Parameters(PPOAgentParameters):
    kind: type = PPOAgent

    def build(self, context):
        return self.kind(self, context)


class Shifted(PPOAgent):
    """Its actions are shifted by a number that grows in training."""

    def __init__(self, params, context):
        super().__init__(params, context)
        self.shift = np.zeros(1, np.float32)

    def train(self, clock):
        report = super().train(clock)
        self.shift += 0.1 if report else 0
        return report

    def choose(self, row_state, request, clock):
        made = super().choose(row_state, request, clock)
        return replace(made, action=made.action + self.shift)


class ActsInFloat64(PPOAgent):
    def act(self, row_state, request, clock):
        return super().act(row_state, request, clock).astype(np.float64)


class IgnoresItsMask(PPOAgent):
    def choose(self, row_state, request, clock):
        made = super().choose(row_state, request, clock)
        return replace(made, action=np.zeros_like(made.action))


class WritesIntoRequests(PPOAgent):
    def act(self, row_state, request, clock):
        request.observation["observation"] += 1
        return super().act(row_state, request, clock)


class DrawsGlobally(PPOAgent):
    def choose(self, row_state, request, clock):
        made = super().choose(row_state, request, clock)
        noise = np.random.normal(size=made.action.shape)  # noqa: NPY002 (what must not be done)
        return replace(made, action=made.action + noise.astype(np.float32))


class MixesRows(PPOAgent):
    def choose(self, row_state, request, clock):
        made = super().choose(row_state, request, clock)
        return replace(made, action=made.action + len(request.rows))


class SortsRows(PPOAgent):
    def act(self, row_state, request, clock):
        return super().act(row_state, request, clock)[np.argsort(request.rows)]


class ExploresInTest(PPOAgent):
    def choose(self, row_state, request, clock):
        return super().choose(row_state, replace(request, greedy=request.greedy & False), clock)


class CountsTests(PPOAgent):
    SAVED = ("decisions",)
    decisions = 0

    def act(self, row_state, request, clock):
        self.decisions += len(request.rows)
        return super().act(row_state, request, clock)


class ActsByLearns(PPOAgent):
    def act(self, row_state, request, clock):
        action = super().act(row_state, request, clock)
        return action if clock.learns else -action


class ReportsNothingFinite(PPOAgent):
    def train(self, clock):
        report = super().train(clock)
        return None if report is None else replace(report, metrics={"train/policy_loss": np.nan})


class HidesItsPolicy(PPOAgent):
    SAVED = (SavedAttribute("network", policy=False), SavedAttribute("returns", policy=False))


class AnnouncesTooMuch(PPOAgent):
    def decisions_until_training(self):
        return super().decisions_until_training() + 100


class Forgets(Shifted):
    """Not even in SAVED."""


class KeepsItsOwn(Shifted):
    SAVED = (SavedAttribute("shift", policy=True),)

    def load_state_dict(self, state):
        before = self.shift.copy()
        super().load_state_dict(state)
        self.shift = np.maximum(before, self.shift)


class SharesMemory(Shifted):
    def state_dict(self):
        return {**super().state_dict(), "shift": self.shift}


class LeavesPolicyOut(Shifted):
    SAVED = ("shift",)


class TakesAnything(PPOAgent):
    def load_policy(self, state):
        if "network" in state:
            super().load_policy(state)


class StopsWhenCutOff(PPOAgent):
    stopped = False

    def cut_off(self, row_state, rows, clock):
        self.stopped = True

    def train(self, clock):
        if not self.stopped:
            return super().train(clock)
        self.memory.clear()
        return None


class StopsWhenRestarted(StopsWhenCutOff):
    def restart_rows(self, row_state):
        self.stopped = True


class TimesNothing(PPOAgent):
    TIMED = {"think": "think"}  # noqa: RUF012 (as users write it)


BROKEN = {
    "actions_have_the_promised_form": (ActsInFloat64, "return the space's dtype"),
    "what_is_given_stays_as_it_is": (WritesIntoRequests, "copy them first"),
    "same_seed_same_numbers": (DrawsGlobally, "never from numpy's or torch's global"),
    "rows_act_alone_as_among_others": (MixesRows, "keep what is remembered of rows apart"),
    "actions_are_allowed_by_their_masks": (IgnoresItsMask, "choose by request.observation"),
    "rows_and_actions_stay_together": (SortsRows, "return actions in their order"),
    "greedy_in_test": (ExploresInTest, "choose greedily where request.greedy"),
    "evaluations_change_nothing": (CountsTests, "/decisions"),
    "workers_act_as_the_run_does": (ActsByLearns, "read clock.trains"),
    "training_counts_its_steps": (ReportsNothingFinite, "'train/policy_loss' = nan"),
    "training_changes_the_policy": (HidesItsPolicy, "SavedAttribute(name, policy=True)"),
    "training_is_not_due_before_it_is_announced": (AnnouncesTooMuch, "never too large"),
    "state_round_trip": (Forgets, "list every attribute that changes in SAVED"),
    "state_replaces_everything": (KeepsItsOwn, "one that had learned"),
    "state_shares_no_memory": (SharesMemory, "let state_dict() copy"),
    "policy_loads_elsewhere": (LeavesPolicyOut, "SavedAttribute(name, policy=True)"),
    "another_policy_is_refused": (TakesAnything, "with a SpaceError, but it was accepted"),
    "cut_off_rows_continue": (StopsWhenCutOff, "made no gradient steps any more"),
    "restarted_rows_continue": (StopsWhenRestarted, "made no gradient steps any more"),
    "parts_can_be_walked": (TimesNothing, "TimesNothing.think, which is no method"),
}


MASKED = EnvironmentSpaces(
    observation=Dict({**SPACES.observation.spaces, "action_mask": MultiBinary(3)}),
    action=Discrete(3),
)


def trial(kind=PPOAgent):
    spaces = MASKED if kind is IgnoresItsMask else SPACES
    return AgentTrial.of(Parameters(kind=kind, **SETTINGS), spaces)


class TestGoodAgent(AgentContract):
    def trial(self):
        return trial()


@pytest.mark.parametrize("name", CHECKS)
def test_broken_promise_is_reported_with_its_remedy(name):
    kind, remedy = BROKEN[name]
    with pytest.raises(ContractViolation) as caught:
        CHECKS[name](trial(kind))
    assert remedy in str(caught.value)


def test_check_agent_broken_agent_raises():
    with pytest.raises(ContractViolation):
        check_agent(Parameters(kind=ActsInFloat64, **SETTINGS), SPACES)


def test_examine_agent_reports_each_promise():
    made = trial(ExploresInTest)
    findings = {each.subject: each for each in examine_agent(made.parameters, made.context)}
    failed = {name for name, each in findings.items() if each.verdict == "failed"}
    assert len(findings) == len(CHECKS)
    assert failed == {"agent: greedy in test"}


def test_trial_of_idle_agent_makes_few_ticks():
    class Idle(PPOAgent):
        def train(self, clock):
            return None

    idle = replace(trial(Idle), most_ticks=5)
    assert idle.ticks == 12
    assert idle.play().heatup().train(3).clock(Phase.TRAIN).environment_steps == 24
