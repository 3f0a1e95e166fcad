#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Offers any Gymnasium or dm_env environment as a dm_env_rpc server (docs/guide/bridge.md).

    world_bridge.py gym:CartPole-v1 --port 10000
    world_bridge.py gym:MiniGrid-MemoryS11-v0 --wrap only=image --wrap scale=10 --wrap flat
    world_bridge.py ale:Pong-v5 --wrap image=84x84
    world_bridge.py dm:package.module:factory --set level=3

A world is one environment with one agent; it is made when a stream joins and closed when the stream leaves or ends.
All streams share one thread: the interpreter lets one run in any case, and threads that take turns cost twice the time at
eight rows. With --processes every environment has a process of its own, and an exit or a crash in it is that row's alone.
"""

import argparse
import ast
import asyncio
import collections
import dataclasses
import functools
import importlib
import inspect
import math
import multiprocessing
import os
import re
import signal
import socket
import stat
import sys
import time

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what is wrong is said here
try:
    import grpc
    import numpy as np
    from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb
    from dm_env_rpc.v1 import tensor_spec_utils, tensor_utils
except ImportError as missing:
    sys.exit(print(f"world_bridge: {missing.name} is not installed here: pip install dm-env-rpc", file=sys.stderr) or 2)

INVALID, NOT_FOUND, EXHAUSTED, PRECONDITION, UNIMPLEMENTED, INTERNAL = 3, 5, 8, 9, 12, 13  # of google.rpc.Code
JOINT_AT_MOST, SEEDS, MESSAGE_BYTES = 4096, 2**31, 1 << 20


class Refused(Exception):
    """A request, or a command line, that is answered with one sentence."""

    def __init__(self, sentence, code=INVALID, ends=False):
        super().__init__(sentence)
        self.code, self.ends = code, ends  # the stream


class Broken(Refused):
    """An environment that failed: its stream ends."""

    def __init__(self, doing, error):
        line = (str(error).strip().splitlines() or [""])[0]
        super().__init__(f"the environment failed in {doing}: {type(error).__name__}: {line}", INTERNAL, True)


# --- what is one tensor -------------------------------------------------------------------------------------------

NARROW = {"float16": "float32", "int16": "int32", "uint16": "int32"}  # the protocol has no numbers of 16 bits


@dataclasses.dataclass
class Part:
    """One tensor of an observation or an action, and where in it it stands."""

    name: str
    path: tuple
    dtype: np.dtype  # on the wire
    shape: tuple = ()
    low: np.ndarray = None
    high: np.ndarray = None
    discrete: bool = False
    native: object = None  # makes of the wire's numbers what the environment takes

    @property
    def is_text(self):
        return self.dtype.kind == "U"

    @property
    def counts(self):  # of the values of each element, where it is discrete
        return (self.high.astype(np.int64) - self.low + 1).reshape(-1)

    def spec(self):
        spec = pb.TensorSpec(name=self.name, shape=self.shape, dtype=tensor_utils.np_type_to_data_type(self.dtype))
        if self.low is not None and self.dtype.kind in "iuf":
            one = [b.reshape(-1)[:1] if b.size and (b == b.flat[0]).all() else b for b in (self.low, self.high)]
            tensor_spec_utils.set_bounds(spec, *(b[0] if b.size == 1 else b for b in one))
        return spec


def bounded(name, path, dtype, shape, low, high, **more):
    dtype = np.dtype(NARROW.get(np.dtype(dtype).name, dtype))
    if np.dtype(dtype) not in tensor_utils._TYPE_TO_PACKER or dtype.kind not in "iufb":
        raise Refused(f"'{name}' is of type {dtype}, for which the protocol has no tensor")
    if low is not None and dtype.kind == "f":
        most = np.finfo(dtype).max
        low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
        if not (np.isfinite(low) | np.isfinite(high)).any():
            low = high = None
        else:
            low, high = np.clip(low, -most, most), np.clip(high, -most, most)
    if dtype.kind == "b":
        low = high = None
    if low is not None:
        low, high = (np.array(np.broadcast_to(b, shape), dtype) for b in (low, high))
    return Part(name, path, dtype, tuple(int(n) for n in shape), low, high, **more)


def discrete(name, path, start, count, native):
    low, count = np.asarray(start, np.int64), np.asarray(count, np.int64)
    fits = low.size == 0 or (low.min() >= -2**31 and (low + count).max() <= 2**31)
    kind = np.int32 if fits else np.int64
    return bounded(name, path, kind, count.shape, low, low + count - 1, discrete=True, native=native)


def parts_of(space, of, path=()):
    """The tensors of a Gymnasium space or of dm_env's specs; Refused where the protocol has none."""
    name = ".".join(str(key) for key in path) or of
    kinds = {kind.__name__ for kind in type(space).__mro__}
    children = space if isinstance(space, collections.abc.Mapping) else getattr(space, "spaces", None)
    if isinstance(space, (list, tuple)):
        children = space
    if "OneOf" not in kinds and children is not None:
        keyed = children.items() if isinstance(children, collections.abc.Mapping) else enumerate(children)
        return [part for key, child in keyed for part in parts_of(child, of, path + (key,))]
    if "DiscreteArray" in kinds:
        return [discrete(name, path, 0, space.num_values, space.dtype.type)]
    if "Discrete" in kinds:
        return [discrete(name, path, getattr(space, "start", 0), space.n, int)]
    if "MultiDiscrete" in kinds:
        start = getattr(space, "start", np.zeros_like(space.nvec))
        return [discrete(name, path, start, space.nvec, functools.partial(np.asarray, dtype=space.dtype))]
    native = functools.partial(np.asarray, dtype=getattr(space, "dtype", None))
    if "MultiBinary" in kinds:
        return [discrete(name, path, np.zeros(space.shape, int), np.full(space.shape, 2), native)]
    if "Box" in kinds:
        return [bounded(name, path, space.dtype, space.shape, space.low, space.high, native=native)]
    if {"StringArray", "Text"} & kinds or getattr(getattr(space, "dtype", None), "kind", "") == "U":
        return [Part(name, path, np.dtype(str), tuple(getattr(space, "shape", None) or ()), native=str)]
    if "BoundedArray" in kinds:
        return [bounded(name, path, space.dtype, space.shape, space.minimum, space.maximum, native=native)]
    if "Array" in kinds:
        return [bounded(name, path, space.dtype, space.shape, None, None, native=native)]
    raise Refused(f"'{name}' is a space of kind {type(space).__name__}, for which the protocol has no tensor")


