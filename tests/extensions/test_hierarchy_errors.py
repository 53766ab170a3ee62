"""Stacks of agents that are refused: a call, the kind of error, and parts of its message."""

from dataclasses import fields, replace

import pytest

import coach_rl as rl
from coach_rl.core.agents import AgentContext, LevelPlace
from coach_rl.core.errors import SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.extensions.planning.place_space import PlaceSpace
from tests.agents import small_agents as small
from tests.builders import created
from tests.extensions.groups import test_shared_agents as shared
from tests.extensions.hac import test_hac_agent as hac
from tests.extensions.hac import test_hindsight_filters as hindsight
from tests.extensions.hiro import test_hiro_agent as hiro
from tests.extensions.hiro import test_sub_goal_guide as guide
from tests.extensions.planning import test_edge_costs as costs
from tests.extensions.planning import test_graph_agent as graph
from tests.extensions.planning import test_place_space as place_space
from tests.extensions.planning import test_places as places
from tests.extensions.skills import skill_stacks as skills
from tests.extensions.skills import test_option_critic_agent as option_critic
from tests.refusals import check_refused


def seeing(key, *filters):
    return rl.InputFilter(observation={key: filters})


LINE = rl.GoalSpace(low=(-1.0,), high=(1.0,), threshold=(0.1,), elements=(0,))

CUBE = replace(graph.PLACES, low=(0.0,) * 3, high=(4.0,) * 3, threshold=(0.3,) * 3)

RELATIVE = replace(graph.PLACES, low=(0.0, 0.0), observed="relative")

NORMALISED = rl.ObservationNormalizationFilter()

NONE = rl.ObservationClippingFilter(low=0.0, high=0.0)

LINEAR = rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-1.0, high=1.0),))

BOTH_REPLACE = rl.ReplayMemoryParameters(
    relabelling=rl.HindsightParameters(ratio=0.0),
    parts=(rl.HindsightActionParameters(penalty=-1.0),),
)

IN_HINDSIGHT = rl.ReplayMemoryParameters(
    relabelling=rl.HindsightParameters(), parts=(rl.HindsightActionParameters(),)
)

CHANGES = [NORMALISED, rl.ObservationClippingFilter(low=-0.3, high=0.3), hindsight.Halved()]

BELOW = "level 'top': HIRO relabels sub-goals by level 'low' below, which"


@parameter_class
class Latent(rl.GoalSpace):
    """Goals that are no elements of an observation."""

    def achieved(self, observation):
        return super().achieved(observation) * 0.5


LATENT = Latent(**{each.name: getattr(hiro.GOALS, each.name) for each in fields(hiro.GOALS)})

ONE, TWO = rl.OptionSpace(count=1), rl.OptionSpace(count=2)
ENDING = skills.EndingPPOParameters(name="skill")
NORMALISED_OPTIONS = replace(skills.option_critic(), input_filter=seeing("option", NORMALISED))
BOUNDED = rl.CriticParameters(bounds=(-9.0, 0.0))
UNTIMED = {
    "parts": (rl.StopOnFailure(when="always"),),
    "horizon": None,
    "agent": hac.agent(actions=None, bound_values=False),
    "goal_space": hac.TIMED,
}
REWARDED = {"parts": (rl.StopOnFailure(when="always", reward=0.5),)}
WHOLE = replace(hac.PLACES, elements=None)
PLAIN = replace(hiro.GOALS, relative=False, reach=None)
ABSOLUTE = replace(hiro.GOALS, observed="absolute")
FOUR = rl.GoalSpace(low=(-1.0,) * 4, high=(1.0,) * 4, threshold=(0.1,) * 4)
NO_GOAL, NOTHING = seeing("achieved_goal", NONE), seeing("observation", NONE)
SCALED = rl.InputFilter(reward=(rl.RewardRescaleFilter(factor=0.1),))
NO_X = seeing(
    "observation",
    rl.ObservationReductionBySubPartsNameFilter(
        names=("x", "y", "vx", "vy"), sub_parts=("x",), method="discard"
    ),
)
READS, ADVICE = "agent 'agent': hindsight reads goals from ...", "normalise_observations"
LAST_TWO = replace(graph.PLACES, elements=(2, 3))
PAID_BY_DISTANCE = replace(costs.PLACES, reward="dense")
WITHOUT_AGENT = replace(costs.at(), agent_below=None)


