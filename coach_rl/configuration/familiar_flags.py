"""Names that other libraries give to flags, commands and settings of presets, and those here.

Those of an extension stand in its table. Only messages about unknown names use them.
"""

from collections.abc import Iterable, Mapping

from coach_rl.configuration.extensions import (
    Extension,
    familiar_names,
    installed_extensions,
    own_extensions,
)
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
    return by_name_elsewhere(_FLAGS) | familiar_names("flags", _extensions())


def commands() -> Mapping[str, tuple[str, ...]]:
    """Commands by their names elsewhere; with those of extensions."""
    return by_name_elsewhere(_COMMANDS) | familiar_names("commands", _extensions())


def familiar_flags(flag: str) -> list[str] | None:
    """The flags here for a flag of another library, or `-cp` with the setting; None: unknown."""
    name = flag.lstrip("-").lower()
    known = flags()
    if name in known:
        return list(known[name])
    if name in SETTINGS:
        return [f'-cp "{SETTINGS[name][0]}=..."']
    return None


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


def _is_at(name: str, target: str) -> bool:
    """True if a name is a target, or its path in another agent."""
    _, dot, below = target.partition("agent.")
    return name == target or (bool(dot) and name.endswith(f".{below}"))


def _extensions() -> list[Extension]:
    return [*own_extensions(), *installed_extensions()[0]]