def at(nested, path):
    for key in path:
        nested = nested[key]
    return nested


def nested_of(space, values, path=()):
    """The tensors `values`, by their paths, nested as the environment takes them."""
    if path in values:
        return values[path]
    children = getattr(space, "spaces", space)
    if isinstance(children, collections.abc.Mapping):
        return {key: nested_of(child, values, path + (key,)) for key, child in children.items()}
    made = [nested_of(child, values, path + (i,)) for i, child in enumerate(children)]
    return made if isinstance(space, list) else tuple(made)


# --- choices: --wrap ----------------------------------------------------------------------------------------------
# Each takes the parts of an observation and says the new ones, and what makes their values of the old ones.


def wrap_only(parts, names):
    for name in names.split(","):
        if name not in (known := [part.name for part in parts]):
            raise Refused(f"--wrap only: there is no observation '{name}', expected {', '.join(known)}")
    kept = [i for i, part in enumerate(parts) if part.name in names.split(",")]
    return [parts[i] for i in kept], lambda values: [values[i] for i in kept]


def wrap_onehot(parts, _):
    def hot(part):
        ends = np.cumsum(part.counts)
        starts, low, total = ends - part.counts, part.low.reshape(-1), int(ends[-1])
        if total > 1 << 20:
            raise Refused(f"--wrap onehot: '{part.name}' has {total} values")

        def values_of(value):
            out = np.zeros(total, np.float32)
            out[starts + np.asarray(value).reshape(-1) - low] = 1
            return out

        return bounded(part.name, part.path, np.float32, (total,), 0, 1), values_of

    made = [hot(part) if part.discrete else (part, lambda value: value) for part in parts]
    return [part for part, _ in made], lambda values: [turn(value) for (_, turn), value in zip(made, values)]


def positive(wrap, text):
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < math.inf:
        raise Refused(f"--wrap {wrap}: '{text}' is not a positive number")
    return number


def wrap_scale(parts, text):
    by = positive("scale", text)

    def scaled(part):
        if part.is_text:
            return part
        low, high = (None, None) if part.low is None else (part.low / by, part.high / by)
        return bounded(part.name, part.path, np.float32, part.shape, low, high)

    new = [scaled(part) for part in parts]
    return new, lambda values: [v if p.is_text else np.asarray(v, np.float32) / by for p, v in zip(new, values)]


def wrap_flat(parts, _):
    kept = [i for i, part in enumerate(parts) if not part.is_text]
    if not kept:
        raise Refused("--wrap flat: no observation is of numbers")

    def bounds(which, default):
        ends = [getattr(parts[i], which) for i in kept]
        return np.concatenate([np.full(parts[i].shape, default) if end is None else np.asarray(end, np.float64)
                               for i, end in zip(kept, ends)], axis=None)

    low, high = bounds("low", -np.inf), bounds("high", np.inf)
    return ([bounded("numbers", (), np.float32, low.shape, low, high)],
            lambda values: [np.concatenate([np.asarray(values[i], np.float32) for i in kept], axis=None)])


