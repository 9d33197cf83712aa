"""Runs the cases of onnx.backend.test in Lowtide and compares the outputs as onnx does.

    kernels [--only Conv,Gemm]

Each case ends in one verdict: passed; failed (wrong values, a crash, a refusal without a known reason); or not
supported, with the reason. `_expanded` cases, whose operators are spelt out in simpler ones, are counted apart.
`kernels.json` holds how many cases have passed. Exit code 1 if one failed or fewer pass than that, or if the page of
operators in the docs names other versions than onnx.
"""

import argparse
import glob
import json
import multiprocessing
import os
import re
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import lowtide
from models import case_of, conformance_models, dims_of, is_open, load_tensor

# How many cases have passed; raised by hand when more do.
RATCHET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.json")
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "operators.md")
PROCESSES = 2
SECONDS = 60
MOST_LETTERS = 300
# The defaults of onnx.backend.test; a case may say otherwise in its data.json.
TOLERANCE = {"rtol": 1e-3, "atol": 1e-7}
# Arrays of other types cannot be saved by numpy.
SAVED_TYPES = {
    getattr(TensorProto, name)
    for name in "FLOAT DOUBLE FLOAT16 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL".split()
}
# Cases whose expected values contradict the text of their operator.
WRAPS = "its data wraps around where the text saturates (ONNX Runtime leaves it out, too)"
DISPUTED = {"test_qlinearmatmul_2D_int8_float32": WRAPS, "test_qlinearmatmul_3D_int8_float32": WRAPS}
OPEN_TYPE = "elements of unknown or changing size"
VERDICTS = ["passed", "failed", "not supported"]
KINDS = ["plain", "expanded"]


@dataclass
class Outcome:
    case: str
    kind: str
    operators: list
    verdict: str
    reasons: list


# What a case needs.


def operators_of(graph):
    """Types of the operators of a graph and of the graphs inside it."""
    found = set()
    for node in graph.node:
        found.add(node.op_type)
        for attribute in node.attribute:
            inner = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs
            found.update(*map(operators_of, inner))
    return found


def unfit(info):
    """Why an input or output cannot pass through a .npy file, or None."""
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        return kind.removesuffix("_type") if kind else "an output without a type"
    element = info.type.tensor_type.elem_type
    if element in SAVED_TYPES:
        return None
    return f"type {TensorProto.DataType.Name(element).lower()}"


def case_inputs(model, data):
    """The tensors of a data set by name, without those that are weights of the model."""
    given = {tensor.name for tensor in model.graph.initializer}
    paths = [os.path.join(data, f"input_{index}.pb") for index in range(len(model.graph.input))]
    pairs = zip(model.graph.input, paths)
    return {info.name: load_tensor(path) for info, path in pairs if info.name not in given and os.path.exists(path)}


def is_shape_open(info):
    dims = dims_of(info)
    return dims is None or any(map(is_open, dims))


def flags_for(model, inputs, folder):
    """Writes inputs as .npy files; the flags that name them, and those that bind open shapes."""
    flags = []
    infos = {info.name: info for info in model.graph.input}
    for index, (name, tensor) in enumerate(inputs.items()):
        file = os.path.join(folder, f"input_{index}.npy")
        np.save(file, numpy_helper.to_array(tensor))
        flags += ["--input", f"{name}={file}"]
        # A scalar has no dimensions to state.
        if tensor.dims and is_shape_open(infos[name]):
            flags += ["--shape", f"{name}={','.join(map(str, tensor.dims))}"]
    return flags


# What came of it.


def mismatch(found, wanted, tolerance):
    """How an output differs from the one wanted, or None."""
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return f"is {found.dtype}{list(found.shape)}, wanted {wanted.dtype}{list(wanted.shape)}"
    if np.issubdtype(wanted.dtype, np.inexact):
        right = np.isclose(found, wanted, **tolerance, equal_nan=True)
    else:
        right = found == wanted
    if np.all(right):
        return None
    place = tuple(int(index) for index in np.argwhere(~right)[0])
    wrong = int((~right).sum())
    return f"has {wrong} of {wanted.size} wrong: {found[place]} at {list(place)}, wanted {wanted[place]}"


def first_mismatch(model, document, data, tolerance):
    found = {row["name"]: row for row in document["outputs"]}
    for index, info in enumerate(model.graph.output):
        path = os.path.join(data, f"output_{index}.pb")
        if not os.path.exists(path):
            continue
        if info.name not in found:
            return f"`{info.name}` is missing, found {sorted(found)}"
        wanted = numpy_helper.to_array(load_tensor(path))
        differs = mismatch(np.load(found[info.name]["file"]), wanted, tolerance)
        if differs:
            return f"`{info.name}` {differs}"
    return None


def refusal(answer, operators):
    """The verdict on a run without an answer: not supported if it says why in words that are known."""
    if answer.code == 2 and "no kernel" in answer.message:
        # Where there is a kernel for other cases, the name is followed by what this one lacks.
        named = [re.search(rf"\b{kind}\b(?: \([^)]*\))?", answer.message) for kind in operators]
        return "not supported", [f"no kernel: {found[0]}" for found in named if found] or [brief(answer.message)]
    if answer.code == 2 and OPEN_TYPE in answer.message:
        return "not supported", ["text inside, or a type that nothing tells"]
    return "failed", [f"exit code {answer.code}: {brief(answer.message)}"]


def brief(message):
    return " ".join(message.split())[:MOST_LETTERS]


def run_set(path, model, data, operators, tolerance):
    """Verdict and reasons for one data set of a case."""
    inputs = case_inputs(model, data)
    with tempfile.TemporaryDirectory() as folder:
        more = ["--save-outputs", os.path.join(folder, "outputs")]
        answer = lowtide.run(path, *flags_for(model, inputs, folder), *more, seconds=SECONDS)
        if answer.document is None:
            return refusal(answer, operators)
        differs = first_mismatch(model, answer.document, data, tolerance)
    return ("failed", [differs]) if differs else ("passed", [])


