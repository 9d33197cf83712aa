"""Runs a model in ONNX Runtime, on one thread, in a process of its own, so that its memory can be told.

    ort_worker.py MODEL --input name=file.npy ... --save-outputs DIR --repeat N [--profile]

Prints a JSON document like that of `lowtide run`: `latency_ms`, `outputs`, `rss_loaded_bytes` (resident once the
model is loaded), `rss_first_bytes` and `rss_steady_bytes` (the most above that in the first run and in the further
ones). With --profile the graph is run as the file states it, and `profile` has the time of each operator type.
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict

import numpy as np
import onnxruntime as ort


def session(model, folder, profile):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    levels = ort.GraphOptimizationLevel
    # Operators that were fused could not be held against others.
    options.graph_optimization_level = levels.ORT_DISABLE_ALL if profile else levels.ORT_ENABLE_ALL
    options.enable_profiling = profile
    options.profile_file_prefix = os.path.join(folder, "profile")
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def resident(field):
    """VmRSS or VmHWM (the most there was) of this process, in bytes."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(field))
    return int(line.split()[1]) * 1024


def forget_most():
    """Makes VmHWM begin again at what is resident now."""
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def timed(runner, inputs):
    start = time.perf_counter()
    outputs = runner.run(None, inputs)
    return outputs, (time.perf_counter() - start) * 1e3


def measure(runner, inputs, repeat):
    """Outputs and figures. The first run, in which buffers are made, counts for memory but not for time."""
    forget_most()
    loaded = resident("VmRSS")
    outputs, _ = timed(runner, inputs)
    first = resident("VmHWM") - loaded
    forget_most()
    times = [timed(runner, inputs)[1] for _ in range(repeat)]
    steady = resident("VmHWM") - loaded
    latency = {"min": min(times), "median": statistics.median(times)}
    memory = {"rss_loaded_bytes": loaded, "rss_first_bytes": first, "rss_steady_bytes": steady}
    return outputs, {"latency_ms": latency, **memory}


def by_type(events):
    """The median over runs of the time that each type of operator takes in one, without the first run."""
    runs = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["name"] == "model_run")[1:]
    sums = defaultdict(lambda: [0] * len(runs))
    counts = defaultdict(int)
    for event in events:
        if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time"):
            continue
        inside = [index for index, (start, end) in enumerate(runs) if start <= event["ts"] <= end]
        for index in inside:
            sums[event["args"]["op_name"]][index] += event["dur"]
            counts[event["args"]["op_name"]] += index == 0
    return [
        {"type": kind, "count": counts[kind], "ms": statistics.median(times) / 1e3} for kind, times in sums.items()
    ]


def save(names, outputs, folder):
    rows = []
    for index, (name, value) in enumerate(zip(names, outputs)):
        file = os.path.join(folder, f"{index}.npy")
        np.save(file, value)
        rows.append({"name": name, "dtype": str(value.dtype), "shape": list(value.shape), "file": file})
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--save-outputs", required=True)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    inputs = {name: np.load(file) for name, _, file in (given.rpartition("=") for given in options.input)}
    with tempfile.TemporaryDirectory() as folder:
        runner = session(options.model, folder, options.profile)
        outputs, figures = measure(runner, inputs, options.repeat)
        if options.profile:
            with open(runner.end_profiling()) as file:
                figures["profile"] = by_type(json.load(file))
    os.makedirs(options.save_outputs, exist_ok=True)
    names = [output.name for output in runner.get_outputs()]
    json.dump({**figures, "outputs": save(names, outputs, options.save_outputs)}, sys.stdout)


if __name__ == "__main__":
    main()
