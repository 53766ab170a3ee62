"""Agents that are refused: a call, the kind of error, and parts of its message in their order."""

import os
from math import inf, nan

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.agents.stages.info_columns import InfoColumns
from coach_rl.configuration.parameters_json import encode
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import (
    ActionError,
    DivergedError,
    EnvironmentFault,
    NonFiniteError,
    RunError,
    SpaceError,
)
from coach_rl.core.spaces import EnvironmentSpaces
from tests.agents import plain_learners as learners
from tests.agents import test_divergence as divergence
from tests.agents import test_dqn_agent as dqn
from tests.agents import test_filtered_agent as filtered
from tests.agents import test_info_columns as infos
from tests.agents import test_ppo_agent as ppo
from tests.agents import test_scaled_output as scaled
from tests.extensions.mixed_actions import test_mixed_actions as mixed
from tests.extensions.scripts import test_scripted_agent as scripts
from tests.refusals import check_refused

BOX = spaces.Box(-2, 2, (1,))

NORMALISED = rl.ObservationNormalizationFilter()

LINEAR = rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-1.0, high=1.0),))

OTHERS = (
    spaces.Discrete(3),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiBinary(3),
    spaces.Dict({"a": spaces.Box(-1, 1, (1,))}),
)
"""Spaces that DDPG and TD3 refuse, and SAC unless it has a variant."""
FLAT_BOX = "acts in a flat Box of floats ... got"


def act(policy, space=scripts.BOX):
    return lambda: scripts.act(scripts.build(policy, space), scripts.SEEN)


def masked(parameters):
    observed = spaces.Dict({"x": BOX, "legal": spaces.MultiBinary(3)})
    shown = EnvironmentSpaces(observation=observed, action=spaces.Discrete(3))
    agent = parameters(name="me", action_mask="lgal")
    return lambda: agent.build(AgentContext(spaces=shown, num_envs=1))


def script(policy):
    return lambda: scripts.build(policy)


def load_nothing(agent):
    context = AgentContext(
        spaces=EnvironmentSpaces(observation=spaces.Dict(), action=spaces.Discrete(2)), num_envs=1
    )
    return lambda: agent.build(context).load_policy({})


def poisoned(act_on):
    """A PPO agent whose parameters are not finite, in an evaluation or saved."""

    def call():
        with divergence.manager(divergence.ppo(), rl.OneStepParameters()) as manager:
            manager.create_graph(rl.Runtime(seed=1, device="cpu"))
            manager.load_state_dict(divergence.poisoned(manager.state_dict()))
            act_on(manager)

    return call


def not_finite(part, bad=nan):
    def call():
        seen = {**filtered.seen([1, 2], [7, 8]), "reward": np.zeros((2, 1))}
        answer = filtered.outcome(filtered.index(3, 5), [1, 2], [7, 8], observation=seen)
        part(answer)[1] = bad
        agent = filtered.Scribe(filtered=False)
        agent.observe(agent.new_rows(6, seed=0), answer, filtered.TRAIN)

    return call


def not_finite_goal():
    agent = filtered.Scribe()
    state = filtered.started(agent)
    told = {rl.GOAL_KEY: filtered.seen([0], [nan])[rl.GOAL_KEY]}
    outcome = filtered.outcome(filtered.index(1), [4], [8], next_goal=told)
    agent.observe(state, outcome, clock=filtered.TRAIN)


def outside(space, wrong):
    def call():
        bandit = ppo.Shown(ppo.build(seen=spaces.Dict({"x": space})), ppo.flat_pay)
        show = bandit.seen
        bandit.seen = lambda: {"x": np.stack((show()["x"][0], np.asarray(wrong)))}
        bandit.act()

    return call


def info(name, **seen):
    return lambda: InfoColumns((name,), agent="ppo").of(infos.outcome(**seen))


def load_units(box, saved, own):
    def call():
        state = scaled.built(box, scale_actions=saved).policy_state_dict()
        if not saved:  # as an earlier release saved it
            state.pop("action_units", None)
        scaled.built(box, scale_actions=own).load_policy(state)

    return call


def small_memory():
    settings = {"memory": {"capacity": 1000}, "learning": {"learning_starts": 1000}}
    learners.build("ddpg", num_envs=3, **settings)