def overlaps(old, new):
    """Of `old` pixels those under each of `new`, and their shares of it: a few pairs of indices [new] and shares [new]."""
    edges = np.arange(new + 1) * (old / new)
    inside = np.minimum(edges[1:, None], np.arange(1, old + 1)) - np.maximum(edges[:-1, None], np.arange(old))
    shares = np.where(inside > 1e-9, inside, 0) * (new / old)
    first, most = (shares > 0).argmax(1), (shares > 0).sum(1).max()
    at_most = np.minimum(first[None] + np.arange(most)[:, None], old - 1)
    each = np.where(first[None] + np.arange(most)[:, None] < old, shares[np.arange(new), at_most], 0)
    return list(zip(at_most, each.astype(np.float32)))


def wrap_image(parts, size):
    images = [i for i, part in enumerate(parts) if part.dtype == np.uint8 and
              (len(part.shape) == 2 or len(part.shape) == 3 and part.shape[2] in (1, 3))]
    if len(images) != 1:
        raise Refused(f"--wrap image: {len(images)} observations are images ({', '.join(parts[i].name for i in images)}), "
                      "expected one; --wrap only=NAME chooses")
    part, channels = parts[images[0]], (parts[images[0]].shape + (1,))[2]
    if size and not re.fullmatch(r"[1-9][0-9]{0,3}x[1-9][0-9]{0,3}", size):
        raise Refused(f"--wrap image: '{size}' is no size, expected HEIGHTxWIDTH")
    height, width = (int(n) for n in size.split("x")) if size else part.shape[:2]
    rows, columns = overlaps(part.shape[0], height), overlaps(part.shape[1], width)

    def values_of(values):
        image = np.asarray(values[images[0]]).reshape(part.shape[:2] + (channels,))
        if (height, width) != part.shape[:2]:
            wide = sum(image[index] * share[:, None, None] for index, share in rows)
            image = np.rint(sum(wide[:, index] * share[:, None] for index, share in columns)).astype(np.uint8)
        return [image]

    return [bounded(part.name, part.path, np.uint8, (height, width, channels), 0, 255)], values_of


WRAPS = {"only": wrap_only, "onehot": wrap_onehot, "scale": wrap_scale, "flat": wrap_flat, "image": wrap_image}
VALUED = {"only": True, "scale": True, "image": None, "onehot": False, "flat": False, "joint": False,
          "reward": True}


def check_wrap(text):
    name, said, value = text.partition("=")
    if ":" in name:
        return
    if name not in VALUED:
        raise Refused(f"--wrap {name}: expected {', '.join(VALUED)} or module:Class, a wrapper of Gymnasium's")
    if VALUED[name] is not None and VALUED[name] != bool(said and value):
        raise Refused(f"--wrap {name} {'needs' if VALUED[name] else 'takes no'} value")


# --- environments -------------------------------------------------------------------------------------------------

# The packages behind a scheme or a prefix of a Gymnasium id: module, what pip calls it, ids there.
PACKAGES = {"ale": ("ale_py", "ale-py", "ALE/{}"), "vizdoom": ("vizdoom.gymnasium_wrapper", "vizdoom", "{}"),
            "popgym": ("popgym", "popgym", "popgym-{}"), "memory_maze": ("memory_maze", "memory-maze gym", "{}")}
PREFIXES = {"MiniGrid-": ("minigrid", "minigrid"), "BabyAI-": ("minigrid", "minigrid"), "ALE/": ("ale_py", "ale-py"),
            "Vizdoom": ("vizdoom.gymnasium_wrapper", "vizdoom"), "popgym-": ("popgym", "popgym")}


def import_module(module, pip=None):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = error.name or module
        known = pip or package.split(".")[0]
        raise Refused(f"{package} is not installed here ({str(error).splitlines()[0]}): pip install {known}") from None
    except Exception as error:
        raise Refused(f"{module} cannot be imported: {type(error).__name__}: {str(error).splitlines()[:1]}") from error


class GymEnvironment:
    def __init__(self, env):
        self.env, self.takes_seed = env, True
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def reset(self, seed):
        return self.env.reset(seed=seed)[0]

    def step(self, action):
        observation, reward, terminated, truncated, _ = self.env.step(action)
        return observation, reward, 0.0 if terminated else 1.0, bool(terminated), bool(truncated)

    def close(self):
        self.env.close()


class DmEnvironment:
    """dm_env says its seed to the factory: `make` takes one, or none where the factory does not."""

    def __init__(self, env, make, takes_seed):
        self.env, self.make, self.takes_seed = env, make, takes_seed
        self.observation_space, self.action_space = env.observation_spec(), env.action_spec()

    def reset(self, seed):
        if seed is not None:
            made = self.make(seed)
            self.close()
            self.env = made
        return self.env.reset().observation

    def step(self, action):
        step = self.env.step(action)
        discount = 1.0 if step.discount is None else float(step.discount)
        return step.observation, 0.0 if step.reward is None else step.reward, discount, step.last() and discount == 0, step.last()

    def close(self):
        self.env.close()


