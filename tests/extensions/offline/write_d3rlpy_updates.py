"""Writes `d3rlpy_updates.npz`: what d3rlpy's updates do to networks, in double precision.

python tests/extensions/offline/write_d3rlpy_updates.py      # with d3rlpy 2.8 installed, alone

`test_d3rlpy_updates.py` lets the agents here learn from the same networks and batches. Every
algorithm makes `UPDATES` updates on batches made by hand; noise is left out.
"""

from pathlib import Path

import numpy as np
import torch

FILE = Path(__file__).parent / "d3rlpy_updates.npz"
UPDATES = 3
BATCH = 16
HIDDEN = [8, 6]
RATE = 3e-4
GAMMA = 0.9


def batches(*, discrete):
    rng = np.random.default_rng(0)
    for _ in range(UPDATES):
        yield {
            "observation": rng.normal(size=(BATCH, 3)),
            "action": rng.integers(0, 4, BATCH) if discrete else rng.uniform(-1, 1, (BATCH, 2)),
            "reward": rng.normal(size=BATCH),
            "next_observation": rng.normal(size=(BATCH, 3)),
            "terminated": rng.random(BATCH) < 0.3,
        }


def configs():
    import d3rlpy.algos as algos
    from d3rlpy.models import VectorEncoderFactory

    encoder = VectorEncoderFactory(hidden_units=HIDDEN)
    both = {"actor_encoder_factory": encoder, "critic_encoder_factory": encoder}
    rates = {"actor_learning_rate": RATE, "critic_learning_rate": RATE, "gamma": GAMMA}
    return {
        "td3_bc": algos.TD3PlusBCConfig(
            **both,
            **rates,
            batch_size=BATCH,
            target_smoothing_sigma=0.0,
            update_actor_interval=1,
        ),
        "iql": algos.IQLConfig(**both, **rates, value_encoder_factory=encoder, batch_size=BATCH),
        "bc": algos.BCConfig(
            encoder_factory=encoder, learning_rate=RATE, policy_type="deterministic"
        ),
        "discrete_cql": algos.DiscreteCQLConfig(
            encoder_factory=encoder,
            learning_rate=RATE,
            gamma=GAMMA,
            batch_size=BATCH,
            alpha=0.5,
            target_update_interval=2,
        ),
    }


def networks(impl):
    """The networks of an algorithm by name."""
    found = {}
    for name, module in vars(impl._modules).items():
        if isinstance(module, torch.nn.Module):
            found[name] = module
    return found


def parameters(impl):
    return {
        f"{name}/{path}": value.detach().numpy().copy()
        for name, module in networks(impl).items()
        for path, value in module.named_parameters()
    }


def main():
    from d3rlpy.torch_utility import TorchMiniBatch

    torch.set_default_dtype(torch.float64)
    written = {}
    for name, config in configs().items():
        torch.manual_seed(1)
        discrete = name == "discrete_cql"
        algorithm = config.create(device="cpu")
        algorithm.create_impl((3,), 4 if discrete else 2)
        impl = algorithm.impl
        written |= {f"{name}/before/{path}": each for path, each in parameters(impl).items()}
        for number, batch in enumerate(batches(discrete=discrete), start=1):
            kind = "discrete" if discrete else "continuous"
            written |= {f"{kind}/{number}/{key}": each for key, each in batch.items()}
            action = torch.tensor(batch["action"])
            column = {key: torch.tensor(batch[key])[:, None] for key in ("reward", "terminated")}
            impl.inner_update(
                TorchMiniBatch(
                    observations=torch.tensor(batch["observation"]),
                    actions=action[:, None] if discrete else action,
                    rewards=column["reward"],
                    next_observations=torch.tensor(batch["next_observation"]),
                    next_actions=action[:, None] if discrete else action,
                    returns_to_go=column["reward"],
                    terminals=column["terminated"].double(),
                    intervals=torch.ones(BATCH, 1),
                    device="cpu",
                    numpy_batch=None,
                ),
                number,
            )
            if number in (1, UPDATES):
                after = parameters(impl).items()
                written |= {f"{name}/{number}/{path}": each for path, each in after}
    np.savez_compressed(FILE, **written)


if __name__ == "__main__":
    main()
