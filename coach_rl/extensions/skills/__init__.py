"""Options that learn: skills with rewards and ends of their own, option-critic, DIAYN."""
