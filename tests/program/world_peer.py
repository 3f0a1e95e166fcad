# SPDX-License-Identifier: MIT
"""A world of other people's make: catch, behind the messages of the Python package dm-env-rpc.

world_peer.py ADDRESS: a ball falls through a board of 10 x 5, a paddle below it moves by -1, 0 or 1; the bottom is
worth 1 where the paddle is, else -1. An episode has nine moves. Says "ready" when it listens.
"""

import random
import sys
from concurrent import futures

import grpc
from dm_env_rpc.v1 import dm_env_rpc_pb2 as rpc
from dm_env_rpc.v1 import dm_env_rpc_pb2_grpc
from dm_env_rpc.v1 import spec_manager
from dm_env_rpc.v1 import tensor_spec_utils
from dm_env_rpc.v1 import tensor_utils
import numpy as np

ROWS, COLUMNS = 10, 5


def tensor_spec(name, shape, dtype, bounds=None):
    spec = rpc.TensorSpec(name=name, shape=shape, dtype=dtype)
    if bounds:
        tensor_spec_utils.set_bounds(spec, minimum=bounds[0], maximum=bounds[1])
    return spec


ACTIONS = {1: tensor_spec("paddle", (), rpc.DataType.INT8, (-1, 1))}
OBSERVATIONS = {
    1: tensor_spec("board", (ROWS, COLUMNS), rpc.DataType.FLOAT, (0.0, 1.0)),
    2: tensor_spec("reward", (), rpc.DataType.FLOAT),
    3: tensor_spec("discount", (), rpc.DataType.FLOAT, (0.0, 1.0)),
}


class Catch(dm_env_rpc_pb2_grpc.EnvironmentServicer):
    def Process(self, requests, context):
        shown, taken = spec_manager.SpecManager(OBSERVATIONS), spec_manager.SpecManager(ACTIONS)
        chance, running = random.Random(0), False
        ball, paddle = [0, 0], 0
        for request in requests:
            answer = rpc.EnvironmentResponse()
            kind = request.WhichOneof("payload")
            if kind == "create_world":
                if set(request.create_world.settings) - {"seed"}:
                    answer.error.message = "catch knows one setting, seed"
                    yield answer
                    continue
                chance = random.Random(int(tensor_utils.unpack_tensor(request.create_world.settings["seed"])))
                answer.create_world.world_name = "catch"
            elif kind == "join_world":
                for uid, spec in ACTIONS.items():
                    answer.join_world.specs.actions[uid].CopyFrom(spec)
                for uid, spec in OBSERVATIONS.items():
                    answer.join_world.specs.observations[uid].CopyFrom(spec)
            elif kind == "step":
                reward = 0.0
                state = rpc.EnvironmentStateType.RUNNING
                if not running:
                    ball, paddle, running = [0, chance.randrange(COLUMNS)], COLUMNS // 2, True
                else:
                    paddle = min(max(paddle + int(taken.unpack(request.step.actions)["paddle"]), 0), COLUMNS - 1)
                    ball[0] += 1
                    if ball[0] == ROWS - 1:
                        reward = 1.0 if ball[1] == paddle else -1.0
                        state, running = rpc.EnvironmentStateType.TERMINATED, False
                board = np.zeros((ROWS, COLUMNS), np.float32)
                board[tuple(ball)] = board[ROWS - 1, paddle] = 1
                packed = shown.pack({"board": board, "reward": np.float32(reward), "discount": np.float32(running)})
                answer.step.state = state
                for uid in request.step.requested_observations:
                    answer.step.observations[uid].CopyFrom(packed[uid])
            else:
                getattr(answer, kind).SetInParent()
            yield answer


if __name__ == "__main__":
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=32))
    dm_env_rpc_pb2_grpc.add_EnvironmentServicer_to_server(Catch(), server)
    server.add_insecure_port(sys.argv[1])
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()
