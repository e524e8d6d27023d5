"""Many runs and many matches at once, on Ray: sweeps, match-ups, league tables."""

from aprl.multi.config import SweepConfig
from aprl.multi.runner import SweepResult, download, plan, resume_sweep, sweep

__all__ = ["SweepConfig", "SweepResult", "download", "plan", "resume_sweep", "sweep"]
