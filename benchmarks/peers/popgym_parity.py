#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The environments of POPGym beside the original, step by step, and how fast either is.

    python benchmarks/peers/popgym_parity.py check [--program build/bin/benchmark-popgym] [--steps 10000] [--task NAME]
    python benchmarks/peers/popgym_parity.py chance [--tasks build/bin/engram-tasks] [--episodes 300] [--task NAME]
    python benchmarks/peers/popgym_parity.py speed [--tasks build/bin/engram-tasks] [--seconds 1] [--rounds 3] [--task NAME]

`check` lets benchmark-popgym play at random and tell what it drew. The original is dealt the same cards, mines, ships,
mazes, chances and noise in place of its own, and has to give the same observations (wrapped as in the published runs:
previous action, mark of the first one, flattened), rewards and ends in every step. States of carts and pendulums are
set before each step, so what is compared are transitions. Exit code 1 and the first difference where there is one, 77
where popgym is not installed. `chance` lets both draw for themselves: what random actions earn on either side tells
whether decks, placements, mazes and noise are drawn alike. `speed` takes both sides in turn, random actions, resets included.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings

warnings.filterwarnings("ignore")

try:
    import gymnasium
    import numpy as np
    import popgym.core.maze
    import popgym.envs as envs
    from popgym.wrappers import Antialias, PreviousAction
except ImportError as missing:
    print(f"skipped: {missing}; pip install popgym mazelib in an environment of its own")
    sys.exit(77)

# What the paper called stateless is position-only today.
NAMES = {
    "repeat_first": "RepeatFirst",
    "repeat_previous": "RepeatPrevious",
    "autoencode": "Autoencode",
    "count_recall": "CountRecall",
    "higher_lower": "HigherLower",
    "concentration": "Concentration",
    "battleship": "Battleship",
    "mine_sweeper": "MineSweeper",
    "multiarmed_bandit": "MultiarmedBandit",
    "stateless_cart_pole": "PositionOnlyCartPole",
    "noisy_stateless_cart_pole": "NoisyPositionOnlyCartPole",
    "stateless_pendulum": "PositionOnlyPendulum",
    "noisy_stateless_pendulum": "NoisyPositionOnlyPendulum",
    "labyrinth_escape": "LabyrinthEscape",
    "labyrinth_explore": "LabyrinthExplore",
}
OWN_MAZE = popgym.core.maze.Maze
DIFFICULTIES = ("easy", "medium", "hard")


class Dealt:
    """In place of the original's generator: gives what the other side drew."""

    def __init__(self):
        self.orders, self.cells, self.chance, self.draw, self.start, self.noise = [], None, None, None, None, None

    def shuffle(self, order):
        order[:] = self.orders.pop(0)

    def choice(self, _, size, replace):
        mines = np.flatnonzero(self.cells)
        assert len(mines) == size and not replace
        return mines

    def random(self, count=None, dtype=None):
        if count is None:
            return self.draw / 2.0**24
        assert count == len(self.chance)
        return (np.array(self.chance) / 2.0**24).astype(dtype)

    def uniform(self, low=None, high=None, size=None):
        return np.array(self.start)

    def normal(self, _, sigma):
        assert sigma.shape == (2,)
        return np.array(self.noise)


class DealtMaze:
    """In place of mazelib's: the other side's maze."""

    layout = None

    def generate(self):
        cells = np.array(DealtMaze.layout["cells"], dtype=np.int8)
        side = int(round(len(cells) ** 0.5))
        self.grid = cells.reshape(side, side)
        at = np.argwhere(self.grid == 3)
        self.end = tuple(int(i) for i in at[0]) if len(at) else None
        self.grid[self.grid == 3] = 1
        self.start = tuple(int(i) for i in DealtMaze.layout["at"])
        self.grid[self.start] = 1

    def generate_entrances(self, start_outer):
        assert start_outer


def original(task, difficulty):
    return getattr(envs, NAMES[task] + difficulty.capitalize())()


def wrapped(env):
    return Antialias(PreviousAction(env))


