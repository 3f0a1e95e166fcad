#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PPO with a GRU on POPGym: the original's environments under PyTorch beside engram-ppo_gru, end to end.

    python benchmarks/peers/popgym_ppo.py speed [--task popgym_stateless_cart_pole]... [--threads 1 2] [--rounds 2]
    python benchmarks/peers/popgym_ppo.py learn --task popgym_repeat_first --steps 262144 --environments 64 --unroll 64 \\
        --minibatches 4 --passes 4 --rate 0.001

`speed` takes both sides in turn and prints steps a second, end to end, and the share of the environments, of acting
and of learning. Both do the same work an iteration: 64 environments x 1024 steps, 30 passes of 8 minibatches, Adam,
observations with the previous action in them, and the published network: a normalised layer and one with ReLU of 128,
a GRU of 256, two heads with two layers of 128 each. `learn` trains either side once a seed and prints the mean reward
of the episodes that ended in each quarter of the run.

What PyTorch does: environments are stepped one after the other in this process, wrapped as in the published runs; the
network acts for all of them at once; to learn, the steps are cut into episodes, of which a minibatch is a drawn set
with about as many steps as the others. Those of like lengths are padded to the longest of them (torch.nn.GRU took
five times as long or more to go back through packed sequences); encoder, heads and loss do without the padding. An
episode that an iteration cut begins with the state carried into it.

engram learns from unrolls of 8 environments x 1024 steps, whose states are reset where an episode began; its ReLU are
not leaky, and its first weights are drawn otherwise. Neither side has the published penalty on divergence. Its
standardised advantages are those of a whole minibatch, which threads cannot share: with more than one it runs with
learner.standardise=false, and PyTorch as before.

--timed-passes N measures N of the passes and counts them for all, on both sides: passes are alike. PyTorch's first
pass, which warms up, is not counted. --compile sends encoder and loss through torch.compile. --products bfloat16 lets
engram round the factors of its products; --rounded does the same for PyTorch, by torch.autocast.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import gymnasium
import numpy as np
import torch
import torch.nn.functional as F

from popgym_parity import NAMES, action_of, original, wrapped

HIDDEN, CLIP, DISCOUNT = 256, 0.3, 0.99


def count_actions(env):
    space = env.action_space
    if isinstance(space, gymnasium.spaces.Box):
        return 5
    return int(np.prod(space.nvec)) if hasattr(space, "nvec") else int(space.n)


class Environments:
    """B of them, one after the other, into rows of numbers; a new episode begins where one ended."""

    def __init__(self, task, difficulty, count, seed):
        inner = [original(task.removeprefix("popgym_"), difficulty) for _ in range(count)]
        self.actions = count_actions(inner[0])
        self.all = [gymnasium.wrappers.FlattenObservation(wrapped(env)) for env in inner]
        space = inner[0].action_space
        discrete = isinstance(space, gymnasium.spaces.Discrete)
        self.given = list(range(self.actions)) if discrete else [action_of(inner[0], a) for a in range(self.actions)]
        self.width = self.all[0].observation_space.shape[0]
        self.seen = np.zeros((count, self.width), dtype=np.float32)
        self.reward, self.done = np.zeros(count, dtype=np.float32), np.zeros(count, dtype=np.float32)
        self.sums, self.finished = [0.0] * count, []
        for b, env in enumerate(self.all):
            self.seen[b] = env.reset(seed=seed + b)[0]

    def step(self, actions):
        for b, (env, action) in enumerate(zip(self.all, actions.tolist())):
            seen, reward, terminated, truncated, _ = env.step(self.given[action])
            over = terminated or truncated
            self.sums[b] += reward
            if over:
                self.finished.append(self.sums[b])
                self.sums[b] = 0.0
                seen = env.reset()[0]
            self.seen[b], self.reward[b], self.done[b] = seen, reward, over


class Network(torch.nn.Module):
    """That of the published runs."""

    def __init__(self, width, actions):
        super().__init__()
        linear, relu = torch.nn.Linear, torch.nn.LeakyReLU

        def head(outputs):
            return torch.nn.Sequential(
                linear(HIDDEN, 128), relu(), linear(128, 128), relu(), linear(128, outputs))

        norm = torch.nn.LayerNorm(128, elementwise_affine=False)
        self.encoder = torch.nn.Sequential(linear(width, 128), norm, linear(128, 128), relu())
        self.policy, self.value = head(actions), head(1)
        self.gru = torch.nn.GRU(128, HIDDEN)
        for layer in self.modules():
            if isinstance(layer, linear):
                torch.nn.init.orthogonal_(layer.weight)
        for last in (self.policy[-1], self.value[-1]):
            torch.nn.init.normal_(last.weight, std=0.01)
            torch.nn.init.zeros_(last.bias)

    def heads(self, h):
        return F.log_softmax(self.policy(h), -1), self.value(h).squeeze(-1)

    def act(self, seen, h):
        g = self.gru
        h = torch.gru_cell(self.encoder(seen), h, g.weight_ih_l0, g.weight_hh_l0, g.bias_ih_l0, g.bias_hh_l0)
        return *self.heads(h), h


