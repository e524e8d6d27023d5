"""The benchmark of the main job still runs; its figures are not judged here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MAIN_JOB = Path(__file__).parents[1] / "benchmarks" / "main_job.py"


@pytest.mark.slow
def test_the_main_jobs_benchmark_runs(tmp_path):
    out = tmp_path / "figures.json"
    options = ["--versions", "v1", "--repeats", "1", "--updates", "1", "--seconds", "0.2"]
    command = [sys.executable, str(MAIN_JOB), *options, "--processes", "2", "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())["v1"]
    for ratio in ("stepping / bare", "training / bare", "training / subprocess"):
        assert figures[ratio] > 0
