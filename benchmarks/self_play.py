"""Connect Four by self-play: a generation plays against the frozen one before and starts from it.

    python benchmarks/self_play.py [--seeds 3] [--generations 3] [--steps 200000]

Generation 0 plays against a random player. Shares of 1,000 games won, greedy, the first ones of 100
environments: against the random player, the scripted one that sees a move ahead, and the generation
before (which plays three tenths of its moves at random).
"""

import argparse
import os
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import coach_rl as rl

ENVIRONMENTS, GAMES, SEED = 100, 10, 10_000


def share_won(run: str, environment: rl.ConnectFourParameters) -> float:
    """The share of games that a run's agent wins, greedy, over the first games of each row."""
    agent, rows = rl.load(run), environment.build(num_envs=ENVIRONMENTS)
    seen = rows.reset(seed=SEED).observation
    played = np.zeros(ENVIRONMENTS, np.int64)
    won = 0
    while (played < GAMES).any():
        rows.send(agent.act(seen))
        answer = rows.recv()
        counted = answer.terminated & (played < GAMES)
        won += int((answer.reward[counted] > 0).sum())
        played += answer.terminated
        seen = answer.first_observation
        agent.reset(answer.terminated)
    return won / (ENVIRONMENTS * GAMES)


def main() -> None:
    """Train the generations and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200_000)
    options = parser.parse_args()
    preset = rl.load_preset(rl.find_preset("ConnectFour_PPO"))
    settings = rl.RunSettings(tensorboard=False, final_episodes=rl.EnvironmentEpisodes(1))
    print("| seed | generation | random | rules | the one before |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for seed in range(options.seeds):
        changes = {"steps": options.steps, "schedule.evaluation_interval": None}
        with tempfile.TemporaryDirectory() as folder:
            for generation in range(options.generations + 1):
                runtime = rl.Runtime(seed=seed + 100 * generation, device="cpu")
                result = rl.run_experiment(
                    preset.configure(changes),
                    runtime,
                    name="self_play",
                    root=Path(folder),
                    settings=settings,
                )
                run = str(result.folder.path)
                against = [
                    rl.ConnectFourParameters(opponent="random"),
                    rl.ConnectFourParameters(opponent="rules"),
                ]
                if generation:
                    before = rl.TrainedOpponent(run=str(changes["load"]))
                    against.append(rl.ConnectFourParameters(opponent=before))
                won = " | ".join(f"{100 * share_won(run, each):.1f} %" for each in against)
                print(f"| {seed} | {generation} | {won}{'' if generation else ' | '} |", flush=True)
                changes |= {"opponent": run, "load": run}


if __name__ == "__main__":
    main()
