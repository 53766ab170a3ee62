"""HAC above goals that the agent below ends itself."""

from dataclasses import replace

import numpy as np

import coach_rl as rl
from coach_rl.core.records import End, missed
from tests.agents.goal_stacks import RELATIVE, SETTINGS, stack
from tests.agents.test_own_goal_rewards import PLACE, ImpatientParameters
from tests.builders import agents_of, created


def test_hac_above_goals_that_the_agent_ends_penalises_none_of_these():
    memory = rl.ReplayMemoryParameters(extras=("below",))
    learner = rl.DDPGAgentParameters(
        learning=SETTINGS["learning"], update_mode="eager", memory=memory
    )
    params = stack(
        rl.HACAgentParameters(learner=learner),
        ImpatientParameters(**SETTINGS),
        training=900,
        horizon=3,
    )
    top, low = params.levels
    own = replace(RELATIVE, relative=False, reach=None, reward="sparse")
    top = replace(top, goal_space=own, horizon=5, parts=(rl.SubGoalTesting(rate=0.5),))
    manager = created(replace(params, levels=(top, low)))
    manager.run()
    found = agents_of(manager)[0].memory.sampler(400)
    below, action = found["/below"].numpy(), found["/actions"].numpy()
    penalised, ended = found["/rewards"].numpy() == -5.0, (below & End.OPTION) > 0
    assert penalised.any()
    assert missed(below[penalised]).all()
    there = found[f"/next_observations/{PLACE}"].numpy() - found[f"/observations/{PLACE}"].numpy()
    alone = ended & ((below & End.GOAL) == 0)
    assert alone.sum() > 20
    reach = np.array(RELATIVE.reach)
    np.testing.assert_allclose(action[alone], np.clip(there[alone], -reach, reach), atol=1e-6)
