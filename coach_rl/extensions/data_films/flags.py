"""The flags of `coach data film`. Light, like `cli.parser`."""

from pathlib import Path

from coach_rl.cli.parser import Flag

FILM = (
    Flag("DATA", "a file, a Minari id or folder, or a sample, data:NAME"),
    Flag("FILE", "the film, a .gif or an .mp4; a file of that name is replaced", Path),
    Flag("--episode N", "the number of the first episode (default: 0)", int),
    Flag("--episodes N", "number of episodes (default: 1)", int),
    Flag("--key KEY", "the observation with the pictures (default: the only one)"),
)