def loss_of(network, h, action, behaviour, advantage, target):
    log_policy, value = network.heads(h)
    advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
    ratio = (log_policy.gather(1, action[:, None]).squeeze(1) - behaviour).exp()
    surrogate = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
    return (target - value).square().mean() - surrogate.mean()


class Segments:
    """Where an iteration's steps [B, T] fall into episodes."""

    def __init__(self, done):
        B, T = done.shape
        begins = np.zeros((B, T), dtype=bool)
        begins[:, 0] = True
        begins[:, 1:] = done[:, :-1] > 0
        self.at = np.flatnonzero(begins)  # in [B T]
        self.length = np.diff(np.append(self.at, B * T))
        self.carried = np.where(self.at % T == 0, self.at // T, -1)  # the row whose state it goes on with

    def minibatches(self, count, draw):
        """Drawn sets of about as many steps each."""
        order = draw.permutation(len(self.at))
        steps = np.cumsum(self.length[order])
        share = np.minimum((steps - 1) * count // steps[-1], count - 1)
        return [order[share == m] for m in range(count)]

    def groups(self, chosen):
        """Of a minibatch, those of like lengths together: none is padded to twice its length or more."""
        chosen = chosen[np.argsort(-self.length[chosen])]
        lengths, first = self.length[chosen], 0
        while first < len(chosen):
            last = first + np.count_nonzero(lengths[first:] * 2 > lengths[first])
            yield chosen[first:last]
            first = last

    def places(self, chosen):
        """For padded sequences [L, N]: where step t of sequence n lies in [B T]; and which of the [L N] there are."""
        t = np.arange(self.length[chosen].max())[:, None]
        valid = t < self.length[chosen]
        return np.where(valid, self.at[chosen] + t, 0), np.flatnonzero(valid)


class Trainer:
    def __init__(self, task, given, seed):
        self.given = given
        torch.manual_seed(seed)
        self.draw = np.random.default_rng(seed)
        self.envs = Environments(task, given.difficulty, given.environments, 1000 * seed)
        self.network = Network(self.envs.width, self.envs.actions)
        self.adam = torch.optim.Adam(self.network.parameters(), lr=given.rate, eps=1e-8, fused=True)
        self.h, self.begun = torch.zeros(given.environments, HIDDEN), torch.zeros(given.environments, HIDDEN)
        self.encode, self.loss = self.network.encoder, loss_of
        if given.compile:
            self.encode = torch.compile(self.network.encoder, dynamic=True)
            self.loss = torch.compile(loss_of, dynamic=True)
        self.seconds = {"environments": 0.0, "acting": 0.0, "learning": 0.0}
        B, T = given.environments, given.unroll
        self.seen = torch.zeros(B, T, self.envs.width)
        self.action = torch.zeros(B, T, dtype=torch.int64)
        self.behaviour, self.value, self.reward, self.done = (torch.zeros(B, T) for _ in range(4))

    @torch.inference_mode()
    def collect(self):
        clock = time.perf_counter
        envs = self.envs
        self.begun.copy_(self.h)
        for t in range(self.given.unroll):
            start = clock()
            seen = torch.from_numpy(envs.seen)
            log_policy, value, h = self.network.act(seen, self.h)
            action = torch.multinomial(log_policy.exp(), 1)
            self.seen[:, t], self.action[:, t], self.value[:, t] = seen, action[:, 0], value
            self.behaviour[:, t] = log_policy.gather(1, action)[:, 0]
            middle = clock()
            envs.step(action[:, 0].numpy())
            end = clock()
            done = torch.from_numpy(envs.done)
            self.reward[:, t], self.done[:, t] = torch.from_numpy(envs.reward), done
            self.h = h * (1 - done)[:, None]
            self.seconds["environments"] += end - middle
            self.seconds["acting"] += middle - start + clock() - end
        start = clock()
        self.target = torch.zeros_like(self.value)
        following = self.network.act(torch.from_numpy(envs.seen), self.h)[1]  # with lambda = 1: discounted returns
        for t in reversed(range(self.given.unroll)):
            following = self.reward[:, t] + DISCOUNT * (1 - self.done[:, t]) * following
            self.target[:, t] = following
        self.advantage = self.target - self.value
        self.seconds["acting"] += clock() - start

    def remember(self, segments, seen, chosen):
        """Of a minibatch's steps, where they lie in [B T], and the outputs of the GRU."""
        all_steps, outputs = [], []
        for group in segments.groups(chosen):
            places, valid = segments.places(group)
            L, N = places.shape
            valid = torch.from_numpy(valid)
            steps = torch.from_numpy(places).flatten()[valid]
            carried = torch.from_numpy(segments.carried[group])
            h = torch.where(carried[:, None] >= 0, self.begun[carried.clamp(min=0)], 0.0)[None]
            x = self.encode(seen[steps])
            if len(valid) < L * N:
                x = x.new_zeros(L * N, x.shape[1]).index_copy(0, valid, x)
            y = self.network.gru(x.view(L, N, -1), h)[0].flatten(0, 1)
            all_steps.append(steps)
            outputs.append(y if len(valid) == L * N else y[valid])
        return torch.cat(all_steps), torch.cat(outputs)

    def learn(self, passes):
        start = time.perf_counter()
        segments = Segments(self.done.numpy())
        flat = lambda x: x.flatten(0, 1)
        seen, action, behaviour, advantage, target = map(
            flat, (self.seen, self.action, self.behaviour, self.advantage, self.target))
        for _ in range(passes):
            for chosen in segments.minibatches(self.given.minibatches, self.draw):
                with torch.autocast("cpu", torch.bfloat16, enabled=self.given.rounded):
                    steps, h = self.remember(segments, seen, chosen)
                    loss = self.loss(self.network, h, action[steps], behaviour[steps], advantage[steps], target[steps])
                self.adam.zero_grad(set_to_none=True)
                loss.backward()
                self.adam.step()
        self.seconds["learning"] += time.perf_counter() - start


def use_threads(count):
    torch.set_num_threads(count)
    torch.set_flush_denormal(True)


def speed_of_torch(task, given):
    """Seconds of environments, acting and learning of an iteration; the first pass, which warms up, is not counted."""
    trainer = Trainer(task, given, 1)
    trainer.collect()
    trainer.learn(1)
    timed = given.timed_passes or given.passes
    trainer.seconds = dict.fromkeys(trainer.seconds, 0.0)
    trainer.collect()
    trainer.learn(timed)
    trainer.seconds["learning"] *= given.passes / timed
    return trainer.seconds


def run_engram(task, given, threads, folder, steps, passes, *more):
    """summary.json of a run."""
    settings = {"task.difficulty": given.difficulty, "rollout.environments": given.environments,
                "rollout.unroll": given.unroll, "rollout.minibatches": given.minibatches, "rollout.epochs": passes,
                "optimiser.learning_rate": given.rate, "learner.standardise": str(threads == 1).lower(),
                **dict(pair.split("=") for pair in given.set)}
    subprocess.run([given.program, "train", "--preset", "paper", "--task", task, "--out", folder, "--steps", str(steps),
                    "--threads", str(threads), "--evaluate", "0", "--checkpoint-every", "100000000", "--quiet",
                    "--products", given.products, *more,
                    *(word for name, value in settings.items() for word in ("--set", f"{name}={value}"))], check=True)
    with open(os.path.join(folder, "summary.json")) as file:
        return json.load(file)


def speed_of_engram(task, given, threads):
    """The same of engram: a pass takes the difference to a run of one, and environments are measured alone."""
    batch = given.environments * given.unroll
    timed = given.timed_passes or given.passes
    with tempfile.TemporaryDirectory() as folder:
        runs = [run_engram(task, given, threads, os.path.join(folder, str(passes)), batch, passes)
                for passes in (timed, 1)]
    whole, once = (run["wall_seconds"] for run in runs)
    line = subprocess.run([given.tasks, "speed", "--task", task, "--difficulty", given.difficulty, "--environments",
                           str(given.environments)], check=True, capture_output=True,
                          text=True).stdout.splitlines()[-1].split()
    rate = [1e6 * float(line[i - 1]) for i, word in enumerate(line) if word == "M"][1]
    environments = batch / rate / threads
    a_pass = (whole - once) / (timed - 1)
    return {"environments": environments, "acting": once - a_pass - environments, "learning": given.passes * a_pass}


def speed(tasks, given):
    """Each side's medians over the rounds, in turn."""
    print(f"torch {torch.__version__}, {given.passes} passes ({given.timed_passes or given.passes} timed) of "
          f"{given.minibatches} minibatches over "
          f"{given.environments} x {given.unroll} steps, products {given.products}"
          f"{', rounded on both sides' if given.rounded else ''}{', compiled' if given.compile else ''}")
    print("| task | threads | engram, steps/s | PyTorch, steps/s | ratio | engram: environments, acting, learning | "
          "PyTorch: the same |")
    print("|---|---|---|---|---|---|---|")
    steps = given.environments * given.unroll
    for task in tasks:
        best = {}
        for threads in given.threads:
            use_threads(threads)
            sides = {"engram": [], "PyTorch": []}
            for _ in range(given.rounds):
                sides["engram"].append(speed_of_engram(task, given, threads))
                sides["PyTorch"].append(speed_of_torch(task, given))
                for name, all_of in sides.items():
                    print(f"{name}, {threads} threads:", {k: round(v, 2) for k, v in all_of[-1].items()},
                          file=sys.stderr, flush=True)
            rate, shares = {}, {}
            for name, all_of in sides.items():
                middle = sorted(all_of, key=lambda s: sum(s.values()))[(len(all_of) - 1) // 2]
                rate[name] = steps / statistics.median(sum(s.values()) for s in all_of)
                shares[name] = ", ".join(f"{100 * v / sum(middle.values()):.0f}" for v in middle.values()) + " %"
                best[name] = max(best.get(name, 0.0), rate[name])
            print(f"| {task} | {threads} | {rate['engram']:.0f} | {rate['PyTorch']:.0f} | "
                  f"{rate['engram'] / rate['PyTorch']:.1f} | {shares['engram']} | {shares['PyTorch']} |", flush=True)
        print(f"| {task} | best of each | {best['engram']:.0f} | {best['PyTorch']:.0f} | "
              f"{best['engram'] / best['PyTorch']:.1f} | | |", flush=True)


def quarters(rewards):
    """Means of four lists of episodes."""
    return ", ".join(f"{np.mean(part):.3f}" if len(part) else "-" for part in rewards)


def learn(tasks, given):
    batch = given.environments * given.unroll
    iterations = max(1, given.steps // batch)
    use_threads(given.threads[0])
    for task in tasks:
        for seed in given.seeds:
            trainer = Trainer(task, given, seed)
            rewards = [[] for _ in range(4)]
            for i in range(iterations):
                trainer.collect()
                trainer.learn(given.passes)
                rewards[4 * i // iterations] += trainer.envs.finished
                trainer.envs.finished = []
            print(f"{task}, PyTorch, seed {seed}, {iterations * batch} steps: {quarters(rewards)}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                folder = os.path.join(folder, "run")
                run_engram(task, given, given.threads[0], folder, iterations * batch, given.passes, "--seed", str(seed))
                with open(os.path.join(folder, "metrics.csv")) as file:
                    rows = list(csv.DictReader(file))
            rewards, before = [[] for _ in range(4)], 0
            for row in rows:
                count = int(float(row["episodes"])) - before
                before += count
                quarter = min(3, 4 * (int(row["step"]) - 1) // (iterations * batch))
                rewards[quarter] += [float(row["reward"])] * count
            print(f"{task}, engram,  seed {seed}, {iterations * batch} steps: {quarters(rewards)}", flush=True)


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("what", choices=["speed", "learn"])
    asked.add_argument("--program", default="build/bin/engram-ppo_gru")
    asked.add_argument("--tasks", default="build/bin/engram-tasks")
    asked.add_argument("--task", action="append", choices=["popgym_" + name for name in NAMES])
    asked.add_argument("--difficulty", default="easy", choices=["easy", "medium", "hard"])
    asked.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    asked.add_argument("--rounds", type=int, default=2)
    asked.add_argument("--environments", type=int, default=64)
    asked.add_argument("--unroll", type=int, default=1024)
    asked.add_argument("--minibatches", type=int, default=8)
    asked.add_argument("--passes", type=int, default=30)
    asked.add_argument("--timed-passes", type=int, default=0)
    asked.add_argument("--rate", type=float, default=5e-5)
    asked.add_argument("--products", default="float", choices=["float", "bfloat16"])
    asked.add_argument("--rounded", action="store_true")
    asked.add_argument("--compile", action="store_true")
    asked.add_argument("--steps", type=int, default=262144, help="of learn")
    asked.add_argument("--seeds", type=int, nargs="+", default=[1], help="of learn")
    asked.add_argument("--set", action="append", default=[], help="of engram, further settings")
    given = asked.parse_args()
    if given.what == "speed" and min(given.passes, given.timed_passes or given.passes) < 2:
        asked.error("a pass is measured beside a run of one: expected at least two")
    tasks = given.task or ["popgym_repeat_previous", "popgym_stateless_cart_pole", "popgym_battleship"]
    (speed if given.what == "speed" else learn)(tasks, given)


if __name__ == "__main__":
    main()
