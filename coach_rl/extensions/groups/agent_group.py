"""Several agents on one level, each with its own observations, actions, rewards and ends.

AgentGroupParameters(
    members=(
        GroupMember(agent=PPOAgentParameters(name="walker"), actions="legs"),
        GroupMember(agent=DDPGAgentParameters(name="arm"), actions=("shoulder", "elbow")),
    )
)

A group is an agent like any other to its level. To its members it is the level: each gets the
calls of `core.agents.Agent` for the rows in which it has a part.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from gymnasium import spaces

from coach_rl.core.agents import AgentContext, AgentParameters, AnyAgent
from coach_rl.core.discrete_actions import mask_key
from coach_rl.core.errors import ConfigurationError, SpaceError, UnknownNameError, require
from coach_rl.core.infos import REWARD, TERMINATED, TRUNCATED, Over, agent_info
from coach_rl.core.parameter_classes import LearnerParameters, parameter_class, require_printable
from coach_rl.core.ranges import NonEmpty, UnitInterval
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.extensions.members.action_parts import WHOLE, ActionPart, by_part
from coach_rl.extensions.members.member_agents import AgentGroup, in_turn
from coach_rl.extensions.members.members import BoundMember

if TYPE_CHECKING:
    from coach_rl.extensions.groups.arbiters import Arbiter


@parameter_class
class GroupMember:
    """One agent of a group, and which part of the level is its own."""

    agent: AgentParameters
    """The member's agent; its name is the member's name in logs and files."""
    actions: str | tuple[str, ...] | None = None
    """Its keys of the action space. `left` stands for the key `left`, or else for every key
    below `left/`. Several keys make one action, see `ActionPart`. The keys of a flat Box or
    MultiDiscrete are the numbers of its elements: `0`, `1`. None: all of them, where members act in
    turn."""
    observations: tuple[str, ...] | None = None
    """The observation keys it sees, named in the same way; None: all of them."""
    critic_observations: tuple[str, ...] = ()
    """Further observation keys that the critic of its PPO sees, and its policy does not: a central
    critic (MAPPO, Yu et al. 2022, arXiv:2103.01955). Members that share an agent see them as
    `critic/0`, `critic/1` and so on, in this order. Empty: the critic sees what the policy does."""
    reward: str | None = None
    """The info array that holds its own reward; None: it gets the level's reward."""
    terminated: str | None = None
    """The info array that marks terminal states of its own episode; None: the level's. Once it
    has ended the member waits for the next real episode."""
    truncated: str | None = None
    """The info array that marks truncations of its own episode; None: the level's."""
    shares: str | None = None
    """The name of an agent that it shares with the members that give the same name: one set of
    networks, optimisers, statistics and memory, which learns from what all of them do. Their agents
    may differ in nothing but their names. Keys named after a member, `left` and `left/arm`, are
    `observation` and `arm` to the shared agent. None: the member has an agent of its own."""

    @property
    def agent_name(self) -> str:
        """The name of the agent that acts for it."""
        return self.shares or self.agent.name

    def bound(self, **own: Any) -> BoundMember:
        """The member with its part of a level; `own` has the other fields."""
        return BoundMember(
            name=self.agent.name,
            agent_name=self.agent_name,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            infos=getattr(self.agent, "infos", ()),
            **own,
        )

    @classmethod
    def of(cls, agent: AgentParameters) -> Self:
        """The member that is the environment's agent of the same name.

        It sees and acts under its name, and takes its reward and ends from the infos named in
        `core.agent_info`, which the adapter of PettingZoo's environments fills.
        """
        return cls(
            agent=agent,
            actions=agent.name,
            observations=(agent.name,),
            reward=agent_info(agent.name, REWARD),
            terminated=agent_info(agent.name, TERMINATED),
            truncated=agent_info(agent.name, TRUNCATED),
        )


class ArbiterParameters(Protocol):
    """A frozen description of who acts, where not all members do; see `arbiters`."""

    def build(
        self, agents: Mapping[str, AnyAgent], bound: tuple[BoundMember, ...], context: AgentContext
    ) -> "Arbiter":
        """The chooser of the member that acts.

        Args:
            agents: The members' agents, by name.
            bound: The members.
            context: The group's.
        """
        ...


