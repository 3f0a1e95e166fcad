# SPDX-License-Identifier: MIT
"""One training step (forward, backward, clip, Adam) of the models of memories.py and memories_today.py, beside
benchmark-memory_step.

--weights names the file that benchmark-memory_step wrote. --outputs writes the answers and gradients of the first step,
and loss and gradient norm of each of the first updates. --form says how a step of time is run:
    eager      the function as it is; of lstm torch.nn.LSTM
    script     through torch.jit.script
    compile    through torch.compile, which needs a C++ compiler: one graph a step of time
    unroll     the loop over T as well in one compiled graph (a minute or more of compiling)
    cell       of lstm with --acting: torch.nn.LSTMCell
    scan       of the memories of today: the form without a loop over T
    scan_compile   that form in one compiled graph
--acting takes one step of time instead, as an agent does between two observations: without gradients, the state carried
by the caller; compile then holds the cell and the answer too. Its outputs are the answers of T such steps.
Adam is fused. One JSON line: the median by the clock and the least processor time of --repeats samples of about 20 ms.
"""

import json
import statistics
import time

import torch
from safetensors.torch import load_file, save_file

import memories
import memories_today
import timing

MODELS = {**memories.MODELS, **memories_today.MODELS}
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
        elif form in ("unroll", "scan_compile"):
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


class Acting:
    """Single steps over x [T, B, X], and round again."""

    def __init__(self, model, form, x):
        if form in ("cell", "compile") and hasattr(model, "use_cell"):
            model.use_cell()
        self.model, self.x, self.t = model, x.unbind(0), 0
        self.first = self.state = model.begin(x)
        self.act = torch.compile(model.act, fullgraph=True, dynamic=False) if form == "compile" else model.act
        if form == "script":
            model.step = torch.jit.script(model.step)

    @torch.inference_mode()
    def step(self):
        answer, self.state = self.act(self.x[self.t], self.first if self.t == 0 else self.state)
        self.t = (self.t + 1) % len(self.x)
        return answer


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
    options.add_argument("--model", choices=MODELS, default="dnc")
    options.add_argument("--form", default="eager",
                         choices=("eager", "script", "compile", "unroll", "cell", "scan", "scan_compile"))
    options.add_argument("--acting", action="store_true", help="one step of time, forward alone")
    options.add_argument("--weights", required=True, help="safetensors file that benchmark-memory_step wrote")
    options.add_argument("--outputs", help="write answers, gradients, and losses of the first updates")
    options.add_argument("--onednn", type=int, choices=(0, 1), default=1)
    options = options.parse_args()
    timing.use_threads(options.threads)
    torch.backends.mkldnn.set_flags(bool(options.onednn))

    tensors = load_file(options.weights)
    model = MODELS[options.model](tensors)
    if options.model in memories_today.MODELS:
        model.parallel, model.compiled = options.form.startswith("scan"), options.form not in ("eager", "scan")
    elif options.form.startswith("scan"):
        raise SystemExit(f"{options.model} has no form '{options.form}'")
    T, B = tensors["x"].shape[:2]
    if options.acting:
        if options.form in ("unroll", "scan", "scan_compile") or (options.form == "cell" and options.model != "lstm"):
            raise SystemExit(f"--acting of {options.model} has no form '{options.form}'")
        T, run = 1, Acting(model, options.form, tensors["x"])
        if options.outputs:
            answers = [run.step().clone() for _ in range(len(tensors["x"]))]
            save_file({"answer": torch.stack(answers)}, options.outputs)
    else:
        if options.form == "cell":
            raise SystemExit("the form 'cell' is one of --acting alone")
        run = Training(model, options.form, tensors["x"], tensors["target"])
        if options.outputs:
            _, answer = run.backward()
            found = {"answer": answer.detach().clone(), **{n: g.clone() for n, g in model.gradients().items()}}
            record = [run.step() for _ in range(int(tensors["updates"][0]))]
            found["losses"], found["gradient_norms"] = (
                torch.tensor([float(pair[i]) for pair in record]) for i in (0, 1))
            save_file(found, options.outputs)
    if options.repeats > 0:
        total, processor = measure(run.step, options.repeats)
        print(json.dumps({"model": options.model, "form": options.form, "threads": options.threads, "T": T, "B": B,
                          "total_ms": round(total, 5), "processor_ms": round(processor, 5),
                          "frames_per_second": round(1e3 * T * B / total), "torch": torch.__version__,
                          "onednn": options.onednn}), flush=True)


if __name__ == "__main__":
    main()
