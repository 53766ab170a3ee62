"""Import of the package `mujoco`, also where the OpenGL library that it loads is missing.

`import mujoco` loads the library that MUJOCO_GL names and fails if that is missing, even if nothing
is to be drawn. It is then imported without one, and drawing gives the reason (see `render`).
"""

import os

OFF = ("disable", "disabled", "off", "false", "0")
"""Values of MUJOCO_GL that turn drawing off."""

try:
    import mujoco
except RuntimeError:  # MUJOCO_GL has a value that MuJoCo does not know
    raise
except Exception:  # each library fails in its own way
    _chosen = os.environ.get("MUJOCO_GL")
    os.environ["MUJOCO_GL"] = OFF[0]
    try:
        import mujoco
    finally:
        del os.environ["MUJOCO_GL"]
        if _chosen is not None:
            os.environ["MUJOCO_GL"] = _chosen

__all__ = ["OFF", "mujoco"]
