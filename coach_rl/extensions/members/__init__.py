"""Several agents on one level that are one agent to it: what each sees, does and saves.

May import what levels may. Start with `member_agents`; `members` has what each agent sees of the
level's records, `action_parts` how their actions become one, `requests` what a level requests that
shares its rows with others. `groups` and `skills` build on it.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.members.member_agents import AgentGroup, MemberRows, OneOfMembers
    from coach_rl.extensions.members.members import BoundMember
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["AgentGroup", "BoundMember", "MemberRows", "OneOfMembers"]
