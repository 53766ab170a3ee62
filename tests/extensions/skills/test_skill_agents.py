"""An agent for each option: each has its own transitions, all of them, and nothing else."""

import numpy as np
import pytest

from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters
from coach_rl.core.options import OptionSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import trajectories_of
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.skills.skill_agents import SkillAgentsParameters
from tests.agents.small_agents import low_agent, ppo, stack
from tests.extensions.skills.skill_stacks import is_far_off


def way_of_option_0(before, after, given):
    return after["observation"][:, 0] - before["observation"][:, 0]


def way_of_option_1(before, after, given):
    return 10 + after["observation"][:, 0] - before["observation"][:, 0]


SPACE = OptionSpace(
    count=3, rewards=(way_of_option_0, way_of_option_1, None), ends=(is_far_off, None, is_far_off)
)


def transitions(agent, name):
    """The transitions of each row in order: where from, where to, reward, terminated, truncated."""
    shown = {
        path.removeprefix(f"/agents/{name}"): values
        for path, values in trajectories_of(agent).items()
    }
    return [
        [
            (
                shown["/observations/observation"][row, time],
                shown["/next_observations/observation"][row, time],
                *(float(shown[f"/{key}"][row, time]) for key in ("rewards", "terminated")),
                bool(shown["/truncated"][row, time]),
            )
            for time in np.flatnonzero(shown["/mask"][row])
        ]
        for row in range(len(shown["/mask"]))
    ]


def test_each_agent_gets_exactly_the_transitions_of_its_own_option():
    """From where others have left the row, when an option comes back."""
    agents = SkillAgentsParameters.of(ppo("skill", 5_000, normalised=False), count=3)
    graph_manager = stack(agents, SPACE, num_envs=4)
    seen = []
    low = graph_manager.graph.training.levels[1]
    low.listeners.append(lambda shown, action: seen.append(shown))
    list(graph_manager.train_and_act(EnvironmentSteps(4 * 100)))
    members = low_agent(graph_manager).members
    expected = [[[] for _ in range(4)] for _ in range(3)]
    for shown in seen:
        for row in range(4):  # every row decides at every tick of the lowest level
            option = int(shown["option"][row].argmax())
            expected[option][row].append(shown["observation"][row])
    for option, (name, agent) in enumerate(members.items()):
        assert name == f"skill_{option}"
        for row, kept in enumerate(transitions(agent, name)):
            found = [each[0] for each in kept]
            np.testing.assert_array_equal(found, expected[option][row])
            for before, after, reward, terminated, truncated in kept:
                way = after[0] - before[0]
                due = {0: way, 1: 10 + way, 2: -np.hypot(*after[:2])}[option]
                assert reward == pytest.approx(due, abs=1e-5)
                is_far = option != 1 and abs(after[0]) > 0.4
                assert terminated == (is_far and option == 0), "final under a reward of its own"
                assert truncated or not (is_far and option == 2), "cut off under the environment's"
    graph_manager.close()


class EndingPPO(PPOAgent):
    def ends(self, row_state, rows, observation, clock):
        return np.ones(len(rows), np.bool_)


@parameter_class
class EndingPPOParameters(PPOAgentParameters):
    def build(self, context):
        return EndingPPO(self, context)
