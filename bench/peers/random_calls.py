"""Runs random calls of operators in Lowtide and in ONNX Runtime, and compares the outputs.

    random [--only LSTM,GRU] [--cases N] [--seed S]

A generator makes a call from random numbers: a dictionary with `kind`, `domain`, `opset`, `attributes`, `inputs` (arrays,
or None where one is absent), `outputs` (names, or "" where one is not wanted) and `tolerance` (of an element, in units
of the larger of 1 and what is wanted). Families of operators add theirs to GENERATORS. What ONNX Runtime does not run
counts apart; what Lowtide does not run has failed. Each case has its own number: those that failed are printed,
the smallest first, and kept in `random.json`, which is run first every time. Exit code 1 if one failed.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
import zlib
from collections import Counter
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
from onnx import helper

import lowtide
import recurrent

GENERATORS = {**recurrent.GENERATORS}

KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "random.json")
PROCESSES = 2
SECONDS = 60
MOST_SHOWN = 5
LARGE = 1e4


@dataclass
class Outcome:
    kind: str
    seed: int
    verdict: str
    message: str = ""
    size: int = 0


def generated(kind, seed):
    # The name, too, so that operators do not get the same numbers.
    return GENERATORS[kind](np.random.default_rng([zlib.crc32(kind.encode()), seed]))


def model_of(call):
    """A model with one operator, and its inputs by name."""
    names = ["" if one is None else f"x{at}" for at, one in enumerate(call["inputs"])]
    arrays = {name: one for name, one in zip(names, call["inputs"]) if name}
    node = helper.make_node(
        call["kind"], names, call["outputs"], domain=call["domain"], **call["attributes"]
    )
    info = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in arrays.items()
    ]
    # ONNX Runtime packs some weights, and then wants them as weights.
    weights = [onnx.numpy_helper.from_array(arrays[name], name) for name in arrays if name != "x0"]
    outputs = [onnx.ValueInfoProto(name=name) for name in call["outputs"] if name]
    graph = helper.make_graph([node], "random", info[:1], outputs, weights)
    domains = {"": call["opset"]} | ({call["domain"]: 1} if call["domain"] else {})
    opsets = [helper.make_opsetid(*row) for row in domains.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), {"x0": arrays["x0"]}


def theirs(model, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, inputs)))


def ours(model, inputs, folder):
    """Outputs by name; or None and a message."""
    path, flags = os.path.join(folder, "model.onnx"), []
    onnx.save(model, path)
    for name, array in inputs.items():
        np.save(os.path.join(folder, f"{name}.npy"), array)
        flags += ["--input", f"{name}={folder}/{name}.npy"]
    answer = lowtide.run(path, *flags, "--save-outputs", os.path.join(folder, "outputs"), seconds=SECONDS)
    if answer.document is None:
        return None, f"exit code {answer.code}: {' '.join(answer.message.split())[:300]}"
    return {row["name"]: np.load(row["file"]) for row in answer.document["outputs"]}, ""


def is_large(array):
    """Whether what was calculated grew until small differences do not stay small."""
    return np.issubdtype(array.dtype, np.inexact) and not bool(np.all(np.abs(array) < LARGE))


def differs(found, wanted, tolerance):
    """What is wrong with an output, or None."""
    if found is None or (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        return f"is {None if found is None else (found.dtype, found.shape)}, wanted {(wanted.dtype, wanted.shape)}"
    if not np.issubdtype(wanted.dtype, np.inexact):
        wrong = int((found != wanted).sum())
        return f"differs in {wrong} of {wanted.size} elements" if wrong else None
    with np.errstate(invalid="ignore"):
        gap = np.abs(found - wanted) / np.maximum(1, np.abs(wanted))
    right = (found == wanted) | (np.isnan(found) & np.isnan(wanted)) | (gap <= tolerance)
    if right.all():
        return None
    place = tuple(int(index) for index in np.argwhere(~right)[0])
    return f"has {int((~right).sum())} of {wanted.size} wrong: {found[place]} at {place}, wanted {wanted[place]}"


def described(call):
    shapes = [None if one is None else f"{one.dtype}{list(one.shape)}" for one in call["inputs"]]
    return f"{shapes} -> {call['outputs']} {call['attributes']} opset {call['opset']}"


def run_case(case):
    kind, seed = case
    call = generated(kind, seed)
    size = sum(one.size for one in call["inputs"] if one is not None)
    model, inputs = model_of(call)
    try:
        wanted = theirs(model, inputs)
    except Exception as error:  # whatever it says, there is nothing to compare with
        return Outcome(kind, seed, "not run by ONNX Runtime", " ".join(str(error).split())[:200], size)
    if any(is_large(one) for one in wanted.values()):
        return Outcome(kind, seed, "not compared", "values beyond all bounds", size)
    with tempfile.TemporaryDirectory() as folder:
        found, message = ours(model, inputs, folder)
    if found is None:
        return Outcome(kind, seed, "failed", f"{message}\n    {described(call)}", size)
    wrong = [f"`{name}` {text}" for name, one in wanted.items() if (text := differs(found.get(name), one, call["tolerance"]))]
    if wrong:
        return Outcome(kind, seed, "failed", f"{'; '.join(wrong)}\n    {described(call)}", size)
    return Outcome(kind, seed, "equal", "", size)


def kept():
    """Seeds that failed once, by operator."""
    with open(KEPT) as file:
        return json.load(file)


def keep(failed):
    seeds = {kind: set(found) for kind, found in kept().items()}
    for outcome in failed:
        seeds.setdefault(outcome.kind, set()).add(outcome.seed)
    with open(KEPT, "w") as file:
        rows = [f'  "{kind}": {sorted(found)}' for kind, found in sorted(seeds.items())]
        file.write("{\n" + ",\n".join(rows) + "\n}\n")


def show(outcomes):
    for kind in sorted({outcome.kind for outcome in outcomes}):
        of_kind = [outcome for outcome in outcomes if outcome.kind == kind]
        print(f"{kind}: {dict(Counter(outcome.verdict for outcome in of_kind))}")
        reasons = Counter(outcome.message for outcome in of_kind if outcome.verdict.startswith("not"))
        print("".join(f"  {count} x {reason}\n" for reason, count in reasons.most_common(3)), end="")
        failed = sorted((one for one in of_kind if one.verdict == "failed"), key=lambda one: one.size)
        for one in failed[:MOST_SHOWN]:
            print(f"  FAILED seed {one.seed}: {one.message}")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="random", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", help="these operators, as in LSTM,GRU")
    parser.add_argument("--cases", type=int, default=100, help="for each operator")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first case")
    return parser.parse_args(arguments)


def random_calls(arguments):
    options = parse(arguments)
    only = set(options.only.split(",")) if options.only else set(GENERATORS)
    unknown = only - set(GENERATORS)
    if unknown:
        print(f"no generator of {', '.join(sorted(unknown))}; there are {', '.join(sorted(GENERATORS))}")
        return False
    before = {kind: seeds for kind, seeds in kept().items() if kind in only}
    cases = [(kind, seed) for kind in sorted(only) for seed in range(options.seed, options.seed + options.cases)]
    cases = list(dict.fromkeys([(kind, seed) for kind in sorted(before) for seed in before[kind]] + cases))
    with multiprocessing.Pool(PROCESSES) as pool:
        outcomes = pool.map(run_case, cases, chunksize=4)
    show(outcomes)
    failed = [outcome for outcome in outcomes if outcome.verdict == "failed"]
    keep(failed)
    return not failed
