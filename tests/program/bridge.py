# SPDX-License-Identifier: MIT
# tools/world_bridge.py: what every space becomes, and the compliance tests of the package dm-env-rpc on Gymnasium's CartPole
# and on an environment of dm_env.
#   python bridge.py <tools/world_bridge.py>

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import grpc
import gymnasium
import numpy as np
from dm_env_rpc.v1 import compliance
from dm_env_rpc.v1 import connection as rpc
from dm_env_rpc.v1 import dm_env_adaptor
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb
from dm_env_rpc.v1 import error
from dm_env_rpc.v1 import tensor_utils
from gymnasium import spaces

from bridge_environments import Corridor
from compliant import Connected, Server, add_compliance, packed

BRIDGE = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
loader = importlib.util.spec_from_file_location("world_bridge", BRIDGE)
bridge = importlib.util.module_from_spec(loader)
sys.modules["world_bridge"] = bridge
loader.loader.exec_module(bridge)


class Spaces(gymnasium.Env):
    """A Gymnasium environment of any two spaces that shows samples of one and checks actions by the other."""

    def __init__(self, shows, takes):
        self.observation_space, self.action_space, self.last = shows, takes, None

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.last = self.observation_space.sample()
        return self.last, {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.last = self.observation_space.sample()
        return self.last, 1, False, False, {}


def row_of(env, *wrap):
    """A row of the bridge around an environment of this process."""
    made, bridge.make_environment = bridge.make_environment, lambda *_: bridge.GymEnvironment(env)
    try:
        return bridge.Row("test", {"imports": [], "set": {}, "wrap": list(wrap)})
    finally:
        bridge.make_environment = made


def step(row, **actions):
    """Values by name of a step with everything asked for."""
    uids = {part.name: uid for uid, part in row.actions.items()}
    request = pb.StepRequest(actions={uids[name]: value for name, value in actions.items()},
                             requested_observations=list(row.shown))
    answer = row.step(request).step
    return {row.shown[uid].name: tensor_utils.unpack_tensor(tensor) for uid, tensor in answer.observations.items()}


Box, image = spaces.Box, spaces.Box(0, 255, (4, 6, 3), np.uint8)
# A space, and what it is on the wire: name, type, shape, least, most; or a fragment of the sentence.
TABLE = [
    (spaces.Discrete(5), [("observation", "INT32", [], 0, 4)]),
    (spaces.Discrete(3, start=-1), [("observation", "INT32", [], -1, 1)]),
    (spaces.Discrete(2**40), [("observation", "INT64", [], 0, 2**40 - 1)]),
    (spaces.MultiDiscrete([2, 7]), [("observation", "INT32", [2], [0, 0], [1, 6])]),
    (spaces.MultiBinary(3), [("observation", "INT32", [3], [0], [1])]),
    (Box(-1, 1, (2, 3), np.float32), [("observation", "FLOAT", [2, 3], [-1], [1])]),
    (Box(0, np.inf, (), np.float64), [("observation", "DOUBLE", [], 0, float(np.finfo(np.float64).max))]),
    (Box(-np.inf, np.inf, (2,), np.float32), [("observation", "FLOAT", [2], None, None)]),
    (Box(-7, 7, (1,), np.int16), [("observation", "INT32", [1], [-7], [7])]),
    (Box(0, 60000, (1,), np.uint16), [("observation", "INT32", [1], [0], [60000])]),
    (Box(-7, 7, (2,), np.int8), [("observation", "INT8", [2], [-7], [7])]),
    (Box(0, 1, (2,), np.float16), [("observation", "FLOAT", [2], [0], [1])]),
    (image, [("observation", "UINT8", [4, 6, 3], [0], [255])]),
    (spaces.Text(8), [("observation", "STRING", [], None, None)]),
    (spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Tuple([image, spaces.Text(3)])}),
     [("a.0", "UINT8", [4, 6, 3], [0], [255]), ("a.1", "STRING", [], None, None), ("b", "INT32", [], 0, 1)]),
    (spaces.Sequence(spaces.Discrete(2)), "of kind Sequence, for which"),
    (spaces.Graph(Box(0, 1, (2,)), None), "of kind Graph, for which"),
    (spaces.OneOf([spaces.Discrete(2), image]), "of kind OneOf, for which"),
    (spaces.Dict({"reward": spaces.Discrete(2)}), "an observation called reward"),
    (spaces.Dict({"a.b": image, "a": spaces.Dict({"b": image})}), r"an observation called a\.b"),
]


