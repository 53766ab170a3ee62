"""Films of the pictures in data sets, by `coach data film`.

May import what `data` and `films` may, and both.
"""

__all__: list[str] = []
