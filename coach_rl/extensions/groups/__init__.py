"""Several agents on one level: members, arbiters, graphs of levels, PettingZoo, self-play."""
