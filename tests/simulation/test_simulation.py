"""The simulation itself: seeds that hold, seeds that replay, and bugs on purpose that are found."""

import os
import subprocess
import sys

import pytest
from tests.chance import SOAK
from tests.simulation import invariants
from tests.simulation.planted import PLANTED, Planted
from tests.simulation.world import run

SEEDS = "0-199" if SOAK else "0-9"


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments], capture_output=True, text=True, check=False
    )


def test_seeds() -> None:
    """Many more run by hand: python -m tests.simulation --seeds 0-9999 --jobs 2."""
    done = simulate("--seeds", SEEDS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_seed_replays_exactly() -> None:
    """In one process, and in others, whatever the order of their sets would be."""
    os.environ.pop("PYTHONHASHSEED", None)
    traces = {simulate("--seed", "3").stdout.splitlines()[-1] for _ in range(2)}
    assert len(traces) == 1
    assert run(3).trace == run(3).trace


def test_another_seed_is_another_run() -> None:
    assert run(1).trace != run(2).trace


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_planted_bugs_are_found(planted: Planted) -> None:
    """In a process of their own: brokers that are killed there keep their files open as long as it lasts."""
    if planted.rare and not SOAK:
        pytest.skip("too rare for a short run: OTTLA_SOAK=1 looks for it")
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.planted", planted.name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_invariant_has_a_planted_bug() -> None:
    assert {name for planted in PLANTED for name in planted.broken} == {kind.__name__ for kind in invariants.ALL}