def hiro_over_group():
    top = shared.above(lambda name: rl.HIROAgentParameters(name=name))
    shared.manager(shared.sharing(shared.walker), top)


def in_turn(agent):
    """An upper level of two agents that act in turn, the second of which never learns."""
    agents = (agent, rl.UniformAgentParameters(name="other"))
    members = tuple(rl.GroupMember(agent=each) for each in agents)
    return rl.AgentGroupParameters(members=members, arbiter=rl.Turns())


def options(agent, space):
    return lambda: small.stack(agent, space)


def diayn(**seen):
    discriminator = rl.DiscriminatorParameters(torso=small.SMALL, **seen)
    agent = replace(skills.diayn(), discriminator=discriminator)
    return options(agent, rl.OptionSpace(count=3))


def agents_of_two(agent, space=TWO):
    return options(rl.SkillAgentsParameters.of(agent, count=2), space)


def stop_low_level():
    top, low = hac.stack((4, 3))
    hac.parameters((top, replace(low, parts=(rl.StopOnFailure(),))))


def test_low_level():
    top, low = hac.stack((4, 3))
    hac.parameters((top, replace(low, parts=(rl.SubGoalTesting(),))))


test_low_level.__test__ = False


def hac_without_goals():
    hac.built(hac.parameters(environment=rl.PointMassParameters()))


def hac_levels(position=0, **changes):
    def call():
        levels = list(hac.stack((4, 3)))
        levels[position] = replace(levels[position], **changes)
        hac.built(hac.parameters(tuple(levels)))

    return call


@parameter_class
class Paid(rl.GoalSpace):
    """Goals that pay 1 where they are reached."""

    def judge(self, goal, achieved, before=None):
        verdict = super().judge(goal, achieved)
        return verdict._replace(reward=verdict.reached.astype(float))


PAID = Paid(**{each.name: getattr(hac.PLACES, each.name) for each in fields(rl.GoalSpace)})


def dense(position, **agent):
    goals = replace(hac.PLACES, reward="dense")
    return hac_levels(position, goal_space=goals, agent=hac.agent(**agent))


def penalty(value):
    return hac.agent(actions=rl.HindsightActionParameters(penalty=value))


def hac_learner(**changes):
    return lambda: hac.agent(learner=replace(hac.agent().learner, **changes))


def hiro_stack(*args, **changes):
    return lambda: created(hiro.stack(*args, **changes))


def hiro_alone():
    environment = rl.GoalPointMassParameters()
    parameters = rl.BasicGraphParameters(agent=hiro.top_agent(), environment=environment)
    rl.BasicRLGraphManager(parameters).create_graph(rl.Runtime(device="cpu"))


def guided(*, low=None, top=None, **changes):
    return lambda: created(guide.stack(guide.top_agent(**(top or {})), low, **changes))


def guided_low(**changes):
    return rl.TD3AgentParameters(**guide.SETTINGS, **changes)


def in_hindsight(agent, **filters):
    return lambda: created(hindsight.stack(agent(**filters)))


def hindsight_alone(**filters):
    memory = rl.ReplayMemoryParameters(
        capacity=5_000, relabelling=rl.HindsightParameters(goal=hindsight.GOALS)
    )
    agent = rl.DDPGAgentParameters(name="arm", memory=memory, **filters)
    params = replace(hindsight.stack(hindsight.hac()), levels=(rl.LevelParameters(agent=agent),))
    return lambda: created(params)


def critic_steps(place):
    return lambda: rl.CriticSteps().build("agent 'g'", place, ())


