"""Every environment of ours keeps the contract."""

import pytest
from little_environments import TAXI

import coach_rl as rl
from coach_rl.extensions.testing import ENVIRONMENT_CHECKS, EnvironmentContract, Trial

TOYS = {
    "bit_flip": rl.BitFlipParameters(bits=4),
    "steady_pay": rl.SteadyPayParameters(max_episode_steps=7),
    "one_step": rl.OneStepParameters(),
    "one_step_continuous": rl.OneStepParameters(continuous=True),
    "cables": rl.CablesParameters(places=4),
    "cables_without_masks": rl.CablesParameters(places=4, masked=False),
    "chain": rl.ChainParameters(length=4),
    "slippery_chain": rl.ChainParameters(length=4, slip=0.2),
    "index_chain": rl.ChainParameters(observation="index"),
    "point_mass": rl.PointMassParameters(max_episode_steps=8),
    "platform": rl.PlatformParameters(max_episode_steps=8),
    "t_maze": rl.TMazeParameters(length=2, max_episode_steps=6),
    "gates": rl.GatesParameters(max_episode_steps=12),
    "goal_point_mass": rl.GoalPointMassParameters(max_episode_steps=8),
    "ending_goals": rl.GoalPointMassParameters(threshold=0.4, terminate=True, max_episode_steps=20),
}
GYMNASIUM = {
    "cart_pole": rl.GymnasiumParameters(level="CartPole-v1"),
    "pendulum": rl.GymnasiumParameters(level="Pendulum-v1", max_episode_steps=8),
    "acrobot": rl.GymnasiumParameters(level="Acrobot-v1", max_episode_steps=8),
    "frozen_lake": rl.GymnasiumParameters(level="FrozenLake-v1"),
    "taxi": rl.GymnasiumParameters(level=TAXI, max_episode_steps=8),
    "dicts": rl.GymnasiumParameters(level="little_environments:Walk"),
    "tuples": rl.GymnasiumParameters(level="little_environments:Gadget"),
    "one_buffer": rl.GymnasiumParameters(
        level="little_environments:OneBuffer", kwargs={"trouble_at": 99}
    ),
    "rude": rl.GymnasiumParameters(level="little_environments:Rude"),
    "old_generator": rl.GymnasiumParameters(
        level="little_environments:OldGenerator", kwargs={"trouble_at": 99}
    ),
    "no_generator": rl.GymnasiumParameters(
        level="little_environments:NoGenerator", kwargs={"trouble_at": 99}
    ),
    "wrapped": rl.GymnasiumParameters(
        level="Pendulum-v1",
        max_episode_steps=8,
        wrappers=(("gymnasium.wrappers:FrameStackObservation", {"stack_size": 3}),),
    ),
}
MUJOCO = {
    "hopper": rl.MujocoParameters(level="Hopper-v5", threads=1),
    "half_cheetah": rl.MujocoParameters(level="half_cheetah", max_episode_steps=8, threads=2),
    "reacher": rl.MujocoParameters(level="reacher", max_episode_steps=9, threads=3),
    "humanoid": rl.MujocoParameters(level="humanoid", max_episode_steps=5, threads=1),
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
        return rl.GymnasiumParameters(
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
        return rl.GymnasiumParameters(
            level="little_environments:walks",
            kwargs={"mode": self.mode},
            vectorization="vector",
        ).build(num_envs=num_envs)


class TestReadyVectorThatWaits(TestReadyVector):
    mode = "Disabled"
