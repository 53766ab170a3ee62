"""What each of two processes does: gradient steps on its own batches; rank 0 writes parameters."""

from pathlib import Path

import torch
from torch import nn

from coach_rl.architectures.gradient_step import AdamParameters, Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.extensions.parallel.parallel import MeanOverRanks
from coach_rl.extensions.parallel.ranks import joined

ADAM = AdamParameters(learning_rate=0.02, max_gradient_norm=0.5, l2=0.01)
STEPS = 30


def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).double()


def batch(rank, step):
    """Inputs [16, 3], which differ from rank to rank."""
    rng = torch.Generator().manual_seed(1_000 * rank + step)
    return {"x": torch.randn(16, 3, generator=rng, dtype=torch.float64)}


def error(model, batch):
    return ((model(batch["x"]) - (batch["x"] ** 2).sum(dim=1, keepdim=True)) ** 2).mean()


def main(file, device):
    """Take the steps as one of the ranks.

    Args:
        file: The file that rank 0 writes.
        device: Name of the device; of CUDA's each rank takes its own.
    """
    with joined() as ranks:
        place = torch.device(device, ranks.rank) if device == "cuda" else torch.device(device)
        network = NetworkWrapper(module(), device=place)

        def loss(flat, batch, scalars):
            value = error(lambda x: network.call(flat, x), batch)
            return value, {"error": value.detach()}

        objective = Objective(network=network, loss=loss, optimizer=ADAM)
        engine = UpdateEngine((objective,), mode="auto", planned_updates=0)
        engine.insert(lambda _: MeanOverRanks(ranks))
        for step in range(STEPS):
            data = {name: column.to(place) for name, column in batch(ranks.rank, step).items()}
            engine.step(data)
        flat = ranks.gather(network.online.cpu().numpy())
        assert (flat == flat[0]).all()
        if ranks.rank == 0:
            torch.save(network.online.cpu(), Path(file))
