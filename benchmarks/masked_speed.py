"""PPO with action masks beside sb3-contrib's MaskablePPO, in turns.

    pip install --no-deps --target DIR stable-baselines3 sb3-contrib cloudpickle
    pip install --no-deps --target DIR pandas pytz python-dateutil six tzdata
    PYTHONPATH=$PYTHONPATH:DIR python benchmarks/masked_speed.py [--rounds 5] [--steps 300000]

Both sides get the work of `Cables_PPO`: 8 places, 16 environments, rollouts of 1,024 decisions, 8
epochs of minibatches of 256, policy and critic with a layer of 128 each, normalised observations,
Adam whose learning rate falls from 3e-3 to 0, discount 0.5. Evaluation, logs and checkpoints are
off. sb3's environments are the same batch of 16, in a `VecEnv` around it, which is faster than 16
single ones. Round k has seed k on both sides. Scores are those of masks.py. Seconds are user CPU of
the whole training, without imports and building.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import coach_rl as rl

sys.path.insert(0, str(Path(__file__).parent))
from masks import Choice, normalised

ENVIRONMENTS = 16


def ours(steps: int, seed: int) -> tuple[float, Choice]:
    """User CPU seconds of training here, and the greedy policy."""
    preset = rl.load_preset(rl.find_preset("Cables_PPO"))
    manager = preset.configure({"steps": steps, "schedule.evaluation_interval": None})
    manager.create_graph(rl.Runtime(seed=seed, device="cpu"))
    began = os.times().user
    for _ in manager.improve():
        pass
    seconds = os.times().user - began
    agent = manager.graph.agents["main"]
    filters = agent.input_filter

    def choose(seen: dict[str, np.ndarray]) -> np.ndarray:
        rows = np.arange(len(seen["observation"]))
        starts, memory = np.zeros(len(rows), np.bool_), filters.new_rows(len(rows))
        shown = filters.observation(memory, rows, seen, starts=starts, learn=False)
        return agent.policy(shown).argmax(axis=1)

    return seconds, choose


def sb3_cables() -> Any:  # noqa: C901 - methods of a class
    """The same batch of environments as sb3 takes it."""
    from stable_baselines3.common.vec_env import VecEnv

    class Cables(VecEnv):
        def __init__(self) -> None:
            self.rows = rl.CablesParameters().build(num_envs=ENVIRONMENTS)
            spaces = self.rows.spaces
            super().__init__(ENVIRONMENTS, spaces.observation["observation"], spaces.action)

        def reset(self) -> np.ndarray:
            self.seen = self.rows.reset(seed=self._seeds[0]).observation
            return self.seen["observation"]

        def step_async(self, actions: np.ndarray) -> None:
            self.rows.send(actions)

        def step_wait(self) -> tuple[Any, ...]:
            answer = self.rows.recv()
            self.seen = answer.first_observation
            ends = answer.end != 0
            infos: list[dict[str, Any]] = [{} for _ in range(ENVIRONMENTS)]
            for row in np.flatnonzero(ends):
                infos[row]["terminal_observation"] = answer.observation["observation"][row]
                infos[row]["TimeLimit.truncated"] = bool(answer.truncated[row])
            return self.seen["observation"], answer.reward.astype(np.float32), ends, infos

        def env_method(self, *_: Any, **__: Any) -> list[Any]:  # `action_masks` alone
            return list(self.seen["action_mask"] > 0)

        def has_attr(self, name: str) -> bool:
            return name == "action_masks"

        def get_attr(self, *_: Any, **__: Any) -> list[Any]:
            return [None] * ENVIRONMENTS

        def set_attr(self, *_: Any, **__: Any) -> None:
            pass

        def env_is_wrapped(self, *_: Any, **__: Any) -> list[bool]:
            return [False] * ENVIRONMENTS

        def close(self) -> None:
            pass

    return Cables()


def theirs(steps: int, seed: int) -> tuple[float, Choice]:
    """User CPU seconds of training by sb3-contrib, and the greedy policy."""
    import torch
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.vec_env import VecNormalize

    torch.set_num_threads(1)
    environment = VecNormalize(sb3_cables(), norm_reward=False, clip_obs=np.inf)
    model = MaskablePPO(
        "MlpPolicy",
        environment,
        learning_rate=lambda left: 3e-3 * left,
        n_steps=64,
        n_epochs=8,
        batch_size=256,
        gamma=0.5,
        policy_kwargs={"net_arch": [128]},
        device="cpu",
        seed=seed,
    )
    began = os.times().user
    model.learn(steps)
    seconds = os.times().user - began

    def choose(seen: dict[str, np.ndarray]) -> np.ndarray:
        shown = environment.normalize_obs(seen["observation"])
        masks = seen["action_mask"] > 0
        return model.predict(shown, deterministic=True, action_masks=masks)[0]

    return seconds, choose


def main() -> None:
    """Run both in turns, each in a process of its own, and print the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--side", choices=("ours", "theirs"), help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        train = {"ours": ours, "theirs": theirs}[options.side]
        seconds, choose = train(options.steps, options.seed)
        print(json.dumps([seconds, normalised(rl.CablesParameters(), choose)]))
        return
    found: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
    for number in range(options.rounds):
        for side in sorted(found, reverse=bool(number % 2)):
            with tempfile.TemporaryDirectory() as folder:
                words = [sys.executable, str(Path(__file__).resolve()), "--side", side]
                words += ["--steps", str(options.steps), "--seed", str(number)]
                done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
            found[side].append(json.loads(done.stdout.strip().splitlines()[-1]))
            print(side, number, *found[side][-1], flush=True)
    print("| | user CPU seconds of each round | median | score of each round | mean |")
    print("| --- | --- | ---: | --- | ---: |")
    for side, name in (("ours", "coach_rl"), ("theirs", "sb3-contrib MaskablePPO")):
        seconds, scores = zip(*found[side], strict=True)
        shown = ", ".join(f"{each:.1f}" for each in seconds)
        scored = ", ".join(f"{each:.3f}" for each in scores)
        print(
            f"| {name} | {shown} | {statistics.median(seconds):.1f} | {scored} "
            f"| {statistics.mean(scores):.3f} |"
        )
    ratios = [theirs[0] / ours[0] for ours, theirs in zip(*found.values(), strict=True)]
    print(f"\nMedian of the paired ratios: {statistics.median(ratios):.2f}.")


if __name__ == "__main__":
    main()
