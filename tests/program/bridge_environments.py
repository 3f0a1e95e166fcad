# SPDX-License-Identifier: MIT
# An environment of dm_env that tests/program/bridge.py has the bridge offer.

import os

import dm_env
import numpy as np
from dm_env import specs


class Corridor(dm_env.Environment):
    """Three rooms; what is done is nested, and of both kinds. An episode takes 4 steps; `fail`: how one ends otherwise."""

    def __init__(self, seed=0, fail="never"):
        self.draw, self.fail, self.time = np.random.default_rng(seed), fail, None

    def observation_spec(self):
        return {"room": specs.DiscreteArray(3), "wind": specs.BoundedArray((2, 2), np.float64, [[-1, -2], [-3, -4]], 4),
                "name": specs.StringArray(())}

    def action_spec(self):
        return {"go": specs.DiscreteArray(3), "push": [specs.BoundedArray((2, 2), np.float32, -1, [[1, 2], [3, 4]])]}

    def observation(self):
        return {"room": np.int32(self.draw.integers(3)), "wind": self.draw.uniform(-1, 1, (2, 2)), "name": "a room"}

    def reset(self):
        self.time = 0
        return dm_env.restart(self.observation())

    def step(self, action):
        self.time += 1
        assert action["push"][0].shape == (2, 2) and action["push"][0].dtype == np.float32
        if self.fail == "error":
            raise RuntimeError("the roof\nfell in")
        if self.fail == "exit":
            os._exit(3)
        reward = float(action["go"])
        if self.time == 4:
            made = dm_env.truncation if self.fail == "truncate" else dm_env.termination
            return made(reward, self.observation())
        return dm_env.transition(reward, self.observation())

    def close(self):
        pass


def without_seed():
    return Corridor()
