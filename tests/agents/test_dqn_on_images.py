"""DQN end to end on images: stacked, frames kept once, n-step, prioritised, dueling."""

import gymnasium
import numpy as np
import pytest

import coach_rl as rl


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
    manager = rl.BasicRLGraphManager(
        rl.BasicGraphParameters(
            agent=rl.DQNAgentParameters(
                algorithm=rl.DQNAlgorithmParameters(
                    discount=0.9, target_sync=rl.TargetSync(every=50)
                ),
                learning=rl.LearningParameters(batch=32, updates_per_step=0.4, learning_starts=200),
                memory=rl.ReplayMemoryParameters(
                    capacity=2_000,
                    frame_stack=("observation",),
                    n_step=2,
                    prioritised=rl.PrioritisedParameters(),
                ),
                exploration=rl.EpsilonGreedy(
                    epsilon=rl.LinearSchedule(start=1.0, end=0.05, over=rl.EnvironmentSteps(600))
                ),
                network=rl.QNetworkParameters(
                    torso=rl.TorsoParameters(middleware=(32,), activation="relu", orthogonal=False),
                    dueling=True,
                ),
                optimizer=rl.AdamParameters(learning_rate=1e-3),
                input_filter=rl.InputFilter(
                    observation={"observation": (rl.ObservationStackingFilter(stack_size=3),)}
                ),
                update_mode="eager",
            ),
            environment=rl.GymnasiumParameters(level="coach_rl_test/Dot-v0"),
            schedule=rl.ScheduleParameters(
                training=rl.EnvironmentSteps(800),
                evaluation_interval=rl.EnvironmentSteps(800),
                evaluation_episodes=rl.EnvironmentEpisodes(10),
            ),
            num_envs=4,
        )
    )
    with manager:
        manager.create_graph(rl.Runtime(seed=1, device="cpu"))
        records = [record for record in manager.improve() if record.kind == "evaluation"]
    # Always one way: half the episodes take 20 steps and cost 2, the mean is -0.6 or less.
    assert records[-1].scalars["evaluation/reward_mean"] >= 0.8