def grid_with_critic(every):
    context = AgentContext(spaces=costs.SPACES, num_envs=1, place=costs.at())
    params = rl.GraphAgentParameters(places=rl.GridPlaces(), costs=rl.CriticSteps(every=every))
    return lambda: params.build(context)


def planner(place=None, observed=None, **fields):
    return lambda: graph.build(place, observed, **fields)


def load_graph(into, saved):
    return lambda: into().load_policy(saved().policy_state_dict())


def wide_grid():
    wide = replace(graph.PLACES, high=(8.0, 8.0))
    return graph.build(graph.at(own=wide, sub_goal=wide), places=rl.GridPlaces(spacing=2.0))


def fine_grid():
    return graph.build(places=rl.GridPlaces(spacing=0.5))


def fewer_edges():
    return graph.build(places=rl.FarthestPoints(neighbours=1))


def visited_points():
    return graph.visited([0, 0], [2, 0], [2, 2])


def visited_grid(low):
    grid = rl.GridPlaces(spacing=1.0, visited=True).build(low, low + 4, 2)
    places.visit(grid, [low + 2])
    return grid


def load_grid(low, state):
    return lambda: visited_grid(low).load_state_dict(state)


def load_points():
    flat = rl.FarthestPoints().build(places.LOW[:2], places.HIGH[:2], 2)
    flat.load_state_dict(places.cover().state_dict())


def turning(which):
    goals = place_space.goals
    turned = {"own": goals((0, 1)), "sub_goal": goals((0, 1)), "conditions": goals((4,))}
    size = turned[which].size
    turned[which] = replace(turned[which], low=(-3.0,) * size, high=(3.0,) * size, angles=(0,))
    place = graph.at(own=turned["own"], sub_goal=turned["sub_goal"])
    return lambda: PlaceSpace.between(
        place, "graph", fixed_goal=(), conditions=turned["conditions"]
    )


