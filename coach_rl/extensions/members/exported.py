"""Decisions of several agents as torch modules: those that act together, and one of several."""

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.core.spaces import Space
from coach_rl.extensions.exporting.decisions import (
    Chosen,
    Decision,
    Place,
    Request,
    checked_decision,
    decision_of,
    dtype_of,
)
from coach_rl.extensions.exporting.policies import Tensors
from coach_rl.extensions.members.action_parts import WHOLE, ActionPart
from coach_rl.extensions.members.member_agents import AgentGroup
from coach_rl.extensions.members.members import BoundMember
from coach_rl.extensions.mixed_actions.exported import split


class GroupDecision(Decision):
    """Members that act together, each in some keys of the action.

    Args:
        group: The agents.
        place: Where they decide.
    """

    def __init__(self, group: AgentGroup, place: Place) -> None:
        super().__init__()
        self._group = group
        self._prefix = place.prefix
        self.members = nn.ModuleList()
        self._counts: list[dict[str, int]] = []
        for each in group.bound:
            space = place.acts_in if each.part is None else each.part.space
            self._add(each, acts_in=space, prefix=f"{place.prefix}{each.name}/", sees=place.sees)
        if any(each.has_own_end for each in group.bound):
            self.ending_members = len(group.bound)
        self.facts = {
            "members": {
                name: bool(of) for name, of in getattr(place.params, "own_ends", {}).items()
            },
            "needs_ends": getattr(place.params, "needs_ends", False),
        }

    def _add(self, each: BoundMember, *, acts_in: Space, prefix: str, sees: spaces.Dict) -> None:
        """Append the decision of a member, with numbers of its own to sample with."""
        agent = self._group.members[each.agent_name]
        named = each.observations or {key: key for key in sees}
        own = spaces.Dict({name: sees[key] for key, name in named.items() if key in sees.spaces})
        member = checked_decision(agent, Place(acts_in=acts_in, prefix=prefix, sees=own))
        self.members.append(member)
        self.state |= member.state
        self._counts.append(dict(self.noise))
        for kind, count in member.noise.items():
            self.noise[kind] += count

    def made(self, number: int, each: BoundMember, request: Request) -> tuple[Chosen, Tensors]:
        """A member's actions [R, ...], and the memory of its rows.

        Args:
            number: Its number.
            each: The member.
            request: That of the group.
        """
        member = self.members[number]
        begin = self._counts[number]
        assert isinstance(member, Decision)

        def drawn(kind: str, noise: Tensor | None) -> Tensor | None:
            count = member.noise[kind]
            return None if noise is None else noise[:, begin[kind] : begin[kind] + count]

        real = {f"{self._prefix}{each.name}/real": self.real_starts(request)}
        made: tuple[Chosen, Tensors] = member(
            request._replace(
                state={**real, **request.state},
                seen=each.seen(request.seen),
                normal=drawn("normal", request.normal),
                uniform=drawn("uniform", request.uniform),
                random=drawn("random", request.random),
                over=None,
            )
        )
        return made

    def real_starts(self, request: Request) -> Tensor:
        """True where it decides for the first time in a real episode, [R].

        To one of several agents episodes begin more often; these pass this on among its state.
        """
        return request.state.get(f"{self._prefix}real", request.episodes)

    def forward(self, request: Request) -> tuple[Chosen, Tensors]:
        """Actions [R, ...] by key, or in the Box or MultiDiscrete that the keys stand for."""
        parts: Tensors = {}
        after: Tensors = {}
        for number, each in enumerate(self._group.bound):
            action, state = self.made(number, each, request)
            after |= state
            own = _member_parts(action, each.part)
            if request.over is not None:
                over = request.over[:, number]
                own = {key: where(over, self.idle(key, part), part) for key, part in own.items()}
            parts |= own
        return self.whole(parts), after

    def idle(self, key: str, like: Tensor) -> Tensor:
        """The placeholder of a key where its member doesn't act, [R, ...] as `like`."""
        if key not in self._group.idle:
            return like
        return torch.zeros_like(like) + torch.from_numpy(self._group.idle[key]).to(like.dtype)

    def whole(self, parts: Tensors) -> Chosen:
        """Actions [R, ...] in the space of the group, from those by key."""
        space = self._group.action_space
        if WHOLE in parts:
            return parts[WHOLE]
        if space is None or isinstance(space, spaces.Dict):
            return parts
        columns = [parts[str(number)].flatten() for number in range(len(parts))]
        return torch.stack(columns, dim=1).to(dtype_of(space))


