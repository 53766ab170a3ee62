"""What a run tells the world: log records, the sinks that write them, statistics, profiler.

May import core, and nothing else of ours. Start with `records` (what is said), then `sinks` (who
writes it down), then the sinks themselves: `jsonl`, `csv`, `tensorboard`, `console`, `summary`.
"""

from coach_rl.telemetry.records import Kind, LogRecord

__all__ = ["Kind", "LogRecord"]
