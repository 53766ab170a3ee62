"""Speed of recurrent PPO beside sb3-contrib's RecurrentPPO, in turns.

    pip install --no-deps sb3-contrib stable-baselines3 pandas cloudpickle
    python benchmarks/recurrent_speed.py [--rounds 3] [--steps 16384] [--write]

Both sides get the same work: CartPole-v1 in 8 environments, rollouts of 1,024 decisions, 5 epochs
of minibatches of 128, policy and critic with an LSTM of 64 and a dense layer of 64 each, Adam, and
backpropagation through 128 steps at most. Evaluation, logs and checkpoints are off. User CPU
seconds of the whole training, without imports and building.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

ROLLOUT, EPOCHS, MINIBATCH, ENVIRONMENTS, SIZE = 1_024, 5, 128, 8, 64
RESULT = Path(__file__).parent / "results" / "recurrent_speed.md"


def ours(steps: int) -> float:
    """User CPU seconds of training here."""
    import coach_rl as rl
    from coach_rl.extensions.recurrent_layers.gated_recurrence import LSTM

    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(ROLLOUT),
            epochs=EPOCHS,
            minibatch=MINIBATCH,
            sequence=MINIBATCH,
        ),
        network=rl.ActorCriticParameters(
            torso=rl.TorsoParameters(recurrence=LSTM(size=SIZE), middleware=(SIZE,))
        ),
    )
    manager = rl.BasicRLGraphManager(
        rl.BasicGraphParameters(
            agent=agent,
            environment=rl.GymnasiumParameters(level="CartPole-v1"),
            num_envs=ENVIRONMENTS,
            schedule=rl.ScheduleParameters(
                training=rl.EnvironmentSteps(steps), evaluation_interval=None
            ),
        )
    )
    manager.create_graph(rl.Runtime(seed=0))
    began = os.times().user
    for _ in manager.improve():
        pass
    return os.times().user - began


def theirs(steps: int) -> float:
    """User CPU seconds of training by sb3-contrib."""
    import torch
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)
    model = RecurrentPPO(
        "MlpLstmPolicy",
        make_vec_env("CartPole-v1", n_envs=ENVIRONMENTS),
        n_steps=ROLLOUT // ENVIRONMENTS,
        n_epochs=EPOCHS,
        batch_size=MINIBATCH,
        policy_kwargs={
            "lstm_hidden_size": SIZE,
            "net_arch": [SIZE],
            "enable_critic_lstm": True,
        },
        device="cpu",
        seed=0,
    )
    began = os.times().user
    model.learn(steps)
    return os.times().user - began


def main() -> None:
    """Run both in turns, each in a process of its own, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=16_384)
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    parser.add_argument("--side", choices=("ours", "theirs"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print({"ours": ours, "theirs": theirs}[options.side](options.steps))
        return
    import subprocess

    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(options.rounds):
        for side, seconds in times.items():
            with tempfile.TemporaryDirectory() as folder:
                words = [sys.executable, str(Path(__file__).resolve()), "--side", side]
                words += ["--steps", str(options.steps)]
                done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
            seconds.append(float(done.stdout.strip().splitlines()[-1]))
    medians = {side: statistics.median(seconds) for side, seconds in times.items()}
    lines = [
        "# Recurrent PPO beside sb3-contrib",
        "",
        f"    python benchmarks/{Path(__file__).name} --rounds {options.rounds} "
        f"--steps {options.steps}",
        "",
        "The work of both sides stands at the top of that file.",
        "",
        "| | user CPU seconds of each round | median |",
        "| --- | --- | ---: |",
        *(
            f"| {name} | {', '.join(f'{each:.1f}' for each in times[side])} | {medians[side]:.1f} |"
            for side, name in (("ours", "coach_rl"), ("theirs", "sb3-contrib RecurrentPPO"))
        ),
        "",
        f"Ratio of the medians: {medians['theirs'] / medians['ours']:.2f}.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write:
        RESULT.write_text(text)


if __name__ == "__main__":
    main()
