"""DQN end to end on images: stacked, frames kept once, n-step, prioritised, dueling."""

import gymnasium
import numpy as np
import pytest

from coach_rl.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.architectures.gradient_step import AdamParameters, TargetSync
from coach_rl.architectures.q_network import QNetworkParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.core.clock import LinearSchedule
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.exploration_policies import EpsilonGreedy
from coach_rl.extensions.prioritised import PrioritisedParameters
from coach_rl.filters import InputFilter, ObservationStackingFilter
from coach_rl.graph_managers import BasicGraphParameters, BasicRLGraphManager, ScheduleParameters
from coach_rl.memories import ReplayMemoryParameters


class Dot(gymnasium.Env):
    """A dot goes left or right; it should reach the side that is lit. Best: 0.8 left, 0.9 right."""

    observation_space = gymnasium.spaces.Box(0, 255, (36, 36), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.goal, self.steps = 2, 3 * int(self.np_random.integers(2)), 0
        return self.image(), {}

    def step(self, action):
        self.steps += 1
        self.place = int(np.clip(self.place + 2 * action - 1, 0, 3))
        there = self.place == self.goal
        return self.image(), float(there) - 0.1, there, self.steps >= 20, {}

    def image(self):
        image = np.zeros((36, 36), np.uint8)
        image[10:20, 2 + 8 * self.place : 8 + 8 * self.place] = 255
        image[30:34, 2 + 8 * self.goal : 10 + 8 * self.goal] = 200
        return image


@pytest.fixture(autouse=True, scope="module")
def registered():
    gymnasium.register("coach_rl_test/Dot-v0", entry_point=lambda **_: Dot())
    yield
    del gymnasium.registry["coach_rl_test/Dot-v0"]


def test_it_learns_from_frames_that_are_kept_once():
    manager = BasicRLGraphManager(
        BasicGraphParameters(
            agent=DQNAgentParameters(
                algorithm=DQNAlgorithmParameters(discount=0.9, target_sync=TargetSync(every=50)),
                learning=LearningParameters(batch=32, updates_per_step=0.4, learning_starts=200),
                memory=ReplayMemoryParameters(
                    capacity=2_000,
                    frame_stack=("observation",),
                    n_step=2,
                    prioritised=PrioritisedParameters(),
                ),
                exploration=EpsilonGreedy(
                    epsilon=LinearSchedule(start=1.0, end=0.05, over=EnvironmentSteps(600))
                ),
                network=QNetworkParameters(
                    torso=TorsoParameters(middleware=(32,), activation="relu", orthogonal=False),
                    dueling=True,
                ),
                optimizer=AdamParameters(learning_rate=1e-3),
                input_filter=InputFilter(
                    observation={"observation": (ObservationStackingFilter(stack_size=3),)}
                ),
                update_mode="eager",
            ),
            environment=GymnasiumParameters(level="coach_rl_test/Dot-v0"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(800),
                evaluation_interval=EnvironmentSteps(800),
                evaluation_episodes=EnvironmentEpisodes(10),
            ),
            num_envs=4,
        )
    )
    with manager:
        manager.create_graph(Runtime(seed=1, device="cpu"))
        records = [record for record in manager.improve() if record.kind == "evaluation"]
    # Always one way: half the episodes take 20 steps and cost 2, the mean is -0.6 or less.
    assert records[-1].scalars["evaluation/reward_mean"] >= 0.8
