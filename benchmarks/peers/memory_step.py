# SPDX-License-Identifier: MIT
"""One training step (forward, backward, clip, Adam) of the models of memories.py, beside benchmark-memory_step.

--weights names the file that benchmark-memory_step wrote. --outputs writes the answers and gradients of the first step,
and loss and gradient norm of each of the first updates. --form says how a step of time is run:
    eager      the function as it is; of lstm torch.nn.LSTM
    script     through torch.jit.script
    compile    through torch.compile, which needs a C++ compiler: one graph a step of time
    unroll     the loop over T as well in one compiled graph (a minute or more of compiling)
Adam is fused. One JSON line: the median by the clock and the least processor time of --repeats samples of about 20 ms.
"""

import json
import statistics
import time

import torch
from safetensors.torch import load_file, save_file

import memories
import timing

LEARNING_RATE, CLIP = 1e-3, 1.0


class Training:
    def __init__(self, model, form, x, target):
        self.model, self.x, self.target = model, x, target
        self.trained = [p for p in model.parameters() if p.requires_grad]
        self.adam = torch.optim.Adam(self.trained, lr=LEARNING_RATE, eps=1e-8, fused=True)
        self.forward = self.whole
        if form == "script":
            model.step = torch.jit.script(model.step)
        elif form == "compile":
            model.step = torch.compile(model.step, fullgraph=True, dynamic=False)
        elif form == "unroll":
            self.forward = torch.compile(self.whole, fullgraph=True, dynamic=False)

    def whole(self):
        answer = self.model(self.x)
        return memories.loss_of(self.model, answer, self.target), answer

    def backward(self):
        self.adam.zero_grad(set_to_none=True)
        loss, answer = self.forward()
        loss.backward()
        return loss.detach(), answer

    def step(self):
        loss, _ = self.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.trained, CLIP)
        self.adam.step()
        return loss, norm


def measure(step, repeats):
    def rounds(count):
        start = time.perf_counter()
        for _ in range(count):
            step()
        return 1e3 * (time.perf_counter() - start) / count

    rounds(10)
    count = max(1, int(20 / rounds(3)))
    clock, processor = [], []
    for _ in range(repeats):
        before = time.process_time()
        clock.append(rounds(count))
        processor.append(1e3 * (time.process_time() - before) / count)
    return statistics.median(clock), min(processor)


def main():
    options = timing.parser(__doc__.splitlines()[0])
    options.add_argument("--model", choices=memories.MODELS, default="dnc")
    options.add_argument("--form", choices=("eager", "script", "compile", "unroll"), default="eager")
    options.add_argument("--weights", required=True, help="safetensors file that benchmark-memory_step wrote")
    options.add_argument("--outputs", help="write answers, gradients, and losses of the first updates")
    options.add_argument("--onednn", type=int, choices=(0, 1), default=1)
    options = options.parse_args()
    timing.use_threads(options.threads)
    torch.backends.mkldnn.set_flags(bool(options.onednn))

    tensors = load_file(options.weights)
    model = memories.MODELS[options.model](tensors)
    training = Training(model, options.form, tensors["x"], tensors["target"])
    if options.outputs:
        _, answer = training.backward()
        found = {"answer": answer.detach().clone(), **{n: g.clone() for n, g in model.gradients().items()}}
        record = [training.step() for _ in range(int(tensors["updates"][0]))]
        found["losses"], found["gradient_norms"] = (
            torch.tensor([float(pair[i]) for pair in record]) for i in (0, 1))
        save_file(found, options.outputs)
    if options.repeats > 0:
        total, processor = measure(training.step, options.repeats)
        T, B = tensors["x"].shape[:2]
        print(json.dumps({"model": options.model, "form": options.form, "threads": options.threads, "T": T, "B": B,
                          "total_ms": round(total, 4), "processor_ms": round(processor, 4),
                          "frames_per_second": round(1e3 * T * B / total), "torch": torch.__version__,
                          "onednn": options.onednn}), flush=True)


if __name__ == "__main__":
    main()