@parameter_class
class AgentGroupParameters(LearnerParameters):
    """Agents that act together or in turn, each by its own algorithm."""

    members: NonEmpty[tuple[GroupMember, ...]]
    """The members; every action key belongs to exactly one of them, or to one at least where they
    act in turn."""
    arbiter: ArbiterParameters | None = None
    """Chooses who acts in each row: `Turns`, `EnvironmentTurns` or `SelectedTurns`. Keys of those
    that don't act hold a filler. None: all of them act at every decision."""
    discount: UnitInterval = 1.0
    """Discount per simulator step of the rewards that are added up until a member acts again; 1
    where all act at every decision."""
    name: NonEmpty[str] = "group"
    """The group's name where it is spoken of as one agent."""

    def __post_init__(self) -> None:
        names = [member.agent.name for member in self.members]
        require(
            len(set(names)) == len(names),
            f"the members of group '{self.name}' need different names, got {names}",
        )
        require(
            self.arbiter is not None or self.discount == 1.0,
            f"group '{self.name}' has discount={self.discount:g}, which is for rewards from one "
            "turn of a member to its next, and no arbiter; leave it out, or set the arbiter",
        )
        for member in self.members:
            require_printable(member.shares, "GroupMember.shares")
            if member.shares is None:
                continue
            require(
                member.shares not in names,
                f"member '{member.agent.name}' shares '{member.shares}', which is the name of a "
                "member; choose another",
            )
            first = next(each for each in self.members if each.shares == member.shares)
            require(
                _named(member.agent, first.agent.name) == first.agent,
                f"the members '{first.agent.name}' and '{member.agent.name}' share "
                f"'{member.shares}', and their agents differ in more than their names",
            )

    @property
    def own_ends(self) -> dict[str, tuple[str, ...]]:
        """Names of the infos that mark the end of each member's own episode, by its name."""
        return {
            each.agent.name: tuple(filter(None, (each.terminated, each.truncated)))
            for each in self.members
        }

    @property
    def needs_ends(self) -> bool:
        """True if whose own episode is over decides who acts."""
        reads = getattr(self.arbiter, "reads_ends", self.arbiter is not None)
        return reads and any(self.own_ends.values())

    @property
    def info_keys(self) -> tuple[str, ...]:
        """The names under which members find rewards and ends of their own in infos."""
        keys = ((each.reward, each.terminated, each.truncated) for each in self.members)
        return tuple(key for own in keys for key in own if key is not None)

    def obstacle_to_learning(self, *, num_envs: int, steps: int, heatup: int) -> str | None:
        """That of the first member with one, or else of the agent that selects them.

        Each decision counts for an agent that is shared. One that acts in turn makes some of them.
        """
        learners = [
            (_named(member.agent, member.agent_name), self._share(member.agent_name))
            for member in self.members
        ]
        chooser: Any = getattr(self.arbiter, "agent", None)
        learners.append((chooser, Fraction(1, getattr(self.arbiter, "every", 1))))
        for learner, share in learners:
            if not isinstance(learner, LearnerParameters):
                continue
            obstacle = learner.obstacle_to_learning(
                num_envs=num_envs, steps=ceil(steps * share), heatup=int(heatup * share)
            )
            if obstacle is not None:
                return obstacle
        return None

    def _share(self, name: str) -> Fraction:
        """The most decisions that an agent of that name makes for each decision of the group."""
        agents = {member.agent.name: member.agent_name for member in self.members}
        if self.arbiter is None:
            return Fraction([*agents.values()].count(name))
        order = getattr(self.arbiter, "order", None)
        if order is None or any(self.own_ends.values()):  # others leave their turns to it
            return Fraction(1)
        turns = [agents.get(each) == name for each in order or agents]
        # A short episode is over before its round is.
        return max(Fraction(sum(turns[:count]), count) for count in range(1, len(turns) + 1))

    def build(self, context: AgentContext) -> "AgentGroup":
        """The group.

        Raises:
            UnknownNameError: A member names a key that the level does not have.
            SpaceError: The action has no keys, or one that belongs to no member or to two, or a
                member cannot serve its part.
            ConfigurationError: A member acts in turn and is a group itself, in which there are
                rewards that would have to be discounted.
        """
        if self.arbiter is not None:
            context = replace(context, decision_infos=self._infos_over_turns(context))
        whole = context.spaces
        action = by_part(whole.action)
        is_whole = all(member.actions is None for member in self.members)
        if is_whole and self.arbiter is not None and action is not whole.action:
            action = spaces.Dict({WHOLE: whole.action})
        parts = self._parts(action)
        if action is not whole.action and not is_whole:  # a part is no goal of the level below
            context = replace(context, place=replace(context.place, below=None, agent_below=None))
        own: dict[str, list[EnvironmentSpaces]] = {}
        seen = [
            _observed(member, whole.observation, part.space)
            for member, part in zip(self.members, parts, strict=True)
        ]
        for member, keys, part in zip(self.members, seen, parts, strict=True):
            shown = {name: whole.observation[key] for key, name in (keys[0] | keys[1]).items()}
            spaces_of_member = EnvironmentSpaces(observation=spaces.Dict(shown), action=part.space)
            own.setdefault(member.agent_name, []).append(spaces_of_member)
            if spaces_of_member != own[member.agent_name][0]:
                raise SpaceError(
                    f"members that share '{member.shares}' need equal spaces; '{member.agent.name}'"
                    f" has {spaces_of_member}, the first {own[member.agent_name][0]}"
                )
        acting = 1 if self.arbiter is None else len(self.members)
        agents: dict[str, AnyAgent] = {}
        bound: list[BoundMember] = []
        for member, keys, part in zip(self.members, seen, parts, strict=True):
            name = member.agent_name
            count = len(own[name])
            if name not in agents:
                mask = _mask_of(member, whole.observation, part.space)
                agents[name] = _named(_with_central_critic(member, *keys, mask), name).build(
                    replace(
                        context,
                        spaces=own[name][0],
                        place=replace(context.place, lasting=in_turn(name) if self.arbiter else ""),
                        runtime=context.runtime.for_part("member", name, signals=name),
                        num_envs=context.num_envs * count,
                        planned_steps=context.planned_steps * count // acting,
                    )
                )
            slot = sum(each.agent_name == name for each in bound)
            bound.append(
                member.bound(
                    observations=keys[0] | keys[1],
                    part=part,
                    slot=slot,
                    slots=count,
                    over=context.decision_infos,
                )
            )
        if self.arbiter is None:
            return AgentGroup(agents, tuple(bound), whole.action)
        # Here, so that members that all act do not load what only turns need.
        from coach_rl.extensions.groups.turn_group import TurnGroup

        arbiter = self.arbiter.build(agents, tuple(bound), context)
        return TurnGroup(
            agents,
            tuple(bound),
            whole.action,
            arbiter=arbiter,
            discount=self.discount,
        )

    def _infos_over_turns(self, context: AgentContext) -> dict[str, Over]:
        """The rules for infos from one turn to the next, those of inner members among them."""
        rules = dict(context.decision_infos)
        for member in self.members:
            for own in _inner_members(member.agent):
                if own.reward is not None and self.discount != 1.0:
                    raise ConfigurationError(
                        f"member '{own.agent.name}' of '{member.agent.name}', which acts in turn, "
                        f"has a reward of its own, '{own.reward}', and sums of infos are not "
                        f"discounted, got discount={self.discount:g}; set discount=1, or make it "
                        f"a member of '{self.name}'"
                    )
                if own.reward is not None:
                    rules[own.reward] = "sum"
                ends = filter(None, (own.terminated, own.truncated))
                rules |= dict.fromkeys(ends, "maximum")
        return rules

    def _parts(self, space: spaces.Dict) -> list[ActionPart]:
        """Each member's part of the action; every key belongs to a member, or to exactly one."""
        if self.arbiter is None and WHOLE in space.spaces:
            raise SpaceError(
                f"the group '{self.name}' needs actions to give its members parts of: a Dict, a "
                f"flat Box or a flat MultiDiscrete, got {space[WHOLE]}; for one agent leave the "
                "group out, or let its members act in turn by an arbiter"
            )
        owners: dict[str, str] = {}
        parts = []
        for member in self.members:
            names = (member.actions,) if isinstance(member.actions, str) else member.actions
            keys = tuple(space.spaces)
            if names is not None:
                keys = _keys(names, space, kind="action key", member=member)
            if not keys:
                raise SpaceError(
                    f"member '{member.agent.name}' has no action keys; "
                    f"allowed: {', '.join(space.spaces)}"
                )
            for key in keys:
                owner = owners.setdefault(key, member.agent.name)
                if owner != member.agent.name and self.arbiter is None:
                    raise SpaceError(
                        f"the action key '{key}' is claimed by the members '{owner}' and "
                        f"'{member.agent.name}'; leave it to one of them"
                    )
            parts.append(ActionPart(keys, space))
        unclaimed = [key for key in space.spaces if key not in owners]
        if unclaimed:
            raise SpaceError(
                f"no member of group '{self.name}' acts under {', '.join(map(repr, unclaimed))}; "
                "add a GroupMember for it"
            )
        return parts


