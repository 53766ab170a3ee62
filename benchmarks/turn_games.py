"""Self-play by turns in PettingZoo's games: one policy plays both sides.

    python benchmarks/turn_games.py RUN [RUN ...]

RUN is the folder of a run of TicTacToe_PPO, on either of the games. A table has the shares of 1,000
games that its agent won, drew and lost, greedy, the first ones of 100 environments, half of them as
the first player. Opponents: a player that moves at random and, in tic-tac-toe, one that plays
perfectly (exact minimax) and draws among its best moves.
"""

import argparse
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import coach_rl as rl
from coach_rl.core.infos import agent_info
from coach_rl.runs.folder import RunFolder
from coach_rl.sessions.opening import rebuild

Move = Callable[[np.ndarray, np.ndarray, np.random.Generator], int]
"""A player: (board, mask of allowed moves, generator) to its move."""
ENVIRONMENTS, GAMES, SEED = 100, 1_000, 10_000
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


@cache
def best_moves(own: frozenset[int], other: frozenset[int]) -> tuple[int, tuple[int, ...]]:
    """The value of a position of tic-tac-toe to the player whose turn it is, and its best moves."""
    if any(other.issuperset(line) for line in LINES):
        return -1, ()
    free = [cell for cell in range(9) if cell not in own | other]
    if not free:
        return 0, ()
    values = {cell: -best_moves(other, own | {cell})[0] for cell in free}
    best = max(values.values())
    return best, tuple(cell for cell in free if values[cell] == best)


def random_move(_board: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> int:
    """A move drawn among the allowed ones."""
    return int(rng.choice(np.flatnonzero(mask)))


def minimax_move(board: np.ndarray, _mask: np.ndarray, rng: np.random.Generator) -> int:
    """A best move of tic-tac-toe, [3, 3, 2] with the own stones first."""
    own, other = (frozenset(np.flatnonzero(board[..., side]).tolist()) for side in (0, 1))
    return int(rng.choice(best_moves(own, other)[1]))


def game_of(run: str) -> rl.EnvironmentParameters:
    """The game that a run was trained on."""
    graph_manager, *_ = rebuild(RunFolder(Path(run)), learns=False)
    return graph_manager.parameters.environment


def shares(run: str, move: Move) -> tuple[float, float, float]:
    """Shares of games that a run's agent won, drew and lost against a player's moves."""
    agent, rng = rl.load(run), np.random.default_rng(SEED)
    players = sorted(agent.spaces.action.spaces)
    environment = game_of(run).build(num_envs=ENVIRONMENTS)
    results = []
    for side, (own, other) in enumerate((players, players[::-1])):
        seen = environment.reset(seed=SEED + side).observation
        agent.reset()
        played = np.zeros(ENVIRONMENTS, np.int64)
        most = GAMES // 2 // ENVIRONMENTS
        while (played < most).any():
            action = agent.act(seen)
            for row in np.flatnonzero(seen[f"turn/{other}"]):
                board, mask = (
                    seen[f"{other}/{key}"][row] for key in ("observation", "action_mask")
                )
                action[other][row] = move(board, mask, rng)
            environment.send(action)
            answer = environment.recv()
            over = answer.terminated | answer.truncated
            results += answer.info[agent_info(own, "reward")][over & (played < most)].tolist()
            played += over
            seen = answer.first_observation
            agent.reset(over)
    environment.close()
    result = np.array(results)
    return float((result > 0).mean()), float((result == 0).mean()), float((result < 0).mean())


def main() -> None:
    """Print a line for each run and opponent."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN")
    print("| run | opponent | won | drawn | lost |")
    print("| --- | --- | ---: | ---: | ---: |")
    for run in parser.parse_args().runs:
        opponents = {"random": random_move}
        if "tictactoe" in game_of(run).level:
            opponents["minimax"] = minimax_move
        for name, move in opponents.items():
            figures = " | ".join(f"{100 * each:.1f} %" for each in shares(run, move))
            print(f"| {Path(run).name} | {name} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