CASES = {
    rl.ParameterError: [
        (
            lambda: replace(skills.diayn(), memory=rl.ReplayMemoryParameters(n_step=3)),
            "n_step must be 1",
        ),
        (stop_low_level, "level 'low' stops on failure, and no level"),
        (hac_learner(name="upper"), "learner.name ... got 'upper'; set HACAgentParameters.name"),
        (hac_learner(memory=IN_HINDSIGHT), "relabelling must be None, ... strategy and ratio"),
        (hac_learner(memory=BOTH_REPLACE), "learner.memory.relabelling must be None"),
        (hac_learner(critic=BOUNDED), "bounds must be None, got (-9.0, 0.0): ... bound_values=Fal"),
        (lambda: hac.agent("sac", bound_values=True), "SAC's values count entropy"),
        (test_low_level, "level 'low' has SubGoalTesting(rate=0.3) and no level below it to test"),
        (lambda: hiro.top_agent(memory=BOTH_REPLACE), "both replace sub-goals"),
        (lambda: hiro.top_agent(memory=None), "memory must be ReplayMemoryParameters, got None"),
    ],
    rl.ConfigurationError: [
        (options(skills.diayn(), LINE), "discriminates between options, and needs a level with"),
        (options(skills.diayn(), ONE), "discriminates between options, and needs a level with"),
        (options(skills.option_critic(), LINE), "ends options, and needs a level with"),
        (options(skills.option_critic(), skills.SPACE), "leave out OptionSpace.rewards"),
        (options(NORMALISED_OPTIONS, option_critic.OPTIONS), "InputFilter changes 'option'"),
        (agents_of_two(small.ppo("skill"), LINE), "has 2 agents ... OptionSpace(count=2), got"),
        (agents_of_two(small.ppo("skill"), ONE), "has 2 agents ... OptionSpace(count=2), got"),
        (agents_of_two(ENDING), "member 'skill_0' ends ... (EndingPPO.ends)"),
        (agents_of_two(skills.option_critic()), "all of which it acts for"),
        (
            hac_levels(agent=in_turn(hac.agent(name="hac"))),
            "agent 'hac' acts in turn: ... hindsight",
        ),
        (
            lambda: created(hiro.stack(in_turn(hiro.top_agent(name="hiro")))),
            "agent 'hiro' acts in turn: ... HIRO relabels the sub-goal of a single decision; leave",
        ),
        (hac_levels(parts=(rl.StopOnFailure(),)), "level 'top': hindsight actions ... choose one"),
        (hac_levels(**UNTIMED), "level 'top': ... come from the environment, ... no time"),
        (hac_levels(1, goal_space=WHOLE), "level 'low': the goal has 2 elements ... has 4; name"),
        (hac_levels(goal_space=LINE), "level 'top': ... 'desired_goal' has 2 ... goal space 1"),
        (dense(0), "level 'top': values are bounded ... set HACAgentParameters.bound_v"),
        (dense(1), "level 'low': values are bounded ... set HACAgentParameters.bound_v"),
        (hac_levels(1, goal_space=PAID), "level 'low': ... sparse ... Paid.judge makes others"),
        (
            dense(0, **hac.FREE),
            "'top': the penalty of a missed test ... other rewards (GoalSpace.reward='dense')",
        ),
        (hac_levels(agent=penalty(-5.0)), "bounded by -4 and 0, and ... penalty is"),
        (hac_levels(**REWARDED), "bounded by -4 and 0, and ... StopOnFailure.reward is"),
        (hiro_alone, "level 'main': HIRO needs a level below"),
        (hiro_stack(low=hiro.top_agent()), "level 'low': HIRO needs a level below it"),
        (hiro_stack(goals=PLAIN), "level 'top': HIRO needs relative goals below it"),
        (hiro_stack(goals=ABSOLUTE), "level 'top': HIRO needs relative goals below it"),
        (hiro_stack(goals=rl.OptionSpace(count=3)), "level 'top': this agent acts in a flat Box"),
        (hiro_stack(goals=LATENT), "correction of HIRO computes with goals that are elements"),
        (hiro_stack(frozen=True), f"{BELOW} remembers nothing while it is frozen"),
        (
            hiro_stack(low=rl.PPOAgentParameters()),
            f"{BELOW} needs ... replay memory ... got PPOAgent",
        ),
        *(
            (hiro_stack(low=hiro.low_agent(input_filter=seeing(rl.GOAL_KEY, each))), message)
            for message in (f"{BELOW} changes 'desired_goal' by its InputFilter",)
            for each in CHANGES
        ),
        *(
            (hiro_stack(hiro.top_agent(input_filter=seeing("achieved_goal", each))), message)
            for message in (
                "agent 'agent': ... 'correction' needs 'achieved_goal' as the environment shows it",
            )
            for each in CHANGES
        ),
        (hiro_over_group, "HIRO needs a level below it that receives"),
        (guided(frozen=True), "'low' below, which is frozen"),
        (guided(low=rl.PPOAgentParameters()), "needs an agent with a replay memory"),
        (guided(horizon=None), "set SubGoalGuideParameters.adjacency.steps"),
        (guided(low=guided_low(input_filter=NO_GOAL)), "changes 'achieved_goal', where its"),
        (guided(top={"output_filter": LINEAR}), "set output_filter=None"),
        (guided(top={"input_filter": NOTHING}), "InputFilter must not change them"),
        (guided(goals=FOUR), "must be seen absolutely and have the 4 elements ... got 2"),
        (guided(low=guided_low(actor_terms=(guide.HRAC,))), "none to a level below; leave it out"),
        *(
            (in_hindsight(agent, output_filter=rl.OutputFilter(action=(each,))), message)
            for message in (
                "'top': agent 'agent': HindsightActionParameters ... LinearBoxToBoxMap",
            )
            for agent, each in (
                (hindsight.hac, hindsight.OneWay()),
                (hindsight.td3, hindsight.OneWay()),
                (hindsight.td3, rl.BoxMasking(low=-0.5, high=0.5)),
                (hindsight.dqn, rl.BoxDiscretization(num_bins=5)),
            )
        ),
        *(
            (in_hindsight(agent, input_filter=seeing(key, each)), f"{READS} '{key}' ... {ADVICE}")
            for agent in (hindsight.hac, hindsight.td3)
            for key in ("achieved_goal", "desired_goal", "observation")
            for each in CHANGES
        ),
        (in_hindsight(hindsight.hac, input_filter=NO_X), f"{READS} 'observation' ... {ADVICE}"),
        (in_hindsight(hindsight.hac, input_filter=SCALED), "leave InputFilter.reward out"),
        (in_hindsight(hindsight.td3, input_filter=SCALED), "'top': agent 'agent': hindsight"),
        (hindsight_alone(input_filter=SCALED), "agent 'arm': hindsight"),
        (hindsight_alone(input_filter=seeing(rl.GOAL_KEY, NORMALISED)), "agent 'arm': hindsight"),
        (critic_steps(costs.at(goal=PAID_BY_DISTANCE)), "reward='dense' and a discount"),
        (critic_steps(costs.at(discount=0.0)), "above 0; got ... of 0.0 at level 'low'"),
        (critic_steps(WITHOUT_AGENT), "agent 'g': costs= ... must be TD3, DDPG or SAC"),
        (grid_with_critic(500), "GridPlaces may never ... set places=FarthestP"),
        (grid_with_critic(None), "GridPlaces may never ... set places=FarthestP"),
        (
            planner(graph.at(own=CUBE), places=rl.FarthestPoints()),
            "first 2 of ... places=GridPlaces",
        ),
        (planner(graph.at(own=CUBE), places=rl.GridPlaces(visited=True)), "from the start; got"),
        (planner(graph.at(own=CUBE), places=rl.GridPlaces(spacing=(1.0, 0.5))), "goal, 3, or"),
        (planner(LevelPlace()), "its level has no goals; both levels need a GoalSpace"),
        (planner(replace(graph.at(), below=None)), "and no level below it has goals"),
        (planner(graph.at(sub_goal=LAST_TWO)), "elements=(0, 1) and (2, 3)"),
        (planner(graph.at(own=replace(LINE, elements=None))), "got 1 ... and 2"),
        (planner(graph.at(own=RELATIVE)), "got 2 (relative), fixed_goal=() and 2"),
        (planner(places=rl.GridPlaces(spacing=0.001)), "spacing=0.001 makes 16,000,000 places"),
        (planner(fixed_goal=(7.0,)), "fixed_goal=(7.0,) must lie within ... (4.0,)"),
        (turning("own"), "angles=(0,) turn full circle; leave"),
        (turning("sub_goal"), "angles=(0,) turn full circle; leave"),
        (turning("conditions"), "angles=(0,) turn full circle; leave"),
    ],
    SpaceError: [
        (diayn(key="option"), "key 'option' is not a Box ... observation"),
        (diayn(key="place"), "key 'place' is not a Box that the agent observes"),
        (diayn(elements=(0, 4)), "elements (0, 4) do not all lie in ... 'observation' of 4"),
        (hac_without_goals, "level 'top': the goals come from the"),
        (load_graph(wide_grid, graph.build), "those of another grid"),
        (load_graph(fine_grid, graph.build), "agent 'graph' has another graph than the one"),
        (load_graph(fewer_edges, visited_points), "another graph"),
        (
            planner(observed={"x": 2, rl.GOAL_KEY: 2}, conditions=replace(LINE, key="y")),
            "'y' is not",
        ),
        (load_grid(places.LOW + 1, {}), "those of another grid"),
        (load_grid(places.LOW + 1, visited_grid(places.LOW).state_dict()), "those of another grid"),
        (load_points, "goals of another kind"),
    ],
}
"""Calls by kind of error or warning, and parts of the message in their order."""


@pytest.mark.parametrize(
    ("kind", "call", "message"), [(kind, *case) for kind in CASES for case in CASES[kind]]
)
def test_hierarchies_invalid_input_error(kind, call, message):
    check_refused(call, kind, message)
