from dataclasses import replace

import decisions
import numpy as np
import pytest

import coach_rl as rl
from coach_rl.agents.stages.info_columns import InfoColumns
from coach_rl.core.errors import NonFiniteError
from coach_rl.core.parts import trajectories_of
from tests.builders import flat

INFO = "/infos/x_velocity"


def trajectories(agent, steps=48, then=lambda agent: None):
    world = rl.MujocoParameters(level="half_cheetah")
    parameters = flat(agent, world, num_envs=4, training=steps)
    with rl.BasicRLGraphManager(parameters) as graph_manager:
        graph_manager.run()
        agent = graph_manager.graph.agents["main"]
        then(agent)
        return trajectories_of(agent)


def test_replay_keeps_infos_and_shows_them_in_batches():
    def check(agent):
        batch = agent.memory.sample(8)
        assert batch.extras["infos/x_velocity"].shape == (8,)
        assert np.isin(batch.extras["infos/x_velocity"], trajectories_of(agent)[INFO]).all()

    agent = rl.DDPGAgentParameters(
        infos=("x_velocity",),
        memory=rl.ReplayMemoryParameters(capacity=200),
        learning=rl.LearningParameters(batch=4, learning_starts=16),
    )
    shown = trajectories(agent, then=check)
    assert shown[INFO].shape == (4, 12)
    assert shown[INFO].std() > 0
    without = trajectories(replace(agent, infos=()))
    assert INFO not in without
    np.testing.assert_array_equal(shown["/rewards"], without["/rewards"])


def test_rollouts_keep_infos():
    algorithm = rl.PPOAlgorithmParameters(rollout=rl.EnvironmentSteps(64))
    agent = rl.PPOAgentParameters(algorithm=algorithm, infos=("reward_forward",))
    shown = trajectories(agent, steps=96)
    control = shown["/rewards"] - shown["/infos/reward_forward"]
    assert (control < 0).all()  # the reward is forward minus control


def outcome(**info):
    return decisions.outcome({}, rows=np.arange(2), info=info)


def test_an_info_that_is_not_reported_is_said_once():
    columns = InfoColumns(("cost",), agent="ppo")
    with pytest.warns(rl.CoachWarning) as said:
        kept = [columns.of(outcome(speed=np.ones(2))) for _ in range(2)]
    assert len(said) == 1
    assert kept[1]["infos/cost"].tolist() == [0, 0]


def test_info_that_float32_makes_infinite_is_refused():
    columns = InfoColumns(("cost",), agent="ppo")
    endless = columns.of(outcome(cost=np.array([np.inf, np.nan])))["infos/cost"]
    np.testing.assert_array_equal(endless, np.float32([np.inf, np.nan]))
    with pytest.raises(NonFiniteError, match=r"info 'cost'.* float32 makes infinite"):
        columns.of(outcome(cost=np.array([0.0, 1e300])))