def _inner_members(agent: object) -> list[GroupMember]:
    """The members of a group, and those of the groups in it and in the agents of skills."""
    own = agent.members if isinstance(agent, AgentGroupParameters) else ()
    agents = (*(each.agent for each in own), *getattr(agent, "agents", ()))
    return [*own, *(inner for each in agents for inner in _inner_members(each))]


def _observed(
    member: GroupMember, space: spaces.Dict, action: Space
) -> tuple[dict[str, str], dict[str, str]]:
    """The keys that a member sees and those of its critic alone, with its agent's names of them.

    Its action mask is among the former, whether its `observations` name it or not.
    """
    keys = tuple(space.spaces)
    if member.observations is not None:
        keys = _keys(member.observations, space, kind="observation key", member=member)
    if keys and (mask := _mask_of(member, space, action)) is not None:
        keys = tuple(dict.fromkeys((*keys, mask)))
    if not keys:
        raise SpaceError(
            f"member '{member.agent.name}' has no observation keys; "
            f"allowed: {', '.join(space.spaces)}; None for all"
        )
    critic = _keys(member.critic_observations, space, kind="observation key", member=member)
    if again := [key for key in critic if key in keys]:
        raise SpaceError(
            f"member '{member.agent.name}' has '{again[0]}' among its critic_observations, and its "
            "policy sees it already; leave it out there, or name its `observations`"
        )
    if member.shares is None:
        return {key: key for key in keys}, {key: key for key in critic}
    own = member.agent.name
    names = {key: "observation" if key == own else key.removeprefix(f"{own}/") for key in keys}
    twice = [key for key, name in names.items() if list(names.values()).count(name) > 1]
    if twice:
        raise SpaceError(
            f"member '{own}' sees {' and '.join(map(repr, twice))}, which are both "
            f"'{names[twice[0]]}' to the agent '{member.shares}' that it shares; leave one of them "
            "out of its observations"
        )
    return names, {key: f"critic/{number}" for number, key in enumerate(critic)}


