"""Names that other libraries give to settings and flags, and the names that they have here.

They come from Stable-Baselines3, CleanRL, Spinning Up, rl_games, Gymnasium and Coach. Only messages
about unknown names use them; the names themselves stay unknown. Light: imports nothing.
"""

from collections.abc import Iterable

_RATE = (
    "learning_rate",
    "agent.optimizer.learning_rate",
    "agent.actor_optimizer.learning_rate",
    "agent.critic_optimizer.learning_rate",
)
_ROLLOUT = ("rollout", "agent.algorithm.rollout")
_EPOCHS = ("epochs", "agent.algorithm.epochs")
_MINIBATCH = ("minibatch", "agent.algorithm.minibatch")
_UPDATES = ("updates_per_step", "agent.learning.updates_per_step")
_CAPACITY = ("agent.memory.capacity",)
_CLIP = ("clip", "agent.algorithm.clip")
_GRADIENT_NORM = ("agent.optimizer.max_gradient_norm", "agent.actor_optimizer.max_gradient_norm")
_ENTROPY = (
    "entropy",
    "agent.algorithm.entropy_coefficient",
    "temperature",
    "agent.algorithm.initial_temperature",
)
_VALUE = ("agent.algorithm.value_coefficient",)
_SYNC_RATE = ("agent.algorithm.target_sync.rate",)
_SYNC_EVERY = ("target_period", "agent.algorithm.target_sync.every")
_LAYERS = ("layers", "agent.network.torso.middleware", "agent.actor.torso.middleware")
_ACTIVATION = ("agent.network.torso.activation", "agent.actor.torso.activation")
_ENVS = ("num_envs",)
_STEPS = ("steps", "schedule.training")
_HEATUP = ("heatup", "schedule.heatup")
_LEVEL = ("level", "environment.level")
_EPISODE_LENGTH = ("environment.max_episode_steps",)
_EVALUATE_EVERY = ("evaluation_interval", "schedule.evaluation_interval")
_EVALUATION_EPISODES = ("schedule.evaluation_episodes",)
_SAVE_EVERY = ("checkpoints.every_steps",)
_NOISE = ("noise", "agent.exploration.scale")
_NORMALISED = ("agent.normalise_observations", "agent.input_filter")
_PRIORITISED = ("agent.memory.prioritised",)

