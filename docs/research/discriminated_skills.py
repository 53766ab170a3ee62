"""Continuous skills: the low level is rewarded where its skill can be told from what it reached."""

import numpy as np
import torch
from two_levels import Panel, stack

import coach_rl as rl
from coach_rl import LearnedGoals, LearnedGoalSpace
from coach_rl.architectures import AdamParameters, NetworkWrapper, Objective, UpdateEngine
from coach_rl.core import SavedAttribute, Verdict, parameter_class


@parameter_class
class Skills(LearnedGoalSpace):
    """Skills are vectors; a discriminator predicts them from places."""

    def build(self, context):
        return DiscriminatedSkills(self, context)


class DiscriminatedSkills(LearnedGoals):
    """The discriminator, q(z | s) = N(f(s), 1) (VIC, Gregor et al. 2016, section 2)."""

    SAVED = (SavedAttribute("guess", policy=True), SavedAttribute("steps", policy=False))

    def __init__(self, params, context):
        super().__init__(params, context)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(context.runtime.seed)
            module = torch.nn.Sequential(
                torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, params.size)
            )
        self.guess = NetworkWrapper(module, device=self.device)
        adam = AdamParameters(learning_rate=1e-3)
        objective = Objective(network=self.guess, loss=self.loss, optimizer=adam)
        self.steps = UpdateEngine((objective,), runtime=context.runtime)

    def latents(self, observation):
        return self.guess.module(observation[self.key])

    def judge(self, goal, achieved, before=None):
        """The log-likelihood of the skill, but for a constant; skills last for their horizon."""
        difference = self.difference_of(goal, achieved)
        never = np.zeros(len(goal), np.bool_)
        return Verdict(difference, -0.5 * (difference**2).sum(1, np.float64), never, never)

    def learn(self, batch):
        self.steps.step(batch)
        return True

    def loss(self, flat, batch, scalars):
        error = (self.guess.call(flat, batch.after[self.key]) - batch.goal).square().sum(1).mean()
        return error, {"error": error}


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Skills are drawn from a cube, their prior."""
    box = {"low": (-1.0,) * 2, "high": (1.0,) * 2, "threshold": (0.1,) * 2}
    skills = Skills(key="achieved_goal", **box)
    return stack(panel, top={"agent": rl.UniformAgentParameters()}, low={"goal_space": skills})