def make_environment(name, settings):
    """The environment that a name of the command line means; `settings`: imports, set, wrap."""
    scheme, said, rest = name.partition(":")
    if not said or not rest or scheme not in ("gym", "dm", *PACKAGES):
        raise Refused(f"'{name}' names no environment, expected gym:ID, dm:module:factory or {':ID, '.join(PACKAGES)}:ID")
    for module in settings["imports"]:
        import_module(module)
    wrappers = [wrap for wrap in settings["wrap"] if ":" in wrap.partition("=")[0]]
    if scheme in ("dm", "memory_maze"):
        if wrappers:
            raise Refused(f"--wrap {wrappers[0]}: wrappers of Gymnasium's are for its environments, '{name}' is one of dm_env")
        return make_dm(scheme, rest, settings["set"])
    gymnasium, identifier = import_module("gymnasium"), rest
    if scheme in PACKAGES:
        module, pip, form = PACKAGES[scheme]
        module = import_module(module, pip)
        prefix = form.split("{")[0]
        identifier = rest if rest.startswith(prefix) else form.format(rest)
    else:
        for prefix, (module, pip) in PREFIXES.items():
            if identifier.startswith(prefix):
                import_module(module, pip)
    if scheme == "ale" or identifier.startswith("ALE/"):
        sys.modules["ale_py"].ALEInterface.setLoggerMode(sys.modules["ale_py"].LoggerMode.Error)
    known = [identifier] + [f"{identifier}-v{v}" for v in range(5)]
    identifier = next((k for k in known if k in gymnasium.registry), identifier)
    try:
        env = gymnasium.make(identifier, disable_env_checker=True, **settings["set"])
        for wrap in wrappers:
            module, _, cls = wrap.partition(":")
            env = getattr(import_module(module), cls)(env)
        return GymEnvironment(env)
    except Refused:
        raise
    except Exception as error:
        line = (str(error).strip().splitlines() or [""])[0]
        raise Refused(f"{name} cannot be made: {type(error).__name__}: {line}", INTERNAL) from error


def make_dm(scheme, rest, arguments):
    if scheme == "memory_maze":  # its entries in Gym's registry make an older Gym's environments around those of dm_env
        import_module("memory_maze", PACKAGES[scheme][1])
        gym = import_module("gym")
        if rest not in gym.envs.registry:
            raise Refused(f"memory_maze has no environment '{rest}'")
        factory, takes_seed = (lambda **more: gym.spec(rest).entry_point(**more).env), True
    else:
        module, _, attribute = rest.partition(":")
        factory = getattr(import_module(module), attribute or "make", None)
        if not callable(factory):
            raise Refused(f"dm:{rest}: there is no function '{attribute or 'make'}' in {module}")
        parameters = inspect.signature(factory).parameters
        takes_seed = "seed" in parameters or any(p.kind == p.VAR_KEYWORD for p in parameters.values())

    def make(seed=None):
        try:
            return factory(**arguments, **({} if seed is None else {"seed": seed}))
        except Exception as error:
            line = (str(error).strip().splitlines() or [""])[0]
            raise Refused(f"{scheme}:{rest} cannot be made: {type(error).__name__}: {line}", INTERNAL) from error

    return DmEnvironment(make(), make, takes_seed)


# --- a row: one environment on the wire ---------------------------------------------------------------------------


