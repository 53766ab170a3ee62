"""Two levels of plain agents on a point mass with a goal: presets that need the core alone."""

import coach_rl as rl

TORSO = rl.TorsoParameters(middleware=(16, 16))
PLACES = rl.GoalSpace(
    key="achieved_goal",
    low=(-1.0, -1.0),
    high=(1.0, 1.0),
    threshold=(0.1, 0.1),
    relative=True,
    reach=(0.5, 0.5),
    observed="relative",
    reward="dense",
)
"""Sub-goals are places at most 0.5 away; some are reached, others end at the horizon."""


def td3_above_td3(steps: int = 400) -> rl.GraphManager:
    """A TD3 agent that sets sub-goals for another."""
    top = rl.LevelParameters(name="top", agent=_td3(learning_starts=10, report_every=5))
    low = rl.LevelParameters(
        name="low",
        agent=_td3(learning_starts=60, report_every=20),
        goal_space=PLACES,
        horizon=5,
    )
    return _experiment(top, low, steps=steps, heatup=60)


def dqn_above_ppo(steps: int = 600) -> rl.GraphManager:
    """A DQN agent that chooses one of three options for a PPO agent, which sees the choice."""
    top = rl.DQNAgentParameters(
        algorithm=rl.DQNAlgorithmParameters(target_sync=rl.TargetSync(every=10)),
        learning=_learning(learning_starts=20, report_every=10),
        memory=rl.ReplayMemoryParameters(capacity=1_000),
        exploration=rl.EpsilonGreedy(epsilon=rl.ConstantSchedule(value=0.3)),
        network=rl.QNetworkParameters(torso=TORSO),
        optimizer=rl.AdamParameters(learning_rate=1e-3),
    )
    low = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(100), epochs=2, minibatch=50
        ),
        network=rl.ActorCriticParameters(torso=TORSO),
        optimizer=rl.AdamParameters(learning_rate=3e-3),
    )
    return _experiment(
        rl.LevelParameters(name="top", agent=top),
        rl.LevelParameters(name="low", agent=low, goal_space=rl.OptionSpace(count=3), horizon=4),
        steps=steps,
    )


def _td3(**learning: int) -> rl.TD3AgentParameters:
    """A small TD3 agent that explores with noise."""
    adam = rl.AdamParameters(learning_rate=5e-4)
    return rl.TD3AgentParameters(
        learning=_learning(**learning),
        memory=rl.ReplayMemoryParameters(capacity=1_000),
        exploration=rl.GaussianNoise(scale=rl.ConstantSchedule(value=0.2)),
        actor=rl.ActorParameters(torso=TORSO),
        critic=rl.CriticParameters(torso=TORSO),
        actor_optimizer=adam,
        critic_optimizer=adam,
    )


def _learning(**changes: int) -> rl.LearningParameters:
    return rl.LearningParameters(batch=16, updates_per_step=0.5, **changes)


def _experiment(*levels: rl.LevelParameters, steps: int, heatup: int = 0) -> rl.GraphManager:
    """The levels above a mass whose episodes end at its goal."""
    return rl.GraphManager(
        rl.GraphParameters(
            levels=levels,
            environment=rl.GoalPointMassParameters(
                reward="dense", terminate=True, max_episode_steps=30
            ),
            num_envs=4,
            reward_discount=0.99,
            schedule=rl.ScheduleParameters(
                training=rl.EnvironmentSteps(steps),
                heatup=rl.EnvironmentSteps(heatup),
                evaluation_interval=rl.EnvironmentSteps(steps),
                evaluation_episodes=rl.EnvironmentEpisodes(6),
                progress_interval=rl.EnvironmentSteps(steps // 4),
            ),
        )
    )
