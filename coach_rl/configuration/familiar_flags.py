"""Names that other libraries give to flags and commands, and those here.

Those of an extension stand in its table. Only messages about unknown names use them.
"""

from collections.abc import Mapping

from coach_rl.configuration.extensions import familiar_names
from coach_rl.core.familiar_names import SETTINGS, by_name_elsewhere

_FLAGS = """
lvl et env env_id env_name gym_id task environment environment_type: -lvl
algo algorithm agent model: -p
config config_file cfg yaml: -p -cp
params hyperparams hyperparameters overrides set: -cp
gpu gpu_id cuda use_cuda use_gpu device_id device: --device
cpu: -c
tensorboard_log log_dir logdir log_folder output_dir out_dir save_dir save_path exp_dir: -ep
exp_name experiment run_name name exp: -e
no_summary no_tb: -ntb
resume load load_checkpoint checkpoint restore checkpoint_restore_dir checkpoint_restore_file:
    -crd
save_freq save_every save_interval checkpoint_freq checkpoint_interval: --checkpoint_steps
checkpoint_save_secs: -s
verbose verbosity quiet progress progress_bar: --plain
n_envs n_env nenvs num_actors: -n
total_timesteps timesteps n_timesteps num_timesteps total_steps max_timesteps improve_steps:
    --steps
seed random_seed rng_seed: --seed
eval test n_eval_episodes eval_episodes num_episodes: --evaluate
"""
_COMMANDS = """
eval test predict: evaluate
learn fit: train
continue restore: resume
ls presets: list
"""


def flags() -> Mapping[str, tuple[str, ...]]:
    """Flags by their names elsewhere, which have no dashes; with those of extensions."""
    return by_name_elsewhere(_FLAGS) | familiar_names("flags")


def commands() -> Mapping[str, tuple[str, ...]]:
    """Commands by their names elsewhere; with those of extensions."""
    return by_name_elsewhere(_COMMANDS) | familiar_names("commands")


def familiar_flags(flag: str) -> list[str] | None:
    """The flags here for a flag of another library, or `-cp` with the setting; None: unknown."""
    name = flag.lstrip("-").lower()
    known = flags()
    if name in known:
        return list(known[name])
    if name in SETTINGS:
        return [f'-cp "{SETTINGS[name][0]}=..."']
    return None