class Row:
    """An environment, its specs, and where in an episode it is."""

    def __init__(self, name, settings):
        self.env = make_environment(name, settings)
        try:
            self.view, self.turns = parts_of(self.env.observation_space, "observation"), []
            self.source = list(self.view)
            self.takes, self.joint, self.reward_by = parts_of(self.env.action_space, "action"), None, 1.0
            if not self.takes:
                raise Refused(f"{name} takes no action")
            for wrap in settings["wrap"]:
                which, _, value = wrap.partition("=")
                if which == "joint":
                    self.join_actions()
                elif which == "reward":
                    self.reward_by *= positive(which, value)
                elif ":" not in which:
                    self.view, turn = WRAPS[which](self.view, value)
                    self.turns.append(turn)
            ends = [Part(n, (), np.dtype(np.float64)) for n in ("reward", "discount")]
            self.shown = dict(enumerate(self.view + ends, 1))
            self.actions = dict(enumerate(self.joint or self.takes, 1))
            for what, parts in (("observation", self.shown), ("action", self.actions)):
                names = [part.name for part in parts.values()]
                if twice := next((n for n in names if names.count(n) > 1), None):
                    raise Refused(f"{name} has an {what} called {twice}, a name that another one has; reward and discount are taken")
            self.specs = pb.ActionObservationSpecs(actions={uid: p.spec() for uid, p in self.actions.items()},
                                                   observations={uid: p.spec() for uid, p in self.shown.items()})
        except Exception:
            self.env.close()
            raise
        self.running, self.seed, self.values = False, None, None

    def join_actions(self):
        if not all(part.discrete for part in self.takes):
            raise Refused("--wrap joint: an action is not discrete")
        self.counts = np.concatenate([part.counts for part in self.takes]).tolist()
        if math.prod(self.counts) > JOINT_AT_MOST:
            raise Refused(f"--wrap joint: {math.prod(self.counts)} actions, expected at most {JOINT_AT_MOST}")
        self.joint = [discrete("action", (), 0, math.prod(self.counts), int)]

    def reset(self, seed, has_seed):
        """The next step begins an episode; with a seed, the first one of that seed."""
        if has_seed:
            if seed is not None and not self.env.takes_seed:
                raise Refused("this environment takes no seed: its factory has no such argument")
            self.seed = seed
        self.running = False

    def action_of(self, sent):
        """What the environment takes, from tensors by uid; Refused, with nothing changed, where they are not that."""
        for uid in sent:
            if uid not in self.actions:
                raise Refused(f"there is no action {uid}")
        values = {}
        for uid, part in self.actions.items():
            if uid not in sent:
                raise Refused(f"action {uid}, '{part.name}', is missing")
            values[part.path] = number_of(sent[uid], part)
        if self.joint:
            flat, values = np.array(np.unravel_index(int(values[()]), self.counts), np.int64), {}
            for part in self.takes:
                size = math.prod(part.shape)
                values[part.path], flat = flat[:size].reshape(part.shape) + part.low, flat[size:]
        return nested_of(self.env.action_space, {part.path: part.native(values[part.path]) for part in self.takes})

    def see(self, observation, reward, discount):
        values = [at(observation, part.path) for part in self.source]
        for turn in self.turns:
            values = turn(values)
        for part, value in zip(self.view, values):
            if not part.is_text and np.shape(value) != part.shape:
                raise ValueError(f"observation '{part.name}' has shape {list(np.shape(value))}, expected {list(part.shape)}")
        reward = float(reward) / self.reward_by
        if not math.isfinite(reward):
            raise ValueError(f"the reward is {reward}")
        self.values = values + [reward, discount]

    def step(self, request, interrupted=False):
        for uid in request.requested_observations:
            if uid not in self.shown:
                raise Refused(f"there is no observation {uid}")
        state, doing = pb.RUNNING, "reset" if not self.running else "step"
        try:
            if interrupted and self.running:
                self.running, self.values[-2:], state = False, [0.0, 1.0], pb.INTERRUPTED
            elif not self.running:
                seed, self.seed = self.seed, None
                self.see(self.env.reset(seed), 0.0, 1.0)
                self.running = True
            else:
                action = self.action_of(request.actions)
                observation, reward, discount, terminated, truncated = self.env.step(action)
                self.see(observation, reward, discount)
                self.running = not (terminated or truncated)
                if not self.running:
                    state = pb.TERMINATED if terminated else pb.INTERRUPTED
        except Refused:
            raise
        except Exception as error:
            raise Broken(doing, error) from error
        response = pb.EnvironmentResponse()
        response.step.state = state
        for uid in set(request.requested_observations):
            pack(self.values[uid - 1], self.shown[uid], response.step.observations[uid])
        return response

    def answer(self, raw, interrupted=False):
        """The bytes of a response to those of a request for a step."""
        return self.step(pb.EnvironmentRequest.FromString(raw).step, interrupted).SerializeToString()

    def close(self):
        self.env.close()


class RowHere:
    """Row's calls, for those who wait for them."""

    row = None

    async def begin(self, name, settings):
        self.row = Row(name, settings)
        self.specs = self.row.specs

    async def call(self, name, *values):
        return getattr(self.row, name)(*values)

    async def close(self):
        if self.row is not None:
            self.row.close()


PAYLOADS = {kind: packer.name for kind, packer in tensor_utils._TYPE_TO_PACKER.items()}


def pack(value, part, tensor):
    if part.is_text:
        tensor.shape.extend(np.shape(value))
        tensor.strings.array.extend(str(text) for text in np.ravel(value))
        return
    tensor.shape.extend(part.shape)
    array = np.asarray(value, part.dtype)
    payload = getattr(tensor, PAYLOADS[part.dtype])
    if part.dtype.itemsize == 1 and part.dtype.kind != "b":
        payload.array = array.tobytes()
    else:
        payload.array.extend(array.ravel().tolist())


def number_of(tensor, part):
    """The numbers of a tensor that should be `part`; one element stands for all, one dimension may be -1."""
    where, arrived = f"action '{part.name}'", tensor.WhichOneof("payload")
    if arrived != PAYLOADS[part.dtype]:
        raise Refused(f"{where} came as {arrived or 'nothing'}, expected {PAYLOADS[part.dtype]}")
    shape = list(tensor.shape)
    fits = len(shape) == len(part.shape) and all(s in (n, -1) for s, n in zip(shape, part.shape))
    if not fits or shape.count(-1) > 1:
        raise Refused(f"{where} came in shape {shape}, expected {list(part.shape)}")
    if part.is_text:
        value = np.array(list(tensor.strings.array), dtype=object)
    else:
        value = tensor_utils.get_packer(part.dtype).unpack(tensor)
    if value.size not in (1, math.prod(part.shape)):
        raise Refused(f"{where} came with {value.size} elements, expected {math.prod(part.shape)}")
    value = np.broadcast_to(value, part.shape) if value.size == 1 and part.shape else value.reshape(part.shape)
    if part.dtype.kind == "f" and not np.isfinite(value).all():
        raise Refused(f"{where} is not finite")
    if part.low is not None and not ((value >= part.low) & (value <= part.high)).all():
        raise Refused(f"{where} is {value.tolist()}, outside its bounds {part.low.tolist()} and {part.high.tolist()}")
    return value.item() if part.is_text and not part.shape else value


