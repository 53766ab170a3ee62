"""Values and contracts: what flows between the rooms, and what each room promises.

Imports nothing of ours. Start with `records` (the data), then `interfaces` (who does what with it),
then `steps` and `clock` (how progress is counted).
"""
