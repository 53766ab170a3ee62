"""Do saved Atari games continue exactly in a new process?

python -m benchmarks.atari_restores --restores 20 [GAME ...]      # all 57 without names

Each game is played at random, with sticky actions and without, and saved at random moments, with
what followed: the memory, the screen and the reward of each of 100 frames. A new process restores
every state and compares what follows there.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.environments.atari.game import AtariGame
from coach_rl.environments.atari.games import GAMES

STEPS = 25
"""Steps of four frames that are compared: 100 frames."""
AT_ONCE = 10
"""Games of one new process."""
APART = 60
"""Largest number of steps between two saved moments."""


def made(game: str, *, sticky: bool) -> AtariGame:
    return AtariGame(
        game,
        protocol="A" if sticky else "B",
        shows="picture",
        all_actions=True,
        frames_per_step=4,
        most_frames=108_000,
        most_steps=None,
    )


@dataclass
class Recorded:
    """Saved states, each with the actions that followed and a digest of all that they led to."""

    states: list[dict[str, Any]] = field(default_factory=list)

    def save(self, path: Path) -> None:
        arrays = {}
        for number, state in enumerate(self.states):
            text = {key: value for key, value in state.items() if key != "game_state"}
            game_state = dict(state["game_state"])
            emulator = game_state.pop("emulator")
            arrays[f"{number}/newest"] = game_state.pop("newest")
            arrays[f"{number}/machine"] = emulator["machine"]
            text["game_state"] = game_state | {"last_action": emulator["last_action"]}
            arrays[f"{number}/text"] = np.array(json.dumps(text))
        np.savez(path, **arrays)

    @classmethod
    def load(cls, path: Path) -> "Recorded":
        states = []
        with np.load(path) as arrays:
            for number in range(sum(name.endswith("/text") for name in arrays.files)):
                text = json.loads(str(arrays[f"{number}/text"]))
                emulator = {
                    "machine": arrays[f"{number}/machine"],
                    "last_action": text["game_state"].pop("last_action"),
                }
                newest = arrays[f"{number}/newest"]
                text["game_state"] |= {"newest": newest, "emulator": emulator}
                states.append(text)
        return cls(states)


def record(games: Iterable[str], *, restores: int, seed: int) -> Recorded:
    """States of games, with sticky actions and without, and what follows them."""
    found = Recorded()
    for game in games:
        for sticky in (True, False):
            playing = made(game, sticky=sticky)
            playing.reset(seed=seed)
            rng = np.random.default_rng(seed)
            for _ in range(restores):
                for _ in range(int(rng.integers(1, APART))):
                    if playing.step(rng.integers(playing.action_space.n))[2]:
                        playing.reset()
                state = {
                    "game": game,
                    "sticky": sticky,
                    "generator": generator_state(playing.np_random),
                    "game_state": playing.save_state(),
                    "actions": rng.integers(playing.action_space.n, size=STEPS).tolist(),
                }
                found.states.append({**state, "digest": followed(playing, state["actions"])})
    return found


def followed(playing: AtariGame, actions: Sequence[int]) -> str:
    """A digest of the memory, the screen, the picture and the reward after each action."""
    digest = sha256()
    for action in actions:
        picture, reward, terminated, _, info = playing.step(np.int64(action))
        digest.update(playing._emulator.memory().tobytes())
        digest.update(playing.render().tobytes())
        digest.update(picture.tobytes())
        digest.update(repr((reward, terminated, sorted(info.items()))).encode())
        if terminated:
            digest.update(playing.reset()[0].tobytes())
    return digest.hexdigest()


def check(path: Path) -> dict[str, tuple[int, int]]:
    """How many states of each game continue exactly in this process, and of how many."""
    counts: dict[str, tuple[int, int]] = {}
    for state in Recorded.load(path).states:
        playing = made(state["game"], sticky=state["sticky"])
        playing.restore_state(state["game_state"])
        load_generator_state(playing.np_random, state["generator"])
        is_same = followed(playing, state["actions"]) == state["digest"]
        name = f"{state['game']} {'sticky' if state['sticky'] else 'plain'}"
        same, tried = counts.get(name, (0, 0))
        counts[name] = (same + is_same, tried + 1)
    return counts


def batched(games: Sequence[str], size: int) -> list[Sequence[str]]:
    """Games in parts of that size."""
    return [games[begin : begin + size] for begin in range(0, len(games), size)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("games", nargs="*", default=list(GAMES))
    parser.add_argument("--restores", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--to", type=Path, help="a JSON file for the counts, added to what it has")
    given = parser.parse_args()
    wrong = 0
    for games in batched(given.games, AT_ONCE):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "states.npz"
            record(games, restores=given.restores, seed=given.seed).save(path)
            code = (
                "import json, sys; from benchmarks.atari_restores import check; "
                "print(json.dumps(check(sys.argv[1])))"
            )
            command = [sys.executable, "-c", code, str(path)]
            answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        counts = json.loads(answer)
        for name, (same, tried) in counts.items():
            print(f"{name}: {same} of {tried} restored games continue exactly", flush=True)
            wrong += tried - same
        if given.to is not None:
            before = json.loads(given.to.read_text()) if given.to.exists() else {}
            given.to.write_text(json.dumps(before | counts, indent=1, sort_keys=True) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
