"""Names of the services that runs can be tracked by."""

from pkgutil import iter_modules

import coach_rl.telemetry.trackers

SUFFIX = "_run"
"""End of the name of a service's file, here beside this one."""


def services() -> list[str]:
    """The names of all services."""
    files = [module.name for module in iter_modules(coach_rl.telemetry.trackers.__path__)]
    return [name.removesuffix(SUFFIX) for name in files if name.endswith(SUFFIX)]