def _member_parts(action: Chosen, part: ActionPart | None) -> Tensors:
    """`BoundMember.split` of tensors."""
    if part is None:
        return {WHOLE: action} if isinstance(action, Tensor) else action
    if not isinstance(action, Tensor):
        return {key: action[name] for key, name in part.names.items()}
    return {part.keys[0]: action} if part.flat is None else split(action, part.flat)


@decision_of.register
def _group_decision(group: AgentGroup, place: Place) -> Decision:
    return GroupDecision(group, place)


class TurnDecision(GroupDecision):
    """Members one of which acts in each row; the decisions of all are computed.

    Args:
        group: The agents.
        place: Where they decide.
    """

    def __init__(self, group: AgentGroup, place: Place) -> None:
        super().__init__(group, place)
        # 1: a real episode has begun, and the member has not acted in it.
        self.state[f"{place.prefix}unseen"] = (len(group.bound),), np.dtype(np.int64)
        # Counted from 1, as 0 stands for none.
        self.state[f"{place.prefix}latest"] = (), np.dtype(np.int64)

    def forward(self, request: Request) -> tuple[Chosen, Tensors]:
        """Actions [R, ...] of the members that act; the others remember what they did."""
        state = request.state
        turn, after = self.turn(request)
        if request.over is not None:  # none acts, -1, in place of a member that is over
            turn = torch.where(at(request.over, turn), -1, turn)
        own, remembered = self.opened(request, turn)
        after |= remembered
        unseen = (state[f"{self._prefix}unseen"] > 0) | self.real_starts(request)[:, None]
        acts = torch.arange(unseen.shape[1]) == turn[:, None]
        after[f"{self._prefix}unseen"] = (unseen & ~acts).to(torch.int64)
        real = {
            f"{self._prefix}{each.name}/real": unseen[:, number]
            for number, each in enumerate(self._group.bound)
        }
        own = own._replace(state={**state, **real})
        after[f"{self._prefix}latest"] = turn + 1
        parts: Tensors = {}
        for number, each in enumerate(self._group.bound):
            here = turn == number
            action, kept = self.made(number, each, own)
            after |= {name: where(here, values, state[name]) for name, values in kept.items()}
            for key, values in _member_parts(action, each.part).items():
                others = parts[key] if key in parts else self.idle(key, values)
                parts[key] = where(here, values, others)
        return self.whole(parts), after

    def turn(self, request: Request) -> tuple[Tensor, Tensors]:
        """The numbers of the members that act, int64 [R], and what is remembered of the turns."""
        raise NotImplementedError

    def opened(self, request: Request, turn: Tensor) -> tuple[Request, Tensors]:
        """The request of the members, and what is remembered of their open decisions.

        To a member an episode begins where another has acted since.

        Args:
            request: That of the group.
            turn: The numbers of the members that act, int64 [R].
        """
        begins = request.episodes | (request.state[f"{self._prefix}latest"] != turn + 1)
        return request._replace(episodes=begins), {}


def at(values: Tensor, places: Tensor) -> Tensor:
    """The values [R, K] at one place of each row, [R]."""
    return values.gather(1, places[:, None])[:, 0]


def where(here: Tensor, values: Tensor, others: Tensor) -> Tensor:
    """Values [R, ...] in the rows `here` [R], and others elsewhere."""
    return torch.where(here.reshape(-1, *[1] * (values.ndim - 1)), values, others)