def _mask_of(member: GroupMember, space: spaces.Dict, action: Space) -> str | None:
    """The key of a member's action mask; None where it has none."""
    return mask_key(space, getattr(member.agent, "action_mask", None), member.agent.name, action)


def _with_central_critic(
    member: GroupMember, policy: Mapping[str, str], critic: Mapping[str, str], mask: str | None
) -> AgentParameters:
    """The member's agent, whose critic alone sees some keys.

    Args:
        member: The member.
        policy: The keys that policy and critic see, and the agent's names of them.
        critic: The same of those that the critic alone sees.
        mask: The key of the action mask, which networks do not see.
    """
    if not critic:
        return member.agent
    described: Any = member.agent
    network: Any = getattr(described, "network", None)
    if not hasattr(network, "critic_torso") or network.shared_torso:
        raise ConfigurationError(
            f"member '{member.agent.name}' has critic_observations, which need an agent whose "
            f"network has a torso for the critic alone, as PPO's, got {type(described).__name__}"
            f"{' with shared_torso' * hasattr(network, 'critic_torso')}; leave them out"
        )
    own = tuple(name for key, name in policy.items() if key != mask)
    of_policy, of_critic = network.torso, network.critic_torso or network.torso
    split = replace(
        network,
        torso=replace(of_policy, keys=of_policy.keys or own),
        critic_torso=replace(of_critic, keys=of_critic.keys or (*own, *critic.values())),
    )
    return cast(AgentParameters, replace(described, network=split))


def _keys(
    names: tuple[str, ...], space: spaces.Dict, *, kind: str, member: GroupMember
) -> tuple[str, ...]:
    """The keys of a space with these names or below these prefixes, once each."""
    found: list[str] = []
    for name in names:
        below = [key for key in space.spaces if key.startswith(f"{name}/")]
        keys = [name] if name in space.spaces else below
        if not keys:
            allowed = {*space.spaces, *(key.partition("/")[0] for key in space.spaces)}
            raise UnknownNameError(kind, name, allowed, f"named by member '{member.agent.name}'")
        found += keys
    return tuple(dict.fromkeys(found))


def _named(agent: AgentParameters, name: str) -> AgentParameters:
    """The same agent under another name."""
    described: Any = agent
    return described if agent.name == name else cast(AgentParameters, replace(described, name=name))