class EverySpace(unittest.TestCase):
    def test_as_an_observation(self):
        for space, expected in TABLE:
            with self.subTest(str(space)):
                env = Spaces(space, spaces.Discrete(2))
                if isinstance(expected, str):
                    with self.assertRaisesRegex(bridge.Refused, expected):
                        row_of(env)
                    continue
                row = row_of(env)
                seen = [spec for _, spec in sorted(row.specs.observations.items())]
                self.assertEqual([spec.name for spec in seen[-2:]], ["reward", "discount"])
                self.assertEqual(len(seen), len(expected) + 2)
                for spec, (name, kind, shape, low, high) in zip(seen, expected):
                    self.assertEqual((spec.name, pb.DataType.Name(spec.dtype), list(spec.shape)), (name, kind, shape))
                    self.assertEqual(spec.HasField("min"), low is not None)
                    if low is not None:
                        ends = bridge.tensor_spec_utils.bounds(spec)
                        np.testing.assert_array_equal(ends.min, np.broadcast_to(low, shape))
                        np.testing.assert_array_equal(ends.max, np.broadcast_to(high, shape))
                got = step(row)
                for part in row.source:
                    np.testing.assert_array_equal(got[part.name], bridge.at(env.last, part.path))

    def test_as_an_action(self):
        """The environment itself checks what it is given."""
        for space, expected in TABLE:
            if isinstance(expected, str) or "STRING" in str(expected):
                continue
            with self.subTest(str(space)):
                row = row_of(Spaces(spaces.Discrete(2), space))
                step(row)
                for end in ("low", "high"):
                    sent = {p.name: tensor_utils.pack_tensor(
                        np.zeros(p.shape, p.dtype) if p.low is None else getattr(p, end), dtype=p.dtype) for p in row.takes}
                    self.assertEqual(step(row, **sent)["reward"], 1)

    def test_joint_counts_every_combination(self):
        space = spaces.Dict({"a": spaces.MultiDiscrete([2, 3]), "b": spaces.Discrete(4, start=5)})
        row, seen = row_of(Spaces(spaces.Discrete(2), space), "joint"), set()
        self.assertEqual(row.specs.actions[1].max.int32s.array[0], 23)
        for number in range(24):
            action = row.action_of({1: tensor_utils.pack_tensor(number, dtype=np.int32)})
            self.assertTrue(space.contains(action), action)
            seen.add((*action["a"], action["b"]))
        self.assertEqual(len(seen), 24)
        with self.assertRaisesRegex(bridge.Refused, "not discrete"):
            row_of(Spaces(spaces.Discrete(2), Box(0, 1, (1,))), "joint")

    def test_wraps(self):
        space = spaces.Dict({"d": spaces.MultiDiscrete([2, 3], start=[0, 5]), "p": image, "t": spaces.Text(3)})
        env = Spaces(space, spaces.Discrete(2))
        seen = step(row_of(env, "only=d", "onehot"))
        expected = np.zeros(5)
        expected[[env.last["d"][0], 2 + env.last["d"][1] - 5]] = 1
        np.testing.assert_array_equal(seen["d"], expected)
        seen = step(row_of(env, "scale=51", "flat"))
        np.testing.assert_allclose(seen["numbers"], np.concatenate([env.last["d"], env.last["p"]], None) / 51, rtol=1e-6)
        seen = step(row_of(env, "image=2x3"))  # every pixel is the mean of four
        mean = env.last["p"].reshape(2, 2, 3, 2, 3).mean((1, 3))
        self.assertLessEqual(np.abs(seen["p"] - mean).max(), 0.51)
        np.testing.assert_array_equal(step(row_of(env, "image"))["p"], env.last["p"])
        row = row_of(env, "reward=2", "reward=2")
        step(row)
        self.assertEqual(step(row, action=tensor_utils.pack_tensor(0, dtype=np.int32))["reward"], 0.25)
        for old, new in ((210, 84), (240, 72), (5, 7), (6, 6)):
            shares = np.zeros((new, old))
            for index, share in bridge.overlaps(old, new):
                np.add.at(shares, (np.arange(new), index), share)
            np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-5)
            np.testing.assert_allclose(shares.sum(0), new / old, rtol=1e-5)  # every pixel counts alike
        for wrong, sentence in (("only=x", "no observation 'x', expected d, p, t"), ("image=0x3", "no size"),
                                ("scale=-1", "not a positive number"), ("reward=0", "--wrap reward: '0' is not a positive"),
                                ("reward=1..2", "not a positive number"), ("scale=1e999", "not a positive number")):
            with self.assertRaisesRegex(bridge.Refused, sentence):
                row_of(env, wrong)


# --- as a server --------------------------------------------------------------------------------------------------


class Bridge(Server):
    def __init__(self, *words):
        super().__init__([sys.executable, BRIDGE, *words, "--port", "0"], dict(os.environ, PYTHONPATH=HERE))

    def connection(self):
        channel = self.channel()
        return channel, rpc.Connection(channel)


