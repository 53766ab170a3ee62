"""What has been built on the core and on running, a folder each, which neither of them names.

Each folder has a table, `extension.toml`, which says what it adds; see `configuration.extensions`.
"""

__all__: list[str] = []
