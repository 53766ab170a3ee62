"""Shipped experiments: each file has a `Panel` of settings and a function `graph_manager(panel)`.

`coach -p NAME` loads a file by its path; nothing in the engine imports one. Copy a file to start
your own: a preset needs `coach_rl` and, at most, the files that are meant to be imported: `panels`,
`recurrent_panels`, `mujoco_tasks`, and the helpers that tables of extensions list. `any_task` has
the presets of `coach_rl.train`. May import everything.
"""

__all__ = ["any_task", "mujoco_tasks", "panels", "recurrent_panels"]