def deal(env, dealt, layout):
    """Makes the next reset draw this layout."""
    if "cards" in layout:
        # Dealt from the end; a card is the first of its kind that is left in several decks. Concentration is laid out.
        dealt.orders = []
        for stack in ("cards", "queries"):
            if stack in layout:
                copies = {}
                order = []
                for card in map(int, layout[stack]):
                    order.append(card + 52 * copies.setdefault(card, 0))
                    copies[card] += 1
                dealt.orders.append(order if isinstance(env, envs.Concentration) else order[::-1])
    elif "chance" in layout:
        dealt.chance = layout["chance"]
    elif isinstance(env, envs.Battleship):
        board = np.array(layout["cells"], dtype=np.int8).reshape(env.board_size, env.board_size)
        env.place_ship = lambda _, size: board.copy()
    elif "at" in layout:
        DealtMaze.layout = layout
    elif "cells" in layout:
        dealt.cells = layout["cells"]
    elif "place" in layout:
        dealt.start = [*layout["place"], *layout["angle"]]
    else:
        dealt.start = layout["angle"]
    dealt.noise = layout.get("noise")


def put(env, dealt, state):
    """The state before a step, as far as it is told."""
    if "place" in state:
        (x, v), (angle, turning) = state["place"], state["angle"]
        env.unwrapped.state = np.array([x, v, angle, turning])
    elif "angle" in state:
        env.unwrapped.state = np.array(state["angle"])
    dealt.draw, dealt.noise = state.get("draw"), state.get("noise")