def tolerance_of(path):
    file = os.path.join(os.path.dirname(path), "data.json")
    if not os.path.exists(file):
        return TOLERANCE
    with open(file) as text:
        stated = json.load(text)
    return {key: stated.get(key, value) for key, value in TOLERANCE.items()}


def run_case(path):
    case, kind = case_of(path)
    model = onnx.load(path, load_external_data=False)
    operators = sorted(operators_of(model.graph))
    reasons = sorted(set(filter(None, map(unfit, [*model.graph.input, *model.graph.output]))))
    reasons += [DISPUTED[case]] if case in DISPUTED else []
    if reasons:
        return Outcome(case, kind, operators, "not supported", reasons)
    sets = sorted(glob.glob(os.path.join(os.path.dirname(path), "test_data_set_*")))
    verdicts = [run_set(path, model, data, operators, tolerance_of(path)) for data in sets]
    # The first that did not pass speaks for all.
    verdict, reasons = next((one for one in verdicts if one[0] != "passed"), ("passed", []))
    return Outcome(case, kind, operators, verdict, reasons)


# Tables.


def by_verdict(outcomes):
    counts = Counter((outcome.kind, outcome.verdict) for outcome in outcomes)
    lines = [f"| cases | {' | '.join(VERDICTS)} |\n|---|--:|--:|--:|"]
    lines += [f"| {kind} | {' | '.join(str(counts[kind, verdict]) for verdict in VERDICTS)} |" for kind in KINDS]
    return "\n".join(lines)


def by_reason(outcomes):
    """Counts of the cases that are not supported; one that lacks several things counts under each."""
    counts = defaultdict(Counter)
    for outcome in outcomes:
        for reason in outcome.reasons if outcome.verdict == "not supported" else []:
            counts[reason][outcome.kind] += 1
    lines = ["| not supported, as | plain | expanded |\n|---|--:|--:|"]
    for reason, kinds in sorted(counts.items(), key=lambda item: (-item[1].total(), item[0])):
        lines.append(f"| {reason} | {kinds['plain']} | {kinds['expanded']} |")
    return "\n".join(lines)


def by_operator(outcomes):
    """Counts of the cases that contain an operator, for those with any that passed."""
    counts = defaultdict(Counter)
    for outcome in outcomes:
        for operator in outcome.operators:
            counts[operator][outcome.kind, outcome.verdict] += 1
    head = " | ".join(["operator", *VERDICTS, *(f"expanded: {verdict}" for verdict in VERDICTS)])
    lines = [f"| {head} |\n|---{'|--:' * 6}|"]
    for operator, found in sorted(counts.items()):
        if any(found[kind, "passed"] for kind in KINDS):
            cells = [str(found[kind, verdict]) for kind in KINDS for verdict in VERDICTS]
            lines.append(f"| {operator} | {' | '.join(cells)} |")
    return "\n".join(lines)


def hold_ratchet(outcomes):
    """Whether as many cases pass as ever did."""
    with open(RATCHET) as file:
        least = json.load(file)
    passed = Counter(outcome.kind for outcome in outcomes if outcome.verdict == "passed")
    for kind in KINDS:
        if passed[kind] < least[kind]:
            print(f"fewer than before: {kind}: {passed[kind]} passed, wanted {least[kind]}")
        if passed[kind] > least[kind]:
            print(f"more than before: {kind}: {passed[kind]} passed, kernels.json says {least[kind]}: raise it")
    return all(passed[kind] >= least[kind] for kind in KINDS)


# The page of operators.


def stated_versions():
    """Versions by operator of the standard domain, as docs/operators.md lists them."""
    with open(PAGE) as file:
        text = file.read().split("## The standard domain")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| ([\d, ]+) \|", text, re.MULTILINE)
    return {kind: [int(version) for version in versions.split(", ")] for kind, versions in rows}


def hold_versions():
    """Whether the page says of each operator what onnx says, as far as this onnx goes."""
    wanted = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            wanted[schema.name].append(schema.since_version)
    newest = onnx.defs.onnx_opset_version()
    stated = {kind: [one for one in versions if one <= newest] for kind, versions in stated_versions().items()}
    wrong = [kind for kind in wanted if sorted(wanted[kind]) != stated.get(kind)]
    for kind in sorted(wrong):
        print(f"docs/operators.md: {kind} has versions {stated.get(kind)}, wanted {sorted(wanted[kind])}")
    return not wrong


# The command.


def chosen(paths, only):
    """The cases that contain one of these operators."""
    return [path for path in paths if only & operators_of(onnx.load(path, load_external_data=False).graph)]


def parse(arguments):
    parser = argparse.ArgumentParser(prog="kernels", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", help="run the cases that contain one of these operators, as in Conv,Gemm")
    return parser.parse_args(arguments)


def kernels(arguments):
    only = parse(arguments).only
    paths = chosen(conformance_models(), set(only.split(","))) if only else conformance_models()
    with multiprocessing.Pool(PROCESSES) as pool:
        outcomes = pool.map(run_case, paths, chunksize=8)
    failed = [outcome for outcome in outcomes if outcome.verdict == "failed"]
    print("".join(f"FAILED {outcome.case}: {'; '.join(outcome.reasons)}\n" for outcome in failed))
    print("\n\n".join([by_reason(outcomes), by_operator(outcomes), by_verdict(outcomes)]) + "\n")
    # Part of the cases says nothing about all of them.
    is_held = bool(only) or hold_ratchet(outcomes)
    return hold_versions() and is_held and not failed