# --- a row in a process of its own: --processes -------------------------------------------------------------------


def serve_row(pipe, name, settings):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    row = None
    try:
        row = Row(name, settings)
        pipe.send((row.specs.SerializeToString(), None))
        while (call := pipe.recv()) is not None:
            try:
                pipe.send((getattr(row, call[0])(*call[1:]), None))
            except Refused as error:
                pipe.send((None, (error.ends, str(error), error.code)))
    except Refused as error:
        pipe.send((None, (False, str(error), error.code)))
    except (EOFError, OSError):
        pass
    finally:
        if row is not None:
            row.close()


class RowElsewhere:
    """Row's calls, through a pipe. A process that dies is an environment that failed."""

    async def begin(self, name, settings):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve_row, args=(theirs, name, settings), daemon=True)
        self.process.start()
        theirs.close()
        self.specs = pb.ActionObservationSpecs.FromString(await self.answered())

    async def answered(self):
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self.pipe.fileno(), ready.set)
        try:
            await ready.wait()
            answer, error = self.pipe.recv()
        except (EOFError, OSError) as gone:
            self.process.join(1)
            raise Broken("its process", RuntimeError(f"it ended with code {self.process.exitcode}")) from gone
        finally:
            loop.remove_reader(self.pipe.fileno())
        if error:
            refused = Refused(error[1], error[2])
            refused.ends = error[0]
            raise refused
        return answer

    async def call(self, *call):
        try:
            self.pipe.send(call)
        except OSError:
            pass  # what is read then says so
        return await self.answered()

    async def close(self):
        try:
            self.pipe.send(None)
        except OSError:
            pass
        for _ in range(50):
            if not self.process.is_alive():
                break
            await asyncio.sleep(0.02)
        self.process.kill()
        self.pipe.close()


# --- worlds and streams -------------------------------------------------------------------------------------------


@dataclasses.dataclass
class World:
    name: str
    level: str
    seed: int = None
    stream: object = None
    interrupted: bool = False  # by ResetWorld of another stream


def seed_of(settings, allowed=("seed",)):
    """The seed of a message's settings, and whether there is one."""
    for name in settings:
        if name not in allowed:
            raise Refused(f"there is no setting '{name}', expected {' or '.join(allowed) or 'none'}")
    if "seed" not in settings:
        return None, False
    tensor = settings["seed"]
    kind = tensor.WhichOneof("payload") or "nothing"
    if kind not in ("int8s", "int32s", "int64s", "uint8s", "uint32s", "uint64s") or len(tensor.shape) > 1:
        raise Refused(f"seed came as {kind}, expected one integer")
    numbers = tensor_utils.unpack_proto(tensor)
    if len(numbers) != 1 or numbers[0] < 0:
        raise Refused("seed is not one integer from 0")
    return int(numbers[0]) % SEEDS, True


class Worlds:
    def __init__(self, levels, settings, processes, at_most):
        self.levels, self.settings, self.at_most = levels, settings, at_most
        self.row = RowElsewhere if processes else RowHere
        self.worlds, self.made, self.closing = {}, 0, set()

    def named(self, name):
        if name not in self.worlds:
            raise Refused(f"there is no world '{name[:100]}'", NOT_FOUND)
        return self.worlds[name]

    def create(self, settings):
        level = self.levels[0]
        if "levelName" in settings:
            said = list(settings["levelName"].strings.array)
            if len(said) != 1 or said[0] not in self.levels:
                raise Refused(f"levelName is none of {', '.join(self.levels)}")
            level = said[0]
        seed, _ = seed_of(settings, ("seed", "levelName"))
        if len(self.worlds) >= self.at_most:  # those that a client that broke has left
            free = next((n for n, w in self.worlds.items() if w.stream is None), None)
            if free is None:
                raise Refused(f"there are {self.at_most} worlds already", EXHAUSTED)
            del self.worlds[free]
        self.made += 1
        world = World(f"world-{self.made}", level, seed)
        self.worlds[world.name] = world
        return world.name

    def destroy(self, name):
        if self.named(name).stream is not None:
            raise Refused(f"world '{name}' is joined", PRECONDITION)
        del self.worlds[name]

    async def process(self, requests, context):
        """One stream: a response a request, in their order."""
        stream = Stream(self)
        try:
            async for raw in requests:
                response, going = await stream.answer(raw)
                await context.write(response)
                if not going:
                    return
        finally:
            stream.leave()  # it waits for nothing: a client that has gone cancels this at any time

    def close(self, row):
        """The task that closes a row."""

        async def closed():
            try:
                await row.close()
            except Exception as error:
                print(f"world_bridge: {Broken('close', error)}", file=sys.stderr, flush=True)

        task = asyncio.get_running_loop().create_task(closed())
        self.closing.add(task)
        task.add_done_callback(self.closing.discard)
        return task


