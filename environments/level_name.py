"""A level is named, so that it can stand in a run's manifest and be sent to another process."""


def name_of_class(level: object) -> str:
    """The end of an error message: the name of what is given instead of a name."""
    thing = level if hasattr(level, "__qualname__") else type(level)
    name = f"'{thing.__module__}:{thing.__qualname__}'"
    if thing.__module__.startswith("coach_preset_"):  # a name that changes with the preset
        name = f"f'{{__name__}}:{thing.__qualname__}'"
    if "<" in name:
        return "; name a class or function of a module as module:Class"
    return f"; name its class, here {name}" if thing is not level else f"; write {name}"
