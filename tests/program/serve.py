# SPDX-License-Identifier: MIT
# engram-tasks serve, asked by other people's client: the compliance tests of the package dm-env-rpc, and episodes through
# its adaptor beside those that tests/program/serve.cpp has stepped natively.
#   python serve.py <engram-tasks> <file of native episodes>

import json
import signal
import socket
import sys
import threading
import time
import unittest
import zlib

import dm_env
import grpc
import numpy as np
from dm_env_rpc.v1 import compliance
from dm_env_rpc.v1 import connection as rpc
from dm_env_rpc.v1 import dm_env_adaptor
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb
from dm_env_rpc.v1 import dm_env_rpc_pb2_grpc
from dm_env_rpc.v1 import error
from dm_env_rpc.v1 import tensor_utils

from compliant import Connected, Server, add_compliance, packed

PROGRAM, NATIVE = sys.argv[1:3]


def serving(*options):
    return Server([PROGRAM, "serve", "--port", "0", *options])


IMAGE = {"levelName": "spot_diff_holdout_interpolate", "seed": 3}
NUMBERS = {"levelName": "t_maze", "seed": 3}
TOKENS = {"levelName": "popgym_autoencode", "difficulty": "medium", "seed": 3}
server = None


class CreateDestroy(Connected, compliance.CreateDestroyWorld):
    makes_world = False
    has_multiple_world_support = True

    @property
    def required_world_settings(self):
        return packed({"levelName": self.settings["levelName"]})

    @property
    def invalid_world_settings(self):
        return packed({"level": "nowhere", "seed": -1, "episodeId": "first", "data": "/etc", "lenght": 5})


class Step(Connected, compliance.Step):
    joins_world = True

    @property
    def required_actions(self):  # a step that does nothing is none in a maze
        return {next(iter(self.specs.actions)): tensor_utils.pack_tensor(0, dtype=np.int32)}


def load_tests(loader, tests, pattern):
    """Every class of the package for a task of images, one of numbers, one of symbols."""
    suite = unittest.TestSuite()
    worlds = (("image", IMAGE), ("numbers", NUMBERS), ("tokens", TOKENS))
    add_compliance(suite, loader, worlds, CreateDestroy, Step)
    suite.addTests(loader.loadTestsFromTestCase(Adaptor))
    return suite