class Stream:
    def __init__(self, worlds):
        self.worlds, self.world, self.row = worlds, None, None

    async def answer(self, raw):
        """The bytes of a response, and whether the stream goes on."""
        try:
            if self.row is not None and raw[:1] == b"\x1a":  # a step, and nothing before it: the row reads it
                interrupted, self.world.interrupted = self.world.interrupted, False
                return await self.row.call("answer", raw, interrupted), True
            try:
                request = pb.EnvironmentRequest.FromString(raw)
            except Exception:
                raise Refused("this is no message of dm_env_rpc") from None
            kind = request.WhichOneof("payload")
            if kind in (None, "extension"):
                raise Refused("this server has no extensions" if kind else "the request is empty", UNIMPLEMENTED)
            response = pb.EnvironmentResponse()
            getattr(response, kind).SetInParent()
            await getattr(self, kind)(getattr(request, kind), getattr(response, kind))
            return response.SerializeToString(), True
        except Refused as error:
            answer = pb.EnvironmentResponse()
            answer.error.code, answer.error.message = error.code, str(error)
            return answer.SerializeToString(), not error.ends

    async def create_world(self, request, response):
        response.world_name = self.worlds.create(request.settings)

    async def join_world(self, request, response):
        seed_of(request.settings, ())
        if self.world is not None:
            raise Refused(f"this stream has joined '{self.world.name}' already", PRECONDITION)
        world = self.worlds.named(request.world_name)
        if world.stream is not None:
            raise Refused(f"world '{world.name}' has its agent already; make one of your own", PRECONDITION)
        world.stream, world.interrupted, self.world = self, False, world
        self.row = self.worlds.row()
        try:
            await self.row.begin(world.level, self.worlds.settings)
            await self.row.call("reset", world.seed, True)
        except BaseException:
            self.leave()
            raise
        response.specs.CopyFrom(self.row.specs)

    def joined_row(self):
        if self.row is None:
            raise Refused("this stream has joined no world", PRECONDITION)
        return self.row

    async def step(self, request, response):
        self.joined_row()
        raise Refused("a step has nothing before it in its message")

    async def reset(self, request, response):
        row, said = self.joined_row(), seed_of(request.settings)
        await row.call("reset", *said)
        response.specs.CopyFrom(row.specs)

    async def reset_world(self, request, response):
        seed, said = seed_of(request.settings)
        world = self.worlds.named(request.world_name)
        world.seed = seed if said else world.seed
        if world is self.world:
            await self.row.call("reset", seed, said)
        else:
            world.interrupted = world.stream is not None

    async def leave_world(self, request, response):
        if task := self.leave():
            await asyncio.shield(task)

    async def destroy_world(self, request, response):
        self.worlds.destroy(request.world_name)

    def leave(self):
        """The world is free at once; the task that closes its environment, or None."""
        row, world, self.row, self.world = self.row, self.world, None, None
        if world is not None:
            world.stream = None
        return self.worlds.close(row) if row is not None else None


# --- the program --------------------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"world_bridge: {message}\n")


def arguments_of(words):
    parser = Parser(prog="world_bridge.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="+", help="gym:ID, dm:module:factory, ale:, vizdoom:, popgym:, memory_maze:ID; "
                        "CreateWorld's levelName chooses among several")
    parser.add_argument("--host", default="127.0.0.1", help="an address of this machine, or unix:PATH")
    parser.add_argument("--port", type=int, default=10000, help="0: one that is free")
    parser.add_argument("--import", dest="imports", action="append", default=[], metavar="MODULE",
                        help="import it first: it registers environments")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an argument of the environment")
    parser.add_argument("--wrap", action="append", default=[], metavar="NAME",
                        help="in their order: only=A,B  onehot  scale=K  flat  image[=HxW]  joint  reward=K  module:Class")
    parser.add_argument("--processes", action="store_true", help="every environment in a process of its own")
    parser.add_argument("--clients", type=int, default=256, help="streams at once")
    parser.add_argument("--worlds", type=int, default=1024, help="worlds at once")
    parser.add_argument("--random", type=int, metavar="N", help="print what random actions earn in N episodes, and end")
    parser.add_argument("--describe", action="store_true", help="print what the environments show and take, and end")
    options = parser.parse_args(words)
    for name, least, most in (("port", 0, 65535), ("clients", 1, 1024), ("worlds", 1, 1 << 20)):
        if not least <= getattr(options, name) <= most:
            raise Refused(f"--{name} {getattr(options, name)}: expected {least} to {most}")
    if options.random is not None and options.random < 1:
        raise Refused(f"--random {options.random}: expected a number of episodes")
    values = {}
    for pair in options.set:
        key, said, text = pair.partition("=")
        if not said or not key.isidentifier():
            raise Refused(f"--set {pair}: expected KEY=VALUE")
        try:
            values[key] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            values[key] = text
    for wrap in options.wrap:
        check_wrap(wrap)
    return options, {"imports": options.imports, "set": values, "wrap": options.wrap}


