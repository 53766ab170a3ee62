"""Every environment of ours keeps the contract."""

import pytest
from little_environments import TAXI

from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.mujoco import MujocoParameters
from coach_rl.environments.toy import (
    BitFlipParameters,
    CablesParameters,
    ChainParameters,
    GatesParameters,
    GoalPointMassParameters,
    OneStepParameters,
    PlatformParameters,
    PointMassParameters,
    SteadyPayParameters,
    TMazeParameters,
)
from coach_rl.extensions.testing import ENVIRONMENT_CHECKS, EnvironmentContract, Trial

TOYS = {
    "bit_flip": BitFlipParameters(bits=4),
    "steady_pay": SteadyPayParameters(max_episode_steps=7),
    "one_step": OneStepParameters(),
    "one_step_continuous": OneStepParameters(continuous=True),
    "cables": CablesParameters(places=4),
    "cables_without_masks": CablesParameters(places=4, masked=False),
    "chain": ChainParameters(length=4),
    "slippery_chain": ChainParameters(length=4, slip=0.2),
    "index_chain": ChainParameters(observation="index"),
    "point_mass": PointMassParameters(max_episode_steps=8),
    "platform": PlatformParameters(max_episode_steps=8),
    "t_maze": TMazeParameters(length=2, max_episode_steps=6),
    "gates": GatesParameters(max_episode_steps=12),
    "goal_point_mass": GoalPointMassParameters(max_episode_steps=8),
    "ending_goals": GoalPointMassParameters(threshold=0.4, terminate=True, max_episode_steps=20),
}
GYMNASIUM = {
    "cart_pole": GymnasiumParameters(level="CartPole-v1"),
    "pendulum": GymnasiumParameters(level="Pendulum-v1", max_episode_steps=8),
    "acrobot": GymnasiumParameters(level="Acrobot-v1", max_episode_steps=8),
    "frozen_lake": GymnasiumParameters(level="FrozenLake-v1"),
    "taxi": GymnasiumParameters(level=TAXI, max_episode_steps=8),
    "dicts": GymnasiumParameters(level="little_environments:Walk"),
    "tuples": GymnasiumParameters(level="little_environments:Gadget"),
    "one_buffer": GymnasiumParameters(
        level="little_environments:OneBuffer", kwargs={"trouble_at": 99}
    ),
    "rude": GymnasiumParameters(level="little_environments:Rude"),
    "wrapped": GymnasiumParameters(
        level="Pendulum-v1",
        max_episode_steps=8,
        wrappers=(("gymnasium.wrappers:FrameStackObservation", {"stack_size": 3}),),
    ),
}
MUJOCO = {
    "hopper": MujocoParameters(level="Hopper-v5", threads=1),
    "half_cheetah": MujocoParameters(level="half_cheetah", max_episode_steps=8, threads=2),
    "reacher": MujocoParameters(level="reacher", max_episode_steps=9, threads=3),
    "humanoid": MujocoParameters(level="humanoid", max_episode_steps=5, threads=1),
}
ALL = {**TOYS, **GYMNASIUM, **MUJOCO}
SELDOM = {
    "acrobot", "cables_without_masks", "half_cheetah", "index_chain", "one_step_continuous",
    "reacher", "slippery_chain", "taxi",
}  # fmt: skip
"""Those of which a sibling of the same class is tried each time."""
STEPS = {"platform": 18}
"""Steps of those that are slow: two episodes and more."""
EACH_TIME = [pytest.param(name, marks=pytest.mark.slow if name in SELDOM else ()) for name in ALL]


@pytest.mark.drawn(one_of=3, each="check")
@pytest.mark.parametrize("name", EACH_TIME)
@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=lambda check: check.__name__)
def test_contract(name, check):
    steps = 40 if name in MUJOCO else STEPS.get(name, 30)
    single = ALL[name].recipe().make if name in GYMNASIUM else None
    build = lambda num_envs: ALL[name].build(num_envs=num_envs)  # noqa: E731
    check(Trial(build=build, steps=steps, single=single))


class TestWorkers(EnvironmentContract):
    steps = 14
    level = "little_environments:Walk"

    def build(self, num_envs):
        return GymnasiumParameters(
            level=self.level,
            vectorization="subprocess",
            processes=2,
            start_method="fork",  # many are built here, and fork is quick
        ).build(num_envs=num_envs)


@pytest.mark.slow
class TestRudeWorkers(TestWorkers):
    level = "little_environments:Rude"


@pytest.mark.drawn(one_of=2)
class TestReadyVector(EnvironmentContract):
    steps = 14
    partial_sends = False
    saves = False
    mode = "SameStep"

    def build(self, num_envs):
        return GymnasiumParameters(
            level="little_environments:walks",
            kwargs={"mode": self.mode},
            vectorization="vector",
        ).build(num_envs=num_envs)


class TestReadyVectorThatWaits(TestReadyVector):
    mode = "Disabled"