class Adaptor(unittest.TestCase):
    def test_episodes_are_the_native_ones(self):
        """The same seed and actions: equal rewards, ends and observations, as the C++ test wrote them down."""
        with open(NATIVE) as file:
            native = json.load(file)
        self.assertGreaterEqual(len(native), 3)
        for run in native:
            with self.subTest(run["settings"]), server.channel() as channel, rpc.Connection(channel) as connection:
                env, world = dm_env_adaptor.create_and_join_world(connection, run["settings"], {})
                (seen,) = env.observation_spec()
                count = env.action_spec()["action"].maximum + 1
                step, checksum, ends = env.reset(), 0, 0
                checksum = zlib.crc32(step.observation[seen].tobytes())
                rewards = []
                for t in range(run["steps"]):
                    if step.last():
                        ends += 1
                        self.assertEqual(step.discount, 0)
                        step = env.step({})
                        self.assertEqual(step.step_type, dm_env.StepType.FIRST)
                    else:
                        step = env.step({"action": np.int32((5 * t + t // 7) % count)})
                        self.assertEqual(step.discount, 0 if step.last() else 1)
                        rewards.append(float(step.reward))
                    checksum = zlib.crc32(step.observation[seen].tobytes(), checksum)
                self.assertEqual(ends, run["ends"])
                self.assertAlmostEqual(sum(rewards), run["return"], places=4)
                self.assertEqual(checksum, run["checksum"])
                env.close()
                connection.send(pb.DestroyWorldRequest(world_name=world))

    def test_a_policy_that_remembers_earns_what_there_is(self):
        with server.channel() as channel, rpc.Connection(channel) as connection:
            env, world = dm_env_adaptor.create_and_join_world(connection, {"levelName": "t_maze", "length": 5,
                                                                           "length_spread": 3, "seed": 1}, {})
            for _ in range(20):
                step = env.reset()
                hint, earned = step.observation["numbers"][0], 0
                while not step.last():
                    step = env.step({"action": np.int32(hint > 0)})
                    earned += step.reward
                self.assertEqual(earned, 4)
            env.close()
            connection.send(pb.DestroyWorldRequest(world_name=world))

    def test_who_sends_garbage_and_who_never_reads_keep_nobody_waiting(self):
        host, port = server.address.split(":")
        noisy = [socket.create_connection((host, int(port))) for _ in range(20)]
        for i, connected in enumerate(noisy):
            connected.sendall(bytes([i, 255 - i]) * 500)
        with server.channel() as sleeper, server.channel() as channel, rpc.Connection(channel) as connection:
            joined = threading.Event()

            def requests():
                yield pb.EnvironmentRequest(create_world=pb.CreateWorldRequest(settings=packed(
                    {"levelName": "change_detection", "fidelity": "paper", "seed": 1})))
                joined.wait()
                yield pb.EnvironmentRequest(join_world=pb.JoinWorldRequest(world_name=self.sleeping))
                for _ in range(5000):  # 100 MB of frames, and somebody who takes none of them
                    yield pb.EnvironmentRequest(step=pb.StepRequest(
                        actions={1: tensor_utils.pack_tensor(0, dtype=np.int32)}, requested_observations=[1]))

            asleep = dm_env_rpc_pb2_grpc.EnvironmentStub(sleeper).Process(requests())
            self.sleeping = next(asleep).create_world.world_name
            joined.set()
            env, world = dm_env_adaptor.create_and_join_world(connection, IMAGE, {})
            step = env.reset()
            for _ in range(300):
                step = env.step({} if step.last() else {"action": np.int32(0)})
            env.close()
            for name in world, self.sleeping:
                # Its stream ends, and what it had joined is left.
                asleep.cancel()
                for _ in range(200):
                    try:
                        connection.send(pb.DestroyWorldRequest(world_name=name))
                        break
                    except error.DmEnvRpcError:
                        time.sleep(0.02)
                else:
                    self.fail("a world that nobody is in cannot be destroyed")
        for connected in noisy:
            connected.close()

    def test_limits(self):
        """What is too much costs those who ask, and nobody else."""
        small = serving("--task", "t_maze", "--clients", "2", "--worlds", "2", "--message-bytes", "2000")
        try:
            channels = [small.channel() for _ in range(4)]
            first, second = (rpc.Connection(channel) for channel in channels[:2])
            env, _ = dm_env_adaptor.create_and_join_world(first, {}, {})
            env.reset()
            dm_env_adaptor.create_world(second, {})
            with self.assertRaisesRegex(error.DmEnvRpcError, "there are 2 worlds"):
                dm_env_adaptor.create_world(second, {})
            with self.assertRaisesRegex(grpc.RpcError, "has 2 clients"):
                rpc.Connection(channels[2]).send(pb.LeaveWorldRequest())
            with self.assertRaises(grpc.RpcError) as refused:
                second.send(pb.JoinWorldRequest(world_name="x" * 3000))
            self.assertEqual(refused.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            # Its stream ended with that, so there is room for a client, and its world makes room for another.
            for _ in range(200):
                try:
                    third = rpc.Connection(channels[3])
                    dm_env_adaptor.create_and_join_world(third, {}, {})
                    break
                except (grpc.RpcError, error.DmEnvRpcError):
                    third.close()
            else:
                self.fail("no room for a third client")
            self.assertTrue(env.step({"action": np.int32(0)}).mid())
            for connection in (first, third):
                connection.close()
            for channel in channels:
                channel.close()
        finally:
            self.assertEqual(small.end(signal.SIGINT), 0)


if __name__ == "__main__":
    server = Connected.server = serving()
    ended = unittest.main(argv=sys.argv[:1], exit=False)
    code = server.end()
    sys.exit(0 if ended.result.wasSuccessful() and code == 0 else 1)
