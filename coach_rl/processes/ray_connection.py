"""Connection to a Ray cluster, or to Ray on this machine alone for as long as this process needs.

Ray listens on all of a machine's addresses, and runs programs for anyone who may talk to it. So a
cluster of our own requires a token, which only this user can read, and has no dashboard.
"""

import contextlib
import logging
import os
import secrets
import socket
from pathlib import Path
from types import ModuleType

from coach_rl.core.errors import ConfigurationError, how_to_install

CONNECT_SECONDS = 5.0
"""Time within which the head of a cluster has to answer."""
_ADVICE = "docs/cluster.md explains how to start one"


def import_ray() -> ModuleType:
    """Ray, which sends no usage statistics unless the user has enabled them.

    Raises:
        ConfigurationError: It is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise ConfigurationError(
            f"running on a Ray cluster needs Ray; {how_to_install('ray')}"
        ) from error
    return ray


def join_ray(ray: ModuleType, address: str | None, **settings: object) -> None:
    """Join a cluster, or start one of this machine alone.

    Args:
        ray: The module.
        address: HOST:PORT of the cluster's head, or local for one of our own. None: the cluster
            that RAY_ADDRESS names or that is found on this machine, else one of our own.
        settings: Arguments of `ray.init` for one of our own.

    Raises:
        ConfigurationError: There is no such cluster, or it refuses this process.
    """
    if address is not None and address.startswith("ray://"):
        raise ConfigurationError(
            f"'{address}' is for Ray's client, which has no folder for the runs on this machine; "
            "let this machine join the cluster with `ray start --address=HOST:PORT`, and give "
            "ray:HOST:PORT"
        )
    host, _, port = (address or "").rpartition(":")
    if port.isdecimal():
        try:
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise ConfigurationError(
                f"no Ray cluster answers at {address}: {error}; {_ADVICE}"
            ) from error
    elif address not in (None, "auto", "local"):
        raise ConfigurationError(f"a Ray cluster's address is HOST:PORT, got '{address}'")
    try:
        if address == "local":
            start_own_ray(ray, **settings)
            return
        try:
            ray.init(address or "auto", log_to_driver=False, logging_level=logging.ERROR)
        except ConnectionError:
            if address is not None or "RAY_ADDRESS" in os.environ:
                raise
            start_own_ray(ray, **settings)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigurationError(
            f"cannot join the Ray cluster{f' at {address}' if address else ''}: "
            f"{first_line(str(error))}; see that RAY_AUTH_MODE and the token are the cluster's: "
            f"{_ADVICE}"
        ) from error


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


def first_line(text: str) -> str:
    """The first line of an error of Ray's."""
    return next(filter(None, map(str.strip, text.splitlines())), "no reason given")


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
