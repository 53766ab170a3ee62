"""Names of the services that runs can be tracked by."""

from pathlib import Path

SUFFIX = "_run"
"""End of the name of a service's file, here beside this one."""


def services() -> list[str]:
    """The names of all services."""
    files = Path(__file__).parent.glob(f"*{SUFFIX}.py")
    return sorted(file.stem.removesuffix(SUFFIX) for file in files)