CARTPOLE, CORRIDOR = "gym:CartPole-v1", "dm:bridge_environments:Corridor"
server = None


class CreateDestroy(Connected, compliance.CreateDestroyWorld):
    makes_world, has_multiple_world_support, required_world_settings = False, True, {}
    invalid_world_settings = packed({"levelName": "gym:Nothing", "seed": -1, "sead": 3, "render_mode": "human"})


class Step(Connected, compliance.Step):
    joins_world = True

    @property
    def required_actions(self):
        return {uid: tensor_utils.pack_tensor(np.zeros(spec.shape), dtype=spec.dtype) for uid, spec in self.specs.actions.items()}


class Served(unittest.TestCase):
    def joined(self, connection, level, **settings):
        env, _ = dm_env_adaptor.create_and_join_world(connection, {"levelName": level, **settings}, {})
        return env

    def test_episodes_are_those_of_the_environment_alone(self):
        channel, connection = server.connection()
        with channel:
            env, alone = self.joined(connection, CARTPOLE, seed=11), gymnasium.make("CartPole-v1")
            draw = np.random.default_rng(0)
            for episode in range(3):
                here, seen = env.reset(), alone.reset(seed=11 if episode == 0 else None)[0]
                ended = False
                while not ended:
                    np.testing.assert_array_equal(here.observation["observation"], seen)
                    action = int(draw.integers(2))
                    here = env.step({"action": np.int32(action)})
                    seen, reward, ended, _, _ = alone.step(action)
                    self.assertEqual((here.reward, here.last(), here.discount), (reward, ended, 0.0 if ended else 1.0))

    def test_several_clients_have_environments_of_their_own(self):
        ends, failures = [], []

        def play(seed):
            try:
                channel, connection = server.connection()
                with channel:
                    env = self.joined(connection, CORRIDOR, seed=seed)
                    self.assertEqual(list(env.observation_spec()), ["room", "wind", "name"])
                    expected = Corridor(seed)
                    for _ in range(20):
                        a, b = env.reset(), expected.reset()
                        while not b.last():
                            np.testing.assert_array_equal(a.observation["wind"], b.observation["wind"])
                            act = {"go": np.int32(2), "push": [np.zeros((2, 2), np.float32)]}
                            a = env.step({"go": np.int32(2), "push": {"0": act["push"][0]}})
                            b = expected.step(act)
                            self.assertEqual((a.reward, a.discount, a.last()), (b.reward, b.discount, b.last()))
                    ends.append(seed)
                    env.close()
            except Exception as failed:
                failures.append(failed)

        threads = [threading.Thread(target=play, args=(seed,)) for seed in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(failures, [])
        self.assertEqual(sorted(ends), [0, 1, 2, 3])

    def test_a_time_limit_interrupts(self):
        limited = Bridge("gym:CartPole-v1", "--set", "max_episode_steps=3")
        try:
            channel, connection = limited.connection()
            with channel:
                env = self.joined(connection, CARTPOLE)
                steps = [env.reset()] + [env.step({"action": np.int32(t % 2)}) for t in range(3)]
                self.assertTrue(steps[-1].last() and not steps[-2].last())
                self.assertEqual(steps[-1].discount, 1)
        finally:
            self.assertEqual(limited.end(signal.SIGINT), 0)

    def test_another_stream_resets_a_world(self):
        (one, first), (two, second) = server.connection(), server.connection()
        with one, two:
            env, world = dm_env_adaptor.create_and_join_world(first, {"levelName": CARTPOLE}, {})
            env.reset()
            with self.assertRaisesRegex(error.DmEnvRpcError, "has its agent already"):
                second.send(pb.JoinWorldRequest(world_name=world))
            second.send(pb.ResetWorldRequest(world_name=world))
            step = env.step({"action": np.int32(0)})
            self.assertTrue(step.last() and step.discount == 1)

    def test_a_client_that_goes_leaves_its_world(self):
        for options in ((), ("--processes",)):
            left = Bridge(CARTPOLE, *options)
            try:
                (one, first), (two, second) = left.connection(), left.connection()
                with one, two:
                    env, world = dm_env_adaptor.create_and_join_world(first, {}, {})
                    env.reset()
                    one.close()
                    said = None
                    for attempt in range(200):  # it notices soon
                        try:
                            second.send(pb.JoinWorldRequest(world_name=world))
                            break
                        except error.DmEnvRpcError as refused:
                            said = refused
                            time.sleep(0.1)
                    else:
                        self.fail(f"the world is still joined: {said}")
                    rows = subprocess.run(["pgrep", "-fc", "-P", str(left.process.pid), "spawn_main"], capture_output=True, text=True)
                    self.assertEqual(int(rows.stdout or 0), len(options))
            finally:
                self.assertEqual(left.end(), 0)

    def test_a_broken_environment_ends_its_stream_only(self):
        for how, fragment in (("error", "failed in step: RuntimeError: the roof"), ("exit", "ended with code 3")):
            socket_path = tempfile.mktemp(suffix=".socket")
            broken = Bridge(CORRIDOR, "--set", f"fail={how}", "--processes", "--host", f"unix:{socket_path}")
            try:
                (one, first), (two, second) = broken.connection(), broken.connection()
                with one, two:
                    env, other = self.joined(first, CORRIDOR), self.joined(second, CORRIDOR)
                    env.reset()
                    other.reset()
                    act = {"go": np.int32(0), "push": {"0": np.zeros((2, 2), np.float32)}}
                    with self.assertRaisesRegex(error.DmEnvRpcError, fragment):
                        env.step(act)
                    with self.assertRaises(StopIteration):
                        env.step(act)
                    self.assertTrue(other.reset().first())
            finally:
                self.assertEqual(broken.end(), 0)

    def test_garbage_is_refused(self):
        channel = grpc.insecure_channel(server.address)
        with channel:
            call = channel.stream_stream("/dm_env_rpc.v1.Environment/Process")(iter([b"\xff\xff\xff", b"", b"\x1a\x00"]))
            sentences = [pb.EnvironmentResponse.FromString(raw).error.message for raw in call]
        self.assertEqual(sentences, ["this is no message of dm_env_rpc", "the request is empty", "this stream has joined no world"])

    def test_not_finite_is_refused(self):
        channel, connection = server.connection()
        with channel:
            env = self.joined(connection, CORRIDOR)
            env.reset()
            for push in (np.nan, np.inf, 9.0):
                with self.assertRaisesRegex(error.DmEnvRpcError, "push.0.*(not finite|outside its bounds)"):
                    env.step({"go": np.int32(0), "push": {"0": np.full((2, 2), push, np.float32)}})

    def test_what_random_actions_earn(self):
        said = subprocess.run([sys.executable, BRIDGE, CARTPOLE, CORRIDOR, "--random", "200"], capture_output=True, text=True,
                              timeout=60, env=dict(os.environ, PYTHONPATH=HERE)).stdout
        cartpole, corridor = re.findall(r"random actions earn ([0-9.]+), .* of ([0-9]+) steps", said)
        self.assertLess(abs(float(cartpole[0]) - 22.3), 4)  # five standard errors
        self.assertLess(abs(float(corridor[0]) - 4), 0.6)   # four draws of 0, 1, 2
        self.assertEqual(corridor[1], "4")

    def test_bad_command_lines(self):
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for words, fragment in ((["CartPole"], "names no environment"), (["gym:Nothing-v9"], "cannot be made: .*Nothing"),
                                (["gym:nowhere:X-v0"], "nowhere"), (["dm:nowhere:f"], "nowhere is not installed here .*pip install"),
                                (["dm:bridge_environments:x"], "there is no function 'x'"),
                                ([CARTPOLE, "--wrap", "flatt"], "--wrap flatt: expected only"),
                                ([CARTPOLE, "--wrap", "image"], "0 observations are images"),
                                ([CARTPOLE, "--import", "nowhere"], "nowhere is not installed"),
                                ([CARTPOLE, "--set", "x"], "expected KEY=VALUE"), ([CARTPOLE, "--set", "x=1"], "cannot be made"),
                                ([CARTPOLE, "--port", str(taken.getsockname()[1])], "cannot listen at"),
                                ([CARTPOLE, "--port", "70000"], "expected 0 to 65535"), ([CARTPOLE, "--prot", "1"], "--prot")):
            with self.subTest(words):
                done = subprocess.run([sys.executable, BRIDGE, *words], capture_output=True, text=True, timeout=60,
                                      env=dict(os.environ, PYTHONPATH=HERE))
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, "^world_bridge: .*" + fragment)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        taken.close()


def load_tests(loader, tests, pattern):
    suite = unittest.TestSuite()
    worlds = (("cartpole", {"levelName": CARTPOLE}), ("corridor", {"levelName": CORRIDOR}))
    add_compliance(suite, loader, worlds, CreateDestroy, Step)
    for case in (EverySpace, Served):
        suite.addTests(loader.loadTestsFromTestCase(case))
    return suite


if __name__ == "__main__":
    server = Connected.server = Bridge(CARTPOLE, CORRIDOR)
    result = unittest.main(argv=[sys.argv[0]], exit=False).result
    code = server.end()
    sys.exit(0 if result.wasSuccessful() and code == 0 and result.testsRun > 80 else 1)
