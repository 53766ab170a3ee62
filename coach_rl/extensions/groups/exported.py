"""Decisions of groups whose members act in turn, as torch modules."""

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.extensions.exporting.decisions import Decision, Place, Request, decision_of, refused
from coach_rl.extensions.exporting.policies import Tensors
from coach_rl.extensions.groups.arbiters import Order, Selected, Shown
from coach_rl.extensions.groups.turn_group import TurnGroup
from coach_rl.extensions.members.exported import TurnDecision, at, where


class ArbiterDecision(TurnDecision):
    """Members one of which acts in each row, as an arbiter chooses.

    Args:
        group: The agents.
        place: Where they decide.
    """

    def __init__(self, group: TurnGroup, place: Place) -> None:
        super().__init__(group, place)
        prefix = place.prefix
        arbiter = group.arbiter
        if not isinstance(arbiter, Order | Shown | Selected):
            kind = type(arbiter).__name__
            raise refused(group.bound[0], f"its turns are by a {kind}, a function of Python")
        self._arbiter = arbiter
        count = np.dtype(np.int64)
        self.state[f"{prefix}open"] = (len(group.bound),), count  # 1: it acted since the start
        self.state |= {f"{prefix}{name}": ((), count) for name in arbiter.new_rows(1)}
        if isinstance(arbiter, Selected):
            chooser = arbiter.chooser
            choice = spaces.Discrete(len(group.bound))
            own = f"{prefix}{chooser.name}/"
            self._add(chooser, acts_in=choice, prefix=own, sees=place.sees)

    def opened(self, request: Request, turn: Tensor) -> tuple[Request, Tensors]:
        open_before = request.state[f"{self._prefix}open"] > 0  # [R, M]
        acted = open_before & ~request.starts[:, None]
        is_new = ~at(acted, turn.clamp(min=0))
        own, after = super().opened(request._replace(starts=is_new), turn)
        acts = torch.arange(acted.shape[1]) == turn[:, None]
        after[f"{self._prefix}open"] = (acted | acts).to(torch.int64)
        return own._replace(episodes=own.episodes & is_new), after

    def turn(self, request: Request) -> tuple[Tensor, Tensors]:
        """The numbers of the members that act, int64 [R], and what the arbiter remembers."""
        arbiter = self._arbiter
        prefix = self._prefix
        state = request.state
        if isinstance(arbiter, Order):
            place = state[f"{prefix}place"]
            order = torch.from_numpy(arbiter.order)
            place = torch.where(self.real_starts(request), 0, place)
            if request.over is not None:  # the first from there on whose member is not over
                following = order[(place[:, None] + torch.arange(len(order))) % len(order)]
                plays = ~request.over.gather(1, following)  # [R, L]
                place = place + plays.to(torch.int64).argmax(dim=1)
            after = {f"{prefix}place": (place + 1) % len(order)}
            return order[place % len(order)], after
        if isinstance(arbiter, Shown):
            shown = [request.seen[key].reshape(-1) > 0 for key in arbiter.keys]
            return torch.stack(shown, dim=1).to(torch.int64).argmax(dim=1), {}
        assert isinstance(arbiter, Selected)
        since = state[f"{prefix}since"]
        due = request.starts | (since >= arbiter.every)
        if request.over is not None:
            due = due | at(request.over, state[f"{prefix}choice"])
        own = request._replace(episodes=request.starts & request.episodes)
        chosen, kept = self.made(len(self._group.bound), arbiter.chooser, own)
        assert isinstance(chosen, Tensor)
        choice = torch.where(due, chosen, state[f"{prefix}choice"])
        after = {name: where(due, values, state[name]) for name, values in kept.items()}
        after[f"{prefix}choice"] = choice
        after[f"{prefix}since"] = torch.where(due, 0, since) + 1
        return choice, after


@decision_of.register
def _turn_decision(group: TurnGroup, place: Place) -> Decision:
    return ArbiterDecision(group, place)
