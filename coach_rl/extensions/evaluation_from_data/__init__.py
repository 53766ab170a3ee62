"""Judging policies from logged data: importance sampling, fitted Q evaluation, doubly robust.

May import what sessions may. Start with `evaluation`; the estimators are in `importance_sampling`
and `doubly_robust`, functions of `LoggedEpisodes`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.evaluation_from_data.evaluation import evaluate_from_data
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["evaluate_from_data"]
