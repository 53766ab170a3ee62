"""Each promise of the goals' contract is noticed when a goal space breaks it."""

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.agents import AgentContext, LevelPlace
from coach_rl.core.goals import GoalContext, GoalSpace
from coach_rl.core.levels import LevelDescription
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.runtime import Runtime
from coach_rl.core.saved import SavedAttribute
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.learned_goals.lesson_goals import LESSONGoals, LESSONGoalSpace
from coach_rl.extensions.testing import AgentTrial, ContractViolation, check_goals, examine_agents
from coach_rl.extensions.testing.agent_contract import AGENT_CHECKS
from coach_rl.levels.level_checks import agent_spaces

SEEN = spaces.Dict(
    {
        "observation": spaces.Box(-3, 3, (4,), np.float32),
        "more": spaces.Box(-3, 3, (2,), np.float32),
    }
)
ACTIONS = spaces.Box(-1, 1, (2,), np.float32)
TORSO = rl.TorsoParameters(middleware=(16,))
TD3 = rl.TD3AgentParameters(
    learning=rl.LearningParameters(
        batch=8, updates_per_step=0.5, learning_starts=20, report_every=4
    ),
    actor=rl.ActorParameters(torso=TORSO),
    critic=rl.CriticParameters(torso=TORSO),
    update_mode="eager",
)
BOX = {"low": (-2.0,) * 3, "high": (2.0,) * 3, "threshold": (0.3,) * 3}


@parameter_class
class Space(LESSONGoalSpace):
    kind: type = LESSONGoals

    def build(self, context):
        return self.kind(self, context)


class Narrow(LESSONGoals):
    def achieved(self, observation):
        return super().achieved(observation)[:, :2]


class Two(LESSONGoals):
    """Goals that are reached in part."""

    def judge(self, goal, achieved, before=None):
        verdict = super().judge(goal, achieved)
        return verdict._replace(reached=verdict.reached.astype(np.float32))


class Ranked(LESSONGoals):
    """Rewards by the order among the rows."""

    def judge(self, goal, achieved, before=None):
        verdict = super().judge(goal, achieved)
        return verdict._replace(reward=verdict.reward - verdict.reward.sum())


class Moving(LESSONGoals):
    """Ends where nothing moves."""

    uses_before = True

    def judge(self, goal, achieved, before=None):
        still = np.abs(achieved - before).max(axis=1) < 1e-6
        return super().judge(goal, achieved)._replace(is_final=still)


class Writing(LESSONGoals):
    def judge(self, goal, achieved, before=None):
        goal *= 0.5
        return super().judge(goal, achieved)


class Counting(LESSONGoals):
    """Learns from being called."""

    def achieved(self, observation):
        self.calls += 1
        return super().achieved(observation)


class Reading(LESSONGoals):
    """Reads a key that it does not name."""

    def achieved(self, observation):
        return super().achieved(observation) + observation["more"][:, :1]


class Silent(LESSONGoals):
    """Moves its networks, and counts no change."""

    def learn(self, batch):
        super().learn(batch)
        return False


class Forgetful(LESSONGoals):
    """Has a scale that stays behind."""

    scale = 1.0

    def learn(self, batch):
        self.scale += 0.1
        return super().learn(batch)

    def achieved(self, observation):
        return super().achieved(observation) * np.float32(self.scale)


class Alone(Forgetful):
    """Saves the scale, not for others."""

    SAVED = (SavedAttribute("scale", policy=False),)


class Drawing(LESSONGoals):
    """Draws from a generator of everybody's."""

    def __init__(self, params, context):
        super().__init__(params, context)
        self.features.online.add_(0.1 * float(np.random.normal()))  # noqa: NPY002


BROKEN = {
    Narrow: "Narrow.achieved returns float32 of shape (7, 2) for 7 rows",
    Two: "Two.judge returns reached as float32",
    Ranked: "another reward for a row among others",
    Moving: "other ends for another `before`",
    Writing: "wrote into its arguments",
    Counting: "judging changed the goals",
    Reading: "reads the observation key 'more'",
    Silent: "the version did not",
    Forgetful: "goals that were given what state_dict() returned judge differently",
    Alone: "goals that were given what policy_state_dict() returned judge differently",
    Drawing: "two goal spaces with the same seed",
}


def trial(kind=LESSONGoals, agent=TD3, **given):
    space = Space(**BOX, reward="dense", ahead=3, every=1, kind=kind, **given)
    context = GoalContext(level="low", observation=SEEN, runtime=Runtime(seed=1, device="cpu"))
    return at(space.build(context), agent)


def at(goals, agent=TD3):
    below = EnvironmentSpaces(observation=SEEN, action=ACTIONS)
    level = LevelDescription(name="low", goal_space=goals, horizon=5)
    return AgentTrial(
        parameters=agent,
        context=AgentContext(
            spaces=agent_spaces(below, goals), num_envs=3, place=LevelPlace(level=level)
        ),
    )


@pytest.mark.parametrize(
    "given",
    [
        {},
        pytest.param({"relative": True, "observed": "relative"}, marks=pytest.mark.slow),
        pytest.param({"bounds_rate": 0.1}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_goals_that_learn_keep_their_promises_and_so_does_their_agent(given):
    tried = trial(**given)
    check_goals(tried)
    assert tried.trained_goals.version > 3
    for check in AGENT_CHECKS:
        check(tried)


def test_plain_goals_keep_their_promises():
    check_goals(at(GoalSpace(**BOX, key="observation", elements=(0, 1, 3))))


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_promise_of_goals_is_reported(kind):
    with pytest.raises(ContractViolation) as raised:
        check_goals(trial(kind))
    assert BROKEN[kind] in str(raised.value)


def test_examination_of_agents_includes_goals_of_other_classes():
    space = LESSONGoalSpace(**BOX, ahead=3, every=1)
    low = rl.LevelParameters(name="low", agent=TD3, goal_space=space, horizon=5)
    levels = (rl.LevelParameters(name="top", agent=TD3), low)
    graph = rl.GraphParameters(levels=levels, environment=rl.GoalPointMassParameters())
    with rl.HRLGraphManager(graph) as manager:
        found = list(examine_agents(manager))
    assert not [each for each in found if each.verdict == "failed"]
    assert sum(each.subject.startswith("goals of low: ") for each in found) == 9