def described(row):
    for title, specs in (("observation", row.specs.observations), ("action", row.specs.actions)):
        for uid, spec in sorted(specs.items()):
            kind, text = pb.DataType.Name(spec.dtype).lower(), ""
            if spec.HasField("min"):
                ends = tensor_spec_utils.bounds(spec)
                text = f", {np.min(ends.min):g} to {np.max(ends.max):g}"
            yield f"  {title} {uid}: {spec.name} {kind} {list(spec.shape)}{text}"


def chance(name, settings, episodes):
    """What random actions earn in an environment that nothing stands in front of, and how fast it is then."""
    row, draw, returns, steps, seconds = Row(name, settings), np.random.default_rng(1), [], 0, 0.0
    for episode in range(episodes):
        row.env.reset(1 if episode == 0 and row.env.takes_seed else None)
        returns.append(0.0)
        ended = False
        while not ended:
            values = {}
            for part in row.takes:
                low, high = (-1, 1) if part.low is None else (part.low, part.high)
                drawn = draw.integers(low, high, part.shape, endpoint=True) if part.dtype.kind in "iu" else draw.uniform(
                    low, high, part.shape)
                values[part.path] = part.native(np.asarray(drawn, part.dtype))
            action, began = nested_of(row.env.action_space, values), time.perf_counter()
            _, reward, _, terminated, truncated = row.env.step(action)
            seconds += time.perf_counter() - began
            returns[-1] += float(reward)
            steps, ended = steps + 1, terminated or truncated
    row.close()
    error = np.std(returns) / math.sqrt(episodes)
    return (f"{name}: random actions earn {np.mean(returns):.3f}, standard error {error:.3f}, in {episodes} episodes of "
            f"{steps / episodes:.0f} steps; {steps / seconds:.0f} steps a second")


def bind(server, options):
    if options.host.startswith("unix:"):
        path = options.host.removeprefix("unix:")
        if os.path.exists(path):
            if not stat.S_ISSOCK(os.stat(path).st_mode):
                raise Refused(f"--host {options.host}: there is a file that is no socket")
            with socket.socket(socket.AF_UNIX) as other:
                if other.connect_ex(path) == 0:
                    raise Refused(f"--host {options.host}: somebody listens there already")
            os.unlink(path)
        address = options.host
    else:
        address = f"[{options.host}]:{options.port}" if ":" in options.host else f"{options.host}:{options.port}"
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        port = 0
    if port == 0:
        raise Refused(f"cannot listen at {address}: it is taken, or no address of this machine")
    return address if options.host.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"


async def run(words, out):
    options, settings = arguments_of(words)
    if options.random is not None:
        for name in options.name:
            print(chance(name, settings, options.random), file=out, flush=True)
        return
    for name in options.name:  # one of each first: what is wrong with it is said now
        row = (RowElsewhere if options.processes else RowHere)()
        try:
            await row.begin(name, settings)
        finally:
            await row.close()
        if options.describe:
            print(name, *described(row), sep="\n", file=out, flush=True)
    if options.describe:
        return
    worlds, ended = Worlds(options.name, settings, options.processes, options.worlds), asyncio.Event()
    server = grpc.aio.server(maximum_concurrent_rpcs=options.clients,
                             options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", MESSAGE_BYTES),
                                      ("grpc.max_send_message_length", -1), ("grpc.keepalive_time_ms", 60000)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
        "dm_env_rpc.v1.Environment", {"Process": grpc.stream_stream_rpc_method_handler(worlds.process)}),))
    address = bind(server, options)
    asked, loop = [], asyncio.get_running_loop()

    def end(number, _):
        if asked:  # an environment hangs
            os._exit(128 + number)
        asked.append(number)
        loop.call_soon_threadsafe(ended.set)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    await server.start()
    print(f"listening at {address}, {', '.join(options.name)}", file=out, flush=True)
    await ended.wait()
    await server.stop(0)
    if worlds.closing:
        await asyncio.wait(worlds.closing, timeout=5)
    os._exit(0)  # an environment that holds a thread is not waited for


def main():
    sys.path.insert(0, os.getcwd())
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what packages print is not for whoever reads the first line
    try:
        asyncio.run(run(sys.argv[1:], out))
    except Refused as error:
        print(f"world_bridge: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
