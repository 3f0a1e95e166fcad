#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Opens what a program writes with the readers of other people: checkpoints with safetensors, arrays with NumPy,
curves with TensorBoard. Usage: check.py <folder with engram-lstm_mem>; exit code 77 where a reader is missing."""

import csv
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file
    from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator
except ImportError as missing:
    print(f"skipped: {missing} (./dev interchange installs numpy, safetensors and tensorboard beside the build)")
    sys.exit(77)

ABLATION, TASK, EPISODES = "lstm_mem", "arbitrary_visuomotor_mapping", 3
checks = 0


def check(true, what):
    global checks
    checks += 1
    if not true:
        sys.exit(f"failed: {what}")


def engram(*arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def described_parameters():
    """Name and shape of every parameter, as `describe` prints them."""
    table = engram("describe", "--task", TASK).split("\nparameters\n")[1].split("\n  total")[0]
    found = re.findall(r"^  (\S+) +\[(\d+), (\d+)\]", table, re.M)
    return {name: (int(height), int(width)) for name, height, width in found}


def check_checkpoint(run):
    path = run / "checkpoint/latest.safetensors"
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
        names = set(file.keys())
        check(metadata["ablation"] == ABLATION and metadata["task"] == TASK, "metadata name the run")
        check(json.loads(metadata["settings"])["memory"]["slots"] > 0, "metadata hold the settings as JSON")
        parameters = described_parameters()
        check(len(parameters) >= 8, "describe lists the parameters")
        for name, shape in parameters.items():
            for tensor in (name, f"optimiser.first.{name}", f"optimiser.second.{name}"):
                check(tensor in names, f"{tensor} is in the checkpoint")
                values = file.get_tensor(tensor)
                check(values.shape == shape and values.dtype == np.float32, f"{tensor} is float32 {shape}")
                check(np.isfinite(values).all(), f"{tensor} is finite")
            check(file.get_tensor(f"optimiser.second.{name}").min() >= 0, f"{name}: squares are not negative")
    total = json.loads((run / "summary.json").read_text())["parameters"]
    check(total == sum(a * b for a, b in parameters.values()), "summary.json counts the parameters")

    # The way back: a file that Python wrote is a checkpoint, once its checksum is left out.
    tensors = load_file(path)
    del metadata["engram.checksum"]
    save_file({name: np.ascontiguousarray(t) for name, t in tensors.items()}, path, metadata=metadata)
    engram("evaluate", "--from", run, "--episodes", 5, "--quiet")


def check_trajectories(run):
    engram("sample", "--from", run, "--level", "train", "--episodes", EPISODES, "--seed", 4)
    folder = run / "sample/trajectories"
    table = rows(folder / "episodes.csv")
    check(len(table) == EPISODES, "episodes.csv has a row an episode")
    for row in table:
        episode = folder / f"episode-{int(row['episode']):04}"
        observations, actions, rewards, resets = (
            np.load(episode / f"{name}.npy") for name in ("observations", "actions", "rewards", "resets"))
        T = int(row["steps"])
        check(observations.dtype == np.float32 and observations.ndim == 4 and len(observations) == T, "observations")
        check(actions.dtype == np.int32 and actions.shape == (T,) and actions.min() >= 0, "actions")
        check(rewards.dtype == np.float32 and rewards.shape == (T,), "rewards")
        check(abs(float(rewards.sum()) - float(row["reward"])) < 1e-4, "the rewards add up to the table's")
        check(resets.dtype == np.uint8 and resets.tolist() == [1] + [0] * (T - 1), "one reset, at the first step")
        check(observations.std() > 0, "something was to be seen")


def check_events(run):
    events = EventAccumulator(str(run), size_guidance={SCALARS: 0})
    events.Reload()
    metrics = rows(run / "metrics.csv")
    tags = set(events.Tags()["scalars"])
    columns = {c for c in metrics[0] if c != "step" and any(row[c] for row in metrics)}
    check({f"train/{c}" for c in columns} <= tags, "a tag a column of metrics.csv")
    for column in columns:
        expected = [(int(row["step"]), float(row[column])) for row in metrics if row[column]]
        found = [(s.step, s.value) for s in events.Scalars(f"train/{column}")]
        check([s for s, _ in found] == [s for s, _ in expected], f"{column}: every step once, in order")
        check(np.allclose([v for _, v in found], [v for _, v in expected], rtol=1e-6), f"{column}: the same values")
    for level in {row["level"] for row in rows(run / "levels.csv")}:
        expected = [(int(r["step"]), float(r["mean"])) for r in rows(run / "levels.csv") if r["level"] == level]
        found = [(s.step, s.value) for s in events.Scalars(f"evaluate/{level}")]
        check([s for s, _ in found] == [s for s, _ in expected], f"{level}: every evaluation once")
        check(np.allclose([v for _, v in found], [v for _, v in expected], rtol=1e-6), f"{level}: the same values")
    times = [s.wall_time for s in events.Scalars("train/loss")]
    check(times == sorted(times) and times[0] > 1.6e9, "wall times are seconds since 1970 and ascend")


def main():
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        common = ["--out", run, "--threads", 1, "--evaluate", 0, "--quiet"]
        engram("train", "--task", TASK, "--steps", 8000, "--checkpoint-every", 3200, "--evaluate-every", 4000,
               "--evaluate-episodes", 2, "--tensorboard", *common)
        check_events(run)
        # A part of a run that is not killed, and then a longer one; the file is found again without the flag.
        before = (run / "events.out.tfevents.engram").read_bytes()
        engram("train", "--resume", "--steps", 16000, *common)
        check((run / "events.out.tfevents.engram").read_bytes().startswith(before), "earlier events are unchanged")
        check_events(run)
        killed = subprocess.Popen([program, "train", "--resume", "--steps", "400000", "--checkpoint-every", "50000",
                                   *map(str, common)])
        wanted = (run / "metrics.csv").stat().st_size + 400
        while (run / "metrics.csv").stat().st_size < wanted:
            check(killed.poll() is None, "the run is killed before its end")
        killed.kill()
        killed.wait()
        engram("train", "--resume", "--steps", 32000, *common)
        check_events(run)
        check_checkpoint(run)
        check_trajectories(run)
    print(f"{checks} checks: NumPy {np.__version__}")


program = str(Path(sys.argv[1]) / f"engram-{ABLATION}")
main()