def action_of(env, index):
    space = env.action_space
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return np.array([index // space.nvec[1], index % space.nvec[1]])
    if isinstance(space, gymnasium.spaces.Box):
        return np.array([index - 2], dtype=np.float32)
    return index


def check(program, task, difficulty, steps, seed):
    """The sentence of the first difference, or None and what was compared."""
    played = subprocess.run(
        [program, "--task", "popgym_" + task, "--difficulty", difficulty, "--steps", str(steps), "--seed", str(seed)],
        check=True, capture_output=True, text=True).stdout.splitlines()
    popgym.core.maze.Maze = DealtMaze
    env = original(task, difficulty)
    dealt = Dealt()
    env._np_random = dealt
    world = wrapped(env)
    space = world.observation_space
    count = largest = 0
    episodes = 0
    for number, text in enumerate(played):
        line = json.loads(text)
        where = f"popgym_{task} {difficulty}, line {number + 1}: "
        if "layout" in line:
            deal(env, dealt, line["layout"])
            seen, _ = world.reset()
            episodes += 1
        else:
            put(env, dealt, line["state"])
            seen, reward, terminated, truncated, _ = world.step(action_of(env, line["action"]))
            count += 1
            apart = abs(float(reward) - line["reward"])
            largest = max(largest, apart)
            if apart > 1e-7 * max(1.0, abs(line["reward"])):
                return where + f"reward {line['reward']}, in the original {reward}"
            if bool(terminated or truncated) != line["done"]:
                return where + f"done is {line['done']}, in the original {terminated}, {truncated}"
        there = gymnasium.spaces.flatten(space, seen).astype(np.float64)
        here = np.zeros_like(there)
        pairs = np.array(line["seen"]).reshape(-1, 2)
        if len(pairs) and pairs[:, 0].max() >= len(here):
            return where + f"more numbers are seen than the original's {len(here)}"
        here[pairs[:, 0].astype(int)] = pairs[:, 1]
        apart = np.abs(here - there).max()
        largest = max(largest, float(apart))
        if apart > 3e-7:
            at = int(np.abs(here - there).argmax())
            return where + f"number {at} of what is seen is {here[at]}, in the original {there[at]}"
    print(f"popgym_{task:<28}{difficulty:<8}{count:>7} steps {episodes:>6} episodes, {len(there):>4} numbers seen; "
          f"largest difference {largest:.1e}", flush=True)
    return None


def chance(program, task, difficulty, episodes):
    """Means and standard errors of random actions, and how many standard errors they are apart."""
    popgym.core.maze.Maze = OWN_MAZE
    env = original(task, difficulty)
    draw = np.random.default_rng(1)
    count = (5 if isinstance(env.action_space, gymnasium.spaces.Box)
             else int(np.prod(env.action_space.nvec)) if hasattr(env.action_space, "nvec") else env.action_space.n)
    totals = []
    for episode in range(episodes):
        env.reset(seed=episode)
        total, over = 0.0, False
        while not over:
            _, reward, terminated, truncated, _ = env.step(action_of(env, int(draw.integers(count))))
            total += float(reward)
            over = terminated or truncated
        totals.append(total)
    there, there_error = np.mean(totals), np.std(totals, ddof=1) / episodes**0.5
    line = subprocess.run([program, "score", "--task", "popgym_" + task, "--difficulty", difficulty, "--policy",
                           "random", "--episodes", "2000", "--threads", "1"], check=True, capture_output=True,
                          text=True).stdout.splitlines()[-1].split()
    here, here_error = float(line[3]), float(line[4])
    apart = (here - there) / max(np.hypot(here_error, there_error), 1e-12)
    print(f"popgym_{task:<28}{difficulty:<8}{here:>8.3f} ({here_error:.3f})  original {there:>8.3f} ({there_error:.3f})"
          f"  apart {apart:>5.1f}", flush=True)
    return abs(apart) < 5


def rate_of_original(task, difficulty, seconds, wrap):
    """Steps a second of the loop that a user writes."""
    env = original(task, difficulty)
    space = env.action_space
    if wrap:
        env = wrapped(env)
        seen_space = env.observation_space
    env.reset(seed=1)
    space.seed(1)
    actions = [space.sample() for _ in range(1024)]
    best, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:  # the best of short times, as on the other side: others may want the core
        steps, start = 0, time.perf_counter()
        while (took := time.perf_counter() - start) < 0.05:
            for action in actions[steps % 1024:steps % 1024 + 128]:
                seen, _, terminated, truncated, _ = env.step(action)
                if wrap:
                    gymnasium.spaces.flatten(seen_space, seen)
                if terminated or truncated:
                    env.reset()
            steps += 128
        best = max(best, steps / took)
    return best


def rates_here(program, task, difficulty):
    line = subprocess.run([program, "speed", "--task", "popgym_" + task, "--difficulty", difficulty,
                           "--environments", "1"], check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    words = line.split()
    return [1e6 * float(words[i - 1]) for i, word in enumerate(words) if word == "M"]


def speed(program, tasks, seconds, rounds):
    print("| task | difficulty | rules alone, ours / original | with what is seen, ours / original wrapped |")
    print("|---|---|---|---|")
    for task in tasks:
        for difficulty in DIFFICULTIES:
            best = [0.0] * 4
            for _ in range(rounds):  # in turn, the best of each
                ours = rates_here(program, task, difficulty)
                theirs = [rate_of_original(task, difficulty, seconds, wrap) for wrap in (False, True)]
                best = [max(old, new) for old, new in zip(best, ours + theirs)]
            print(f"| popgym_{task} | {difficulty} | {best[0] / best[2]:.0f} | {best[1] / best[3]:.0f} |", flush=True)


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("what", choices=["check", "chance", "speed"])
    asked.add_argument("--program", default="build/bin/benchmark-popgym")
    asked.add_argument("--tasks", default="build/bin/engram-tasks")
    asked.add_argument("--task", action="append", choices=["popgym_" + name for name in NAMES])
    asked.add_argument("--steps", type=int, default=10000)
    asked.add_argument("--episodes", type=int, default=300)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--seconds", type=float, default=1)
    asked.add_argument("--rounds", type=int, default=3)
    given = asked.parse_args()
    tasks = [name for name in NAMES if given.task is None or "popgym_" + name in given.task]
    if given.what == "speed":
        speed(given.tasks, tasks, given.seconds, given.rounds)
        return 0
    problems = 0
    for task in tasks:
        for difficulty in DIFFICULTIES:
            if given.what == "chance":
                problems += not chance(given.tasks, task, difficulty, given.episodes)
                continue
            problem = check(given.program, task, difficulty, given.steps, given.seed)
            if problem:
                problems += 1
                print(problem, flush=True)
    print(f"{len(tasks) * 3 - problems} of {len(tasks) * 3} variants agree")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