SETTINGS: dict[str, tuple[str, ...]] = {
    "lr": _RATE,
    "alpha_lr": ("temperature_learning_rate", "agent.temperature_optimizer.learning_rate"),
    "lr_schedule": ("agent.algorithm.learning_rate_schedule", "agent.learning_rate_schedule"),
    "anneal_lr": ("agent.algorithm.learning_rate_schedule", "agent.learning_rate_schedule"),
    **dict.fromkeys(
        ("actor_lr", "policy_lr", "pi_lr"),
        ("actor_learning_rate", "agent.actor_optimizer.learning_rate"),
    ),
    **dict.fromkeys(("critic_lr", "q_lr", "qf_lr"), ("agent.critic_optimizer.learning_rate",)),
    "gamma": ("discount", "agent.algorithm.discount"),
    "discount_factor": ("discount", "agent.algorithm.discount"),
    **dict.fromkeys(("lam", "lambda_", "gae"), ("gae_lambda", "agent.algorithm.gae_lambda")),
    **dict.fromkeys(("n_steps", "num_steps", "rollout_length", "horizon_length"), _ROLLOUT),
    "num_consecutive_playing_steps": (*_ROLLOUT, *_UPDATES),
    **dict.fromkeys(
        ("n_epochs", "update_epochs", "num_epochs", "ppo_epochs", "optimization_epochs"), _EPOCHS
    ),
    **dict.fromkeys(
        ("batch_size", "minibatch_size", "mini_batch_size"),
        ("batch", "agent.learning.batch", *_MINIBATCH),
    ),
    **dict.fromkeys(("num_minibatches", "n_minibatches", "nminibatches"), _MINIBATCH),
    **dict.fromkeys(("train_freq", "gradient_steps", "utd", "utd_ratio"), _UPDATES),
    **dict.fromkeys(("buffer_size", "replay_size", "memory_size", "max_size"), _CAPACITY),
    **dict.fromkeys(("ent_coef", "entropy_coef", "beta_entropy", "alpha"), _ENTROPY),
    "autotune": ("agent.algorithm.learn_temperature",),
    **dict.fromkeys(("vf_coef", "value_coef", "critic_coef", "value_loss_coef"), _VALUE),
    **dict.fromkeys(("max_grad_norm", "grad_norm", "clip_gradients"), _GRADIENT_NORM),
    **dict.fromkeys(
        ("clip_range", "clip_coef", "clip_ratio", "e_clip", "clip_likelihood_ratio_using_epsilon"),
        _CLIP,
    ),
    **dict.fromkeys(("clip_range_vf", "clip_vloss"), ("agent.algorithm.value_clip",)),
    "target_kl": ("agent.algorithm.stop_at_kl", "kl_target", "agent.algorithm.kl_target"),
    **dict.fromkeys(("norm_adv", "normalize_advantage"), ("agent.algorithm.normalise_advantage",)),
    **dict.fromkeys(("norm_obs", "normalize_observations", "normalize_input"), _NORMALISED),
    **dict.fromkeys(("norm_reward", "normalize_reward"), ("agent.algorithm.scale_returns",)),
    **dict.fromkeys(("tau", "rate_for_copying_weights_to_target"), _SYNC_RATE),
    **dict.fromkeys(
        (
            "target_update_interval",
            "target_network_frequency",
            "num_steps_between_copying_online_weights_to_target",
        ),
        _SYNC_EVERY,
    ),
    **dict.fromkeys(("hidden_sizes", "hidden_size", "net_arch", "policy_kwargs"), _LAYERS),
    **dict.fromkeys(("activation_fn", "activation_function"), _ACTIVATION),
    **dict.fromkeys(("n_envs", "n_env", "nenvs", "num_actors"), _ENVS),
    **dict.fromkeys(
        ("total_timesteps", "timesteps", "n_timesteps", "num_timesteps", "total_steps"), _STEPS
    ),
    **dict.fromkeys(("max_timesteps", "improve_steps"), _STEPS),
    **dict.fromkeys(("heatup_steps", "start_steps", "random_steps", "start_timesteps"), _HEATUP),
    **dict.fromkeys(("env", "env_id", "env_name", "environment_id", "task"), _LEVEL),
    **dict.fromkeys(("episode_length", "max_ep_len", "time_limit"), _EPISODE_LENGTH),
    **dict.fromkeys(
        ("eval_freq", "eval_interval", "steps_between_evaluation_periods"), _EVALUATE_EVERY
    ),
    **dict.fromkeys(("n_eval_episodes", "eval_episodes", "evaluation_steps"), _EVALUATION_EPISODES),
    **dict.fromkeys(("save_freq", "save_every", "save_interval", "checkpoint_freq"), _SAVE_EVERY),
    "checkpoint_save_secs": ("checkpoints.every_seconds",),
    **dict.fromkeys(
        ("exploration_initial_eps", "start_e", "eps_start"),
        ("epsilon", "agent.exploration.epsilon.start"),
    ),
    **dict.fromkeys(
        ("exploration_final_eps", "end_e", "eps_end"), ("agent.exploration.epsilon.end",)
    ),
    **dict.fromkeys(
        ("exploration_fraction", "eps_decay"), ("epsilon_steps", "agent.exploration.epsilon.over")
    ),
    **dict.fromkeys(("exploration_noise", "action_noise", "noise_std"), _NOISE),
    **dict.fromkeys(("policy_noise", "target_policy_noise"), ("agent.algorithm.target_noise",)),
    "noise_clip": ("agent.algorithm.target_noise_clip",),
    **dict.fromkeys(("policy_frequency", "policy_freq"), ("agent.algorithm.policy_delay",)),
    **dict.fromkeys(("prioritized_replay", "per", "prioritized"), _PRIORITISED),
    **dict.fromkeys(("n_sampled_goal", "replay_k"), ("agent.memory.hindsight.ratio",)),
    "goal_selection_strategy": ("agent.memory.hindsight.strategy",),
    "weight_decay": ("agent.optimizer.l2", "agent.critic_optimizer.l2"),
    "adam_eps": ("agent.optimizer.epsilon", "agent.actor_optimizer.epsilon"),
    "num_workers": ("collection.workers",),
}
"""Names by the name elsewhere: of the control panel, or paths as most presets have them."""