CASES = {
    rl.ParameterError: [
        *(
            (
                lambda given=given: rl.PPOAgentParameters(input_filter=given),
                "input_filter must be ... e.g. InputFilter",
            )
            for given in (NORMALISED, (NORMALISED,), rl.OutputFilter())
        ),
    ],
    rl.ConfigurationError: [
        *(
            (
                lambda given=given: learners.build("sac", box=spaces.Discrete(3), **given),
                f"acts in Discrete(3), and {name} is for actions in a Box; leave it out",
            )
            for name, given in (
                ("greedy_candidates", {"greedy_candidates": 3}),
                ("critic.action_layers", {"critic": {"action_layers": (1,)}}),
                ("critic.action_unit", {"critic": {"action_unit": "raw"}}),
            )
        ),
        *(
            (lambda action=action, given=given: mixed.built(action, arguments=given), message)
            for action, given, message in (
                (
                    BOX,
                    {"run": ("kind", 0)},
                    "'run' in `arguments` ... names a part of a Dict ... Box",
                ),
                (
                    mixed.MIXED,
                    {"bits": ("kind", 5)},
                    "'bits' ... is MultiBinary ... only Boxes",
                ),
                (mixed.MIXED, {"run": ("bits", 1)}, "belongs to 'bits', which is MultiBinary"),
                (
                    mixed.MIXED,
                    {"run": ("arm", 1), "arm": ("kind", 5)},
                    "to 'arm', which is Box ... and an argument itself; it must belong to",
                ),
                (mixed.MIXED, {"run": ("kind", 3)}, "action 3 of 'kind', which has ... 4 to 6"),
                (mixed.MIXED, {"run": ("kind", 7)}, "action 7 of 'kind'"),
            )
        ),
        (small_memory, "would never learn: its memory holds 999 "),
        (script("stll"), "unknown script 'stll'; did you mean 'still'"),
        (script("no_such_module:f"), "'no_such_module:f' needs the module 'no_such_module'"),
        (script(":f"), "the script ':f' needs the module ''"),
        *(
            (script(policy), "cannot act: ... function of (observation, space")
            for policy in ("os:system", os.system, "os:getcwd", abs)
        ),
        (
            lambda: encode(rl.ScriptedAgentParameters(policy=lambda observation, space: None)),
            "policy is ... <lambda> ... top of a file",
        ),
    ],
    SpaceError: [
        *(
            (lambda kind=kind, box=box: learners.build(kind, box=box), f"{FLAT_BOX} {box}")
            for kind in learners.KINDS
            for box in (
                *(() if kind == "sac" else OTHERS),
                spaces.Box(-np.inf, np.inf, (2,)),
                spaces.Box(-1, 1, (2, 2)),
                spaces.Box(0, 3, (2,), np.int64),
            )
        ),
        (
            lambda: learners.build("sac", box=spaces.MultiDiscrete([[2, 3], [2, 2]])),
            "a Discrete or a flat MultiDiscrete space, got MultiDiscrete([[2 3] [2 2]]); use",
        ),
        (
            lambda: learners.build("sac", box=spaces.Dict({"a": spaces.Discrete(2)})),
            "agent ... cannot act in Dict ... there is Box, Discrete, MultiDiscrete. Map ... "
            "a variant of SACAgentParameters for Dict",
        ),
        *(
            (
                lambda kind=kind: learners.build(
                    kind, box=spaces.Box(np.float32([1, -1]), np.float32([1, 1]))
                ),
                "element 0 of the action space can only be 1.0",
            )
            for kind in learners.KINDS
        ),
        *(
            (
                lambda space=space: dqn.build(action=space),
                f"cannot act in {type(space).__name__} ... there is Discrete, MultiDiscrete. Map",
            )
            for space in (BOX, spaces.MultiBinary(3), spaces.Dict({"a": spaces.Discrete(2)}))
        ),
        (
            lambda: dqn.build(action=spaces.MultiDiscrete([[2, 3], [2, 2]])),
            "a Discrete or a flat MultiDiscrete space, got MultiDiscrete ... DDPG",
        ),
        (lambda: dqn.build(action=BOX, output_filter=LINEAR), "cannot act in Box"),
        (
            lambda: dqn.build(action=spaces.MultiDiscrete([2, 3]), exploration=rl.GaussianNoise()),
            "GaussianNoise explores in a Box, not in Discrete(2); for a Discrete space take",
        ),
        *(
            (lambda action=action: mixed.built(action), message)
            for action, message in (
                (spaces.Box(0, 3, (2,), np.int64), "space Box(0, 3 ... are a MultiDiscrete with"),
                (spaces.Text(3), "no stochastic policy for the action space Text ... MultiBinary"),
                (
                    spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Box(0, 3, (2,), np.int64)}),
                    "no stochastic policy for the part 'b' of actions, Box(0, 3 ... allowed: Box",
                ),
                (
                    spaces.Dict({"a": spaces.Dict({"b": spaces.Discrete(2)})}),
                    "for the part 'a' of actions, Dict ... allowed: Box of floats",
                ),
                (spaces.Dict({}), "has a Dict of actions without parts; add one"),
            )
        ),
        (load_units(scaled.FAR, True, False), "scale_actions=True, ... scale_actions=False"),
        (load_units(scaled.FAR, False, True), "learned with scale_actions=False"),
        (act("still", spaces.MultiBinary(2)), "'still' ... not in"),
        (act("desired_goal"), "'desired_goal' ... receives none; observed: ['x']"),
        (load_nothing(rl.ScriptedAgentParameters(policy="still")), "'script' follows a script"),
        (load_nothing(rl.UniformAgentParameters()), "agent 'uniform' learns nothing"),
        (info("place", place=np.ones((2, 3))), "the info 'place' ... not one number a row"),
    ],
    rl.UnknownNameError: [
        *(
            (masked(kind), "key 'lgal' (the action_mask of agent 'me'); did you mean 'legal'?")
            for kind in (rl.PPOAgentParameters, rl.DQNAgentParameters, rl.UniformAgentParameters)
        ),
        (
            lambda: mixed.built(arguments={"rum": ("kind", 0)}),
            "unknown part of the actions 'rum' in `arguments` of agent 'agent'; allowed: arm, bits",
        ),
        (
            lambda: mixed.built(arguments={"run": ("king", 0)}),
            "unknown part of the actions 'king' in `arguments`",
        ),
        (script("os.path:joiin"), "'joiin' in module 'os.path' ... 'join'"),
    ],
    RunError: [],
    ActionError: [
        (act(scripts.ask_for_nothing_numeric), "ask_for_nothing_numeric ... lies outside"),
        *(
            (
                act(scripts.answer_nothing, space),
                "answer_nothing' ... returned None, and actions are",
            )
            for space in (scripts.BOX, spaces.Discrete(7))
        ),
        (act(scripts.ask_for_one), "ask_for_one ... 3 rows were sent actions of shape (2,)"),
        (act(scripts.seventh, spaces.Discrete(7)), "seventh ... action 7 of row 0 lies outside"),
    ],
    NonFiniteError: [
        *(
            (not_finite(lambda answer: answer.reward, bad), "a reward that is not finite in row 5")
            for bad in (nan, inf, -inf)
        ),
        *(
            (
                not_finite(lambda answer, key=key: answer.observation[key]),
                f"observation '{key}' that is not finite in row 5",
            )
            for key in ("x", rl.GOAL_KEY, "reward")
        ),
        (not_finite_goal, f"observation '{rl.GOAL_KEY}' ... in row 1"),
    ],
    EnvironmentFault: [
        (outside(space, wrong), "row 1 ... agent 'agent' ... 'x' outside of its space ... correct")
        for space, wrong in (
            (spaces.Discrete(4), 4),
            (spaces.Discrete(4, start=5), 0),
            (spaces.MultiDiscrete([3, 4], start=[1, 7]), [1, 11]),
            (spaces.Box(0, 255, (), np.uint8), 300),
            (spaces.MultiBinary(2), [0, 300]),
        )
    ],
    DivergedError: [
        (
            poisoned(lambda manager: manager.evaluate(rl.EnvironmentEpisodes(1))),
            "agent 'me' of level 'main' has diverged: ",
        ),
        (poisoned(lambda manager: manager.state_dict()), "parameters ... are not finite"),
    ],
    rl.CoachWarning: [
        (
            lambda: scaled.built(scaled.PARTLY),
            "agent 'agent' draws elements [2, 3] of its actions ... LinearBoxToBoxMap",
        ),
        (info("cost", speed=np.ones(2)), "keep the info 'cost' ... It reports speed"),
    ],
}
"""Calls by kind of error or warning, and parts of the message in their order."""


@pytest.mark.parametrize(
    ("kind", "call", "message"), [(kind, *case) for kind in CASES for case in CASES[kind]]
)
def test_agents_invalid_input_error(kind, call, message):
    check_refused(call, kind, message)
