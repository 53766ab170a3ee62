"""Goals that the level below ends by a learned chance: option-critic's gradient, over goals.

Bacon et al. 2017, theorem 2, with goals for options: the chance b(s, g) falls where the level above
values going on with g, Q(s, g), above what it would choose there, V(s), and rises where it is worth
less.
"""

from dataclasses import dataclass
from functools import partial

import torch
from two_levels import PLACES, SMALL, Panel, stack

import coach_rl as rl
from coach_rl.agents.agent_rows import AgentRows
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.td3_agent import TD3Learner
from coach_rl.core import parameter_class
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import SavedAttribute
from coach_rl.core.seeding import integer_seed

COST = 0.01
"""Added to the advantage, as in the paper: without it goals become short."""
KEYS = ("achieved_goal", "desired_goal")


@dataclass(kw_only=True)
class EndingRows(AgentRows):
    """Rows with the numbers by which goals end."""

    SAVED = ("draws",)

    draws: RowNoise


class EndsGoals(OffPolicyAgent):
    """TD3 that ends its goals."""

    SAVED = (SavedAttribute("logit", policy=True), SavedAttribute("optimizer", policy=False))

    def __init__(self, params, context):
        make = partial(TD3Learner, params)
        super().__init__(params, context, discount=params.algorithm.discount, make_learner=make)
        rng = torch.Generator().manual_seed(integer_seed(context.seed, "ends"))
        hidden, last = torch.nn.Linear(4, 32), torch.nn.Linear(32, 1)
        self.logit = torch.nn.Sequential(hidden, torch.nn.Tanh(), last)
        for each in self.logit.parameters():
            each.data = 0.1 * torch.randn(each.shape, generator=rng)
        last.bias.data.sub_(2.2)  # a chance of 0.1
        self.optimizer = torch.optim.Adam(self.logit.parameters(), lr=1e-3)

    def new_rows(self, num_envs, seed):
        draws = RowNoise(num_rows=num_envs, size=1, kind="uniform", seed=seed, name="ends")
        return EndingRows(**vars(super().new_rows(num_envs, seed)), draws=draws)

    def chance(self, seen):
        """b(s, g), [B], of observations with goals."""
        columns = [torch.as_tensor(seen[key]).flatten(1) for key in KEYS]
        return torch.sigmoid(self.logit(torch.cat(columns, dim=1))).squeeze(1)

    def ends(self, row_state, rows, observation, clock):
        with torch.no_grad():
            chance = self.chance(observation).numpy()
        return row_state.draws.draw(rows)[:, 0] < chance

    def learn_ends(self, seen, advantage):
        """Take a step along the gradient: mean of b(s, g) * (Q(s, g) - V(s) + COST)."""
        self.optimizer.zero_grad()
        (self.chance(seen) * (torch.as_tensor(advantage) + COST)).mean().backward()
        self.optimizer.step()


class ChoosesGoals(OffPolicyAgent):
    """TD3 whose critic judges the goals of the level below where decisions end."""

    def __init__(self, params, context):
        make = partial(TD3Learner, params)
        super().__init__(params, context, discount=params.algorithm.discount, make_learner=make)
        self.below, self.goal = context.place.agent_below, context.place.sub_goal

    def learn_from_batch(self, batch):
        learned = super().learn_from_batch(batch)
        before, after = (
            {key: values.numpy() for key, values in seen.items()}
            for seen in (batch.observation, batch.next_observation)
        )
        goal = self.goal.target(batch.action.numpy(), before)
        same, best = self.goal.asked_by(goal, after), self.policy_actions(after)
        advantage = self.learner.values(after, same) - self.learner.values(after, best)
        self.below.learn_ends(after | self.goal.show(goal, after), advantage)
        return learned


@parameter_class
class EndsGoalsParameters(rl.TD3AgentParameters):
    """Description of the level below."""

    def build(self, context):
        """The agent."""
        return EndsGoals(self, context)


@parameter_class
class ChoosesGoalsParameters(rl.TD3AgentParameters):
    """Description of the level above."""

    def build(self, context):
        """The agent."""
        return ChoosesGoals(self, context)


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Both levels learn; `level/own_end_share` is the share of goals that were ended so."""
    settings = SMALL | {"update_mode": "eager"}
    top = {"agent": ChoosesGoalsParameters(**settings)}
    low = {"agent": EndsGoalsParameters(**settings), "goal_space": PLACES}
    return stack(panel, top=top, low=low)
