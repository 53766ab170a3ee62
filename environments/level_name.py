"""A level is named, so that it can stand in a run's manifest and be sent to another process."""

from coach_rl.core.errors import require


def require_level_name(owner: str, level: object) -> None:
    """Raise `ParameterError` where a class, function or instance stands for its name."""
    if isinstance(level, str):
        return
    thing = level if hasattr(level, "__qualname__") else type(level)
    name = f"'{thing.__module__}:{thing.__qualname__}'"
    if thing.__module__.startswith("coach_preset_"):  # a name that changes with the preset
        name = f"f'{{__name__}}:{thing.__qualname__}'"
    hint = "name a class or function of a module as module:Class"
    if "<" not in name:
        hint = f"name its class, here {name}" if thing is not level else f"write {name}"
    require(False, f"{owner}.level must be a name, got {level!r}; {hint}")
