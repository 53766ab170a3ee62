"""Sub-goals in a latent space that is learned by reconstruction while the levels learn."""

import torch
from two_levels import Panel, stack

import coach_rl as rl
from coach_rl import LearnedGoals, LearnedGoalSpace
from coach_rl.architectures import AdamParameters, NetworkWrapper, Objective, UpdateEngine
from coach_rl.core import SavedAttribute, parameter_class


@parameter_class
class Latent(LearnedGoalSpace):
    """Goals that are what a linear encoder makes of observations."""

    def build(self, context):
        return LatentGoals(self, context)


class LatentGoals(LearnedGoals):
    """The encoder and its decoder."""

    SAVED = (SavedAttribute("coder", policy=True), SavedAttribute("steps", policy=False))

    def __init__(self, params, context):
        super().__init__(params, context)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(context.runtime.seed)
            layers = torch.nn.Linear(4, params.size), torch.nn.Linear(params.size, 4)
        self.coder = NetworkWrapper(torch.nn.Sequential(*layers), device=self.device)
        adam = AdamParameters(learning_rate=1e-3)
        objective = Objective(network=self.coder, loss=self.loss, optimizer=adam)
        self.steps = UpdateEngine((objective,), runtime=context.runtime)

    def latents(self, observation):
        return self.coder.module[0](observation[self.key])

    def learn(self, batch):
        self.steps.step(batch)
        return True

    def loss(self, flat, batch, scalars):
        seen = batch.after[self.key]
        error = (self.coder.call(flat, seen) - seen).square().mean()
        return error, {"reconstruction": error}


def graph_manager(panel: Panel) -> rl.GraphManager:
    """The top acts in three latents; distances there reward the low level."""
    box = {"low": (-2.0,) * 3, "high": (2.0,) * 3, "threshold": (0.1,) * 3}
    goals = Latent(key="observation", **box, relative=True, reach=(0.5,) * 3, reward="dense")
    return stack(panel, low={"goal_space": goals})
