"""Options that are learned, by any kind of agent: stopped in mid-skill, alone or among many."""

from functools import partial

import numpy as np
import pytest

from coach_rl.core.options import OptionSpace
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.scripts.scripted_agent import UniformAgentParameters
from coach_rl.extensions.skills.skill_agents import SkillAgentsParameters
from coach_rl.extensions.testing.states import assert_same_state
from tests.agents.resuming import after, amid, assert_resumes
from tests.agents.small_agents import learning_top, low_agent, ppo, stack
from tests.extensions.skills.skill_stacks import KINDS, SPACE, option_critic


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("kind", KINDS)
def test_stack_stopped_in_mid_skill_resumes_bit_for_bit(kind, tmp_path):
    schedule = {"heatup": EnvironmentSteps(40), "progress_interval": EnvironmentSteps(5)}
    build = partial(stack, *KINDS[kind], top=learning_top(), **schedule)
    assert_resumes(build, tmp_path, after(35, amid), after(295, amid))  # in heat-up; among updates


@pytest.mark.parametrize(
    ("agent", "space"),
    [
        (SkillAgentsParameters.of(UniformAgentParameters(), count=2), SPACE),
        (SkillAgentsParameters.of(ppo("skill", 1_000, normalised=False), count=2), SPACE),
        (option_critic(ppo("skills", 1_000, normalised=False)), OptionSpace(count=3)),
    ],
    ids=["random skills", "own networks", "option critic"],
)
def test_a_row_is_the_same_alone_and_among_many(agent, space):
    """To rounding, which differs with the number of rows that a network sees at once."""
    ways = []
    for num_envs in (1, 4):
        graph_manager, way = stack(agent, space, num_envs=num_envs), []
        low = graph_manager.graph.training.levels[1]
        low.listeners.append(lambda seen, action, way=way: way.append([*seen.values(), action]))
        list(graph_manager.train_and_act(EnvironmentSteps(30 * num_envs)))
        ways.append([[values[0] for values in made] for made in way])
        graph_manager.close()
    assert len({tuple(made[-2]) for made in ways[0]}) > 1, "the test wants several options"
    for alone, among in zip(*ways, strict=True):
        for mine, other in zip(alone, among, strict=True):
            np.testing.assert_allclose(mine, other, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_an_equal_stack_starts_from_the_skills_of_another(kind):
    agent, space = KINDS[kind]
    learned, new = stack(agent, space), stack(agent, space, seed=3)
    list(learned.improve())
    low_agent(new).load_policy(low_agent(learned).policy_state_dict())
    assert_same_state(low_agent(new).policy_state_dict(), low_agent(learned).policy_state_dict())
    for graph_manager in (learned, new):
        graph_manager.close()


@pytest.mark.parametrize("kind", KINDS)
def test_the_log_tells_how_options_were_used(kind):
    agent, space = KINDS[kind]
    graph_manager = stack(agent, space)
    records = [r for r in graph_manager.improve() if r.kind == "level" and r.level == "low"]
    evaluated = [r.scalars for r in records if "evaluation_level/sub_episodes" in r.scalars][-1]
    shares = [evaluated[f"evaluation_level/option_share/{k}"] for k in range(space.count)]
    assert sum(shares) == pytest.approx(1)
    most = int(np.argmax(shares))
    assert 1 <= evaluated[f"evaluation_level/option_decisions/{most}"] <= 5
    assert f"evaluation_level/option_return/{most}" in evaluated
    ended = [v for name, v in evaluated.items() if "option_ended_share" in name]
    assert (max(ended) > 0) == (kind == "option critic" or bool(space.ends))
    graph_manager.close()
