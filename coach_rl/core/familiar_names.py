"""Names that other libraries give to settings and classes, and those here.

They come from Stable-Baselines3, CleanRL, Spinning Up, rl_games, Gymnasium and Coach. Only messages
about unknown names use them; the names themselves stay unknown. Light: imports nothing of ours.
"""

import re
from collections.abc import Collection

_SETTINGS = """
lr: learning_rate agent.optimizer.learning_rate agent.actor_optimizer.learning_rate
    agent.critic_optimizer.learning_rate
alpha_lr: temperature_learning_rate agent.temperature_optimizer.learning_rate
lr_schedule anneal_lr: agent.algorithm.learning_rate_schedule agent.learning_rate_schedule
actor_lr policy_lr pi_lr: actor_learning_rate agent.actor_optimizer.learning_rate
critic_lr q_lr qf_lr: agent.critic_optimizer.learning_rate
gamma discount_factor: discount agent.algorithm.discount
lam lambda_ gae: gae_lambda agent.algorithm.gae_lambda
n_steps num_steps rollout_length horizon_length: rollout agent.algorithm.rollout
num_consecutive_playing_steps: rollout agent.algorithm.rollout updates_per_step
    agent.learning.updates_per_step
n_epochs update_epochs num_epochs ppo_epochs optimization_epochs: epochs agent.algorithm.epochs
batch_size minibatch_size mini_batch_size: batch agent.learning.batch minibatch
    agent.algorithm.minibatch
num_minibatches n_minibatches nminibatches: minibatch agent.algorithm.minibatch
train_freq gradient_steps utd utd_ratio: updates_per_step agent.learning.updates_per_step
buffer_size replay_size memory_size max_size: agent.memory.capacity
ent_coef entropy_coef beta_entropy alpha: entropy agent.algorithm.entropy_coefficient temperature
    agent.algorithm.initial_temperature
autotune: agent.algorithm.learn_temperature
vf_coef value_coef critic_coef value_loss_coef: agent.algorithm.value_coefficient
max_grad_norm grad_norm clip_gradients: agent.optimizer.max_gradient_norm
    agent.actor_optimizer.max_gradient_norm
clip_range clip_coef clip_ratio e_clip clip_likelihood_ratio_using_epsilon: clip
    agent.algorithm.clip
clip_range_vf clip_vloss: agent.algorithm.value_clip
target_kl: agent.algorithm.stop_at_kl kl_target agent.algorithm.kl_target
norm_adv normalize_advantage: agent.algorithm.normalise_advantage
norm_obs normalize_observations normalize_input: agent.normalise_observations agent.input_filter
norm_reward normalize_reward: agent.algorithm.scale_returns
tau rate_for_copying_weights_to_target: agent.algorithm.target_sync.rate
target_update_interval target_network_frequency
    num_steps_between_copying_online_weights_to_target: target_period
    agent.algorithm.target_sync.every
hidden_sizes hidden_size net_arch policy_kwargs: layers agent.network.torso.middleware
    agent.actor.torso.middleware
activation_fn activation_function: agent.network.torso.activation agent.actor.torso.activation
n_envs n_env nenvs num_actors: num_envs
total_timesteps timesteps n_timesteps num_timesteps total_steps max_timesteps improve_steps: steps
    schedule.training
heatup_steps start_steps random_steps start_timesteps: heatup schedule.heatup
env env_id env_name environment_id task: level environment.level
episode_length max_ep_len time_limit: environment.max_episode_steps
eval_freq eval_interval steps_between_evaluation_periods: evaluation_interval
    schedule.evaluation_interval
n_eval_episodes eval_episodes evaluation_steps: schedule.evaluation_episodes
save_freq save_every save_interval checkpoint_freq: checkpoints.every_steps
checkpoint_save_secs: checkpoints.every_seconds
exploration_initial_eps start_e eps_start: epsilon agent.exploration.epsilon.start
exploration_final_eps end_e eps_end: agent.exploration.epsilon.end
exploration_fraction eps_decay: epsilon_steps agent.exploration.epsilon.over
exploration_noise action_noise noise_std: noise agent.exploration.scale
policy_noise target_policy_noise: agent.algorithm.target_noise
noise_clip: agent.algorithm.target_noise_clip
policy_frequency policy_freq: agent.algorithm.policy_delay
prioritized_replay per prioritized: agent.memory.prioritised
n_sampled_goal replay_k: agent.memory.hindsight.ratio
goal_selection_strategy: agent.memory.hindsight.strategy
weight_decay: agent.optimizer.l2 agent.critic_optimizer.l2
adam_eps: agent.optimizer.epsilon agent.actor_optimizer.epsilon
"""
_CLASSES = """
PPO PPO2 ClippedPPOAgentParameters: PPOAgentParameters
DQN DDQNAgentParameters: DQNAgentParameters
DDPG: DDPGAgentParameters
TD3: TD3AgentParameters
SAC SoftActorCriticAgentParameters: SACAgentParameters
VecNormalize: ObservationNormalizationFilter RewardReturnScalingFilter
VecFrameStack: ObservationStackingFilter
make_vec_env DummyVecEnv SubprocVecEnv GymEnvironmentParameters GymVectorEnvironment:
    GymnasiumParameters
EvalCallback SimpleSchedule: ScheduleParameters
CheckpointCallback: CheckpointParameters
evaluate_policy: evaluate_run
HerReplayBuffer EpisodicHindsightExperienceReplayParameters: HindsightParameters
ReplayBuffer ExperienceReplayParameters: ReplayMemoryParameters
PrioritizedExperienceReplayParameters: PrioritisedParameters
EGreedyParameters: EpsilonGreedy
NormalActionNoise AdditiveNoiseParameters: GaussianNoise
OrnsteinUhlenbeckActionNoise OUProcessParameters: OrnsteinUhlenbeckNoise
PresetValidationParameters: ValidationParameters
"""


def by_name_elsewhere(text: str) -> dict[str, tuple[str, ...]]:
    """Names here by each name elsewhere, from lines `elsewhere elsewhere: here here`.

    An indented line continues the one before.
    """
    return {
        name: tuple(here.split())
        for names, here in (entry.split(":") for entry in re.split(r"\n(?=\S)", text.strip()))
        for name in names.split()
    }


SETTINGS = by_name_elsewhere(_SETTINGS)
"""Names of the control panel, or paths as most presets have them, by the name elsewhere."""
CLASSES = by_name_elsewhere(_CLASSES)
"""Classes and functions of `coach_rl` by the name elsewhere."""


def familiar_fields(name: str, fields: Collection[str]) -> list[str]:
    """The fields of a parameter class, or paths below them, that an unknown name stands for."""
    ends = [
        target.split(".", first)[-1]
        for target in SETTINGS.get(name.lower(), ())
        for first in range(target.count(".") + 1)
    ]
    return list(dict.fromkeys(end for end in ends if end.partition(".")[0] in fields))
