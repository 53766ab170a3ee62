"""Goals that the level below ends by a learned chance: option-critic's gradient, over goals.

Bacon et al. 2017, theorem 2, with goals for options: the chance b(s, g) falls where the level above
values going on with g, Q(s, g), above what it would choose there, V(s), and rises where it is worth
less.
"""

from functools import partial

import torch
from two_levels import SMALL, Panel, stack

import coach_rl as rl
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.architectures.gradient_step import as_arrays
from coach_rl.architectures.initial_weights import linear
from coach_rl.core import parameter_class
from coach_rl.core.saved import SavedAttribute
from coach_rl.core.seeding import integer_seed

COST = 0.01
"""Added to the advantage, as in the paper: without it goals become short."""


class EndsGoals(OffPolicyAgent):
    """TD3 that ends its goals."""

    SAVED = (SavedAttribute("logit", policy=True), SavedAttribute("optimizer", policy=False))
    ends_by_chance = True

    def __init__(self, params, context, **learner):
        super().__init__(params, context, **learner)
        rng = torch.Generator().manual_seed(integer_seed(context.seed, "ends"))
        layer = partial(linear, rng=rng, gain=0.2, orthogonal=True)
        hidden, last = layer(4, 32), layer(32, 1)
        last.bias.data.sub_(2.2)  # a chance of 0.1
        self.logit = torch.nn.Sequential(hidden, torch.nn.Tanh(), last)
        self.optimizer = torch.optim.Adam(self.logit.parameters(), lr=1e-3)

    def chance(self, seen):
        """b(s, g), [B], of observations with goals."""
        columns = [torch.as_tensor(seen[key]) for key in ("achieved_goal", "desired_goal")]
        return torch.sigmoid(self.logit(torch.cat(columns, dim=1))).squeeze(1)

    def ends(self, row_state, rows, observation, clock):
        return self.chance(observation).detach().numpy()

    def learn_ends(self, seen, advantage):
        """Take a step along the gradient: mean of b(s, g) * (Q(s, g) - V(s) + COST)."""
        self.optimizer.zero_grad()
        (self.chance(seen) * (torch.as_tensor(advantage) + COST)).mean().backward()
        self.optimizer.step()


class ChoosesGoals(OffPolicyAgent):
    """TD3 whose critic judges the goals of the level below where decisions end."""

    def learn_from_batch(self, batch):
        learned = super().learn_from_batch(batch)
        before, after = map(as_arrays, (batch.observation, batch.next_observation))
        below, goals = self.place.agent_below, self.place.sub_goal
        goal = goals.target(batch.extras.get("sent", batch.action).numpy(), before)
        critic = self.critic_for(self.name)
        advantage = critic.values(after, goals.asked_by(goal, after)) - critic.values(after)
        below.learn_ends(after | goals.show(goal, after), advantage)
        return learned


@parameter_class
class EndsGoalsParameters(rl.TD3AgentParameters):
    """Description of the level below."""

    AGENT = EndsGoals


@parameter_class
class ChoosesGoalsParameters(rl.TD3AgentParameters):
    """Description of the level above."""

    AGENT = ChoosesGoals


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Both levels learn; `level/own_end_share` is the share of goals that were ended so."""
    top = {"agent": ChoosesGoalsParameters(**SMALL)}
    return stack(panel, top=top, low={"agent": EndsGoalsParameters(**SMALL)})
