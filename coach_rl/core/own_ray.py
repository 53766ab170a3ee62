"""Ray on this machine alone, for as long as this process needs it.

Ray listens on all of a machine's addresses, and runs programs for anyone who may talk to it. So a
cluster of our own asks for a token, which only this user can read, and has no dashboard.
"""

import contextlib
import logging
import os
import secrets
from pathlib import Path
from types import ModuleType


def start_own_ray(ray: ModuleType, **settings: object) -> None:
    """Start Ray on this machine alone, with a token required and without its dashboard.

    A mode or token of the user's own (RAY_AUTH_MODE, RAY_AUTH_TOKEN) is left as it is.

    Args:
        ray: The module.
        settings: More arguments of `ray.init`.
    """
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if os.environ["RAY_AUTH_MODE"] == "token" and "RAY_AUTH_TOKEN" not in os.environ:
        _make_token()
    if hasattr(ray, "_raylet"):
        ray._raylet.Config.initialize("")  # it has read the variables when it was imported
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        **settings,
    )


def _make_token() -> None:
    """Make Ray's token, or keep the one there is, readable for this user alone."""
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", Path.home() / ".ray" / "auth_token"))
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        with contextlib.suppress(PermissionError):  # another user's, who may share it
            path.chmod(0o600)
        return
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32))