FLAGS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("lvl", "et", "env", "env_id", "env_name", "gym_id", "task"), ("-lvl",)),
    **dict.fromkeys(("environment", "environment_type"), ("-lvl",)),
    **dict.fromkeys(("algo", "algorithm", "agent", "model"), ("-p",)),
    **dict.fromkeys(("config", "config_file", "cfg", "yaml"), ("-p", "-cp")),
    **dict.fromkeys(("params", "hyperparams", "hyperparameters", "overrides", "set"), ("-cp",)),
    **dict.fromkeys(("gpu", "gpu_id", "cuda", "use_cuda", "use_gpu", "device_id"), ("--device",)),
    "cpu": ("-c",),
    **dict.fromkeys(("wandb", "track", "use_wandb", "mlflow", "log", "logger"), ("--tracker",)),
    **dict.fromkeys(("wandb_project_name", "wandb_project"), ("--tracker",)),
    **dict.fromkeys(("tensorboard_log", "log_dir", "logdir", "log_folder"), ("-ep",)),
    **dict.fromkeys(("output_dir", "out_dir", "save_dir", "save_path", "exp_dir"), ("-ep",)),
    **dict.fromkeys(("exp_name", "experiment", "run_name", "name", "exp"), ("-e",)),
    **dict.fromkeys(("no_summary", "no_tb"), ("-ntb",)),
    **dict.fromkeys(("render", "capture_video", "record_video", "save_video"), ("-dg", "-dm")),
    **dict.fromkeys(("video", "gif", "render_mode"), ("-dg", "-dm")),
    **dict.fromkeys(("resume", "load", "load_checkpoint", "checkpoint", "restore"), ("-crd",)),
    **dict.fromkeys(("checkpoint_restore_dir", "checkpoint_restore_file"), ("-crd",)),
    **dict.fromkeys(("save_freq", "save_every", "save_interval"), ("--checkpoint_steps",)),
    **dict.fromkeys(("checkpoint_freq", "checkpoint_interval"), ("--checkpoint_steps",)),
    "checkpoint_save_secs": ("-s",),
    **dict.fromkeys(("verbose", "verbosity", "quiet", "progress", "progress_bar"), ("--plain",)),
    **dict.fromkeys(("n_envs", "n_env", "nenvs", "num_actors"), ("-n",)),
    **dict.fromkeys(("num_workers", "n_workers"), ("--workers",)),
    **dict.fromkeys(("total_timesteps", "timesteps", "n_timesteps"), ("--steps",)),
    **dict.fromkeys(("num_timesteps", "total_steps", "max_timesteps"), ("--steps",)),
    "improve_steps": ("--steps",),
    **dict.fromkeys(("seed", "random_seed", "rng_seed"), ("--seed",)),
    "device": ("--device",),
    **dict.fromkeys(("n_seeds", "num_seeds", "num_experiments"), ("--seeds",)),
    **dict.fromkeys(("eval", "test", "play", "enjoy", "n_eval_episodes"), ("--evaluate",)),
    **dict.fromkeys(("eval_episodes", "num_episodes"), ("--evaluate",)),
    "evaluation_worker": ("--background_evaluation",),
    **dict.fromkeys(("distributed_coach", "dc"), ("--on",)),
}
"""Flags by the name elsewhere, which is without dashes."""


def familiar_settings(name: str, known: Iterable[str]) -> list[str] | None:
    """The settings that a name from elsewhere stands for.

    Args:
        name: The name, in any case.
        known: The names of a control panel and the paths of parameters.

    Returns:
        Those of the known ones that it stands for, of the panel if it has one; None where the name
        is not from elsewhere.
    """
    targets = SETTINGS.get(name.lower())
    if targets is None:
        return None
    names = list(known)
    found = [each for target in targets for each in names if _is_at(each, target)]
    return [each for each in found if "." not in each] or list(dict.fromkeys(found))


def familiar_flags(flag: str) -> list[str] | None:
    """The flags here for a flag of another library, or `-cp` with the setting; None: unknown."""
    name = flag.lstrip("-").lower()
    if name in FLAGS:
        return list(FLAGS[name])
    if name in SETTINGS:
        return [f'-cp "{SETTINGS[name][0]}=..."']
    return None


def _is_at(name: str, target: str) -> bool:
    """True if a name is a target, or its path in another agent."""
    _, dot, below = target.partition("agent.")
    return name == target or (bool(dot) and name.endswith(f".{below}"))
