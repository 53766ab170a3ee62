"""Extensions: what has been built on the core and on running, a folder each.

Each folder has a table, `extension.toml`, which lists what it adds; see `configuration.extensions`.
"""

__all__: list[str] = []
