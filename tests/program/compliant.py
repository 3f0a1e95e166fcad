# SPDX-License-Identifier: MIT
# What the tests of two servers of dm_env_rpc share (serve.py, bridge.py): a server in a process of its own, and the compliance tests
# of the package dm-env-rpc.

import signal
import subprocess

import grpc
from dm_env_rpc.v1 import compliance
from dm_env_rpc.v1 import connection as rpc
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb
from dm_env_rpc.v1 import tensor_utils


class Server:
    """A program that says where it listens in the third word of its first line."""

    def __init__(self, command, environment=None):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self.address = self.process.stdout.readline().split()[2].rstrip(",")

    def channel(self):
        return grpc.insecure_channel(self.address, options=[("grpc.use_local_subchannel_pool", 1)])

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(timeout=20)
        self.process.stdout.close()
        return code


def packed(settings):
    return {name: tensor_utils.pack_tensor(value) for name, value in settings.items()}


class Connected:
    """A connection a test to `server`, and a world of the class's settings, joined if it says so."""

    server, settings = None, {}
    makes_world, joins_world = True, False

    def setUp(self):
        super().setUp()
        self._channel = Connected.server.channel()
        self._connection = rpc.Connection(self._channel)
        if self.makes_world:
            self._world = self._connection.send(pb.CreateWorldRequest(settings=packed(self.settings))).world_name
        if self.joins_world:
            self._specs = self._connection.send(pb.JoinWorldRequest(world_name=self._world)).specs

    def tearDown(self):
        super().tearDown()
        if self.makes_world:
            self._connection.send(pb.LeaveWorldRequest())
            self._connection.send(pb.DestroyWorldRequest(world_name=self._world))
        self._connection.close()
        self._channel.close()

    connection = property(lambda self: self._connection)
    world_name = property(lambda self: self._world)
    specs = property(lambda self: self._specs)


class JoinLeave(Connected, compliance.JoinLeaveWorld):
    invalid_join_settings = packed({"seed": 3})


class Reset(Connected, compliance.Reset):
    def join_world(self):
        return self.connection.send(pb.JoinWorldRequest(world_name=self.world_name)).specs


class ResetWorld(Connected, compliance.ResetWorld):
    required_reset_world_settings = packed({"seed": 5})


def add_compliance(suite, loader, worlds, *others):
    """Every class for every world: (name, settings) each. The others make and step worlds in ways of their own."""
    for name, settings in worlds:
        for base in (JoinLeave, Reset, ResetWorld, *others):
            suite.addTests(loader.loadTestsFromTestCase(type(f"{base.__name__}_{name}", (base,), {"settings": settings})))
