"""One seed for a run, named streams for its parts.

Every source of randomness is a generator made here and passed down; no global generator is ever
used. A stream is named by what it is for, so adding a new consumer never shifts the numbers of the
others.
"""

import zlib

import numpy as np

from coach_rl.core.state import State


def generator(seed: int, *names: str | int) -> np.random.Generator:
    """The random stream of one part of a run.

    Args:
        seed: The run's seed, 0 or more.
        names: What the stream is for, from general to special, e.g. `("level", "main", "agent")`.
    """
    return np.random.Generator(np.random.PCG64(_sequence(seed, names)))


def integer_seed(seed: int, *names: str | int) -> int:
    """A 31-bit seed for a library that wants an integer, from the stream of that name."""
    return int(_sequence(seed, names).generate_state(1)[0] >> 1)


def generator_state(rng: np.random.Generator) -> State:
    """The generator's state as plain integers and strings."""
    return dict(rng.bit_generator.state)


def load_generator_state(rng: np.random.Generator, state: State) -> None:
    """Put the generator where it was when `generator_state` was called."""
    rng.bit_generator.state = state


def _sequence(seed: int, names: tuple[str | int, ...]) -> np.random.SeedSequence:
    keys = [name if isinstance(name, int) else zlib.crc32(name.encode()) for name in names]
    # numpy pads the entropy with zeros; the 1 keeps a stream apart from its child named 0.
    return np.random.SeedSequence([seed, *keys, 1])
