"""Code of the workshop for other extensions; its worlds are in `coach_rl.environments`."""

__all__: list[str] = []
