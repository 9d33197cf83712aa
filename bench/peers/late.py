"""Runs models whose sizes depend on values in Lowtide and in ONNX Runtime, on inputs of many sizes.

    late [--inputs N]

A detector with NonMaxSuppression in front of its last layers, one that works on the rows that a NonZero finds and puts
them back, and two such branches side by side. Their inputs are open, so most of each model lies in the pool. Each input
is run on 1, 2 and 8 workers, with freed bytes poisoned and not: all bits equal, within 1e-4 of ONNX Runtime's outputs.
Exit code 1 if something differs or does not run.
"""

import argparse
import os
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import lowtide

OPSET, IR = 17, 8
TOLERANCE = 1e-4
SECONDS = 120
WAYS = [("--workers", str(workers), *guard) for workers in (1, 2, 8) for guard in ((), ("--guard",))]


class Builder:
    """Collects nodes and weights of a model."""

    def __init__(self, seed):
        self.nodes, self.weights = [], []
        self.random = np.random.default_rng(seed)

    def __call__(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind.lower()}_{len(self.nodes)}_{at}" for at in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def weight(self, values):
        name = f"weight_{len(self.weights)}"
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def floats(self, *dims):
        return self.weight(self.random.standard_normal(dims).astype(np.float32) / 2)

    def integers(self, *values):
        return self.weight(np.array(values, np.int64))

    def model(self, inputs, outputs):
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in inputs.items()]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "late", infos, ends, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)


def detector():
    """Convolutions, boxes and scores, the boxes that suppression leaves, and a layer on what lies in them."""
    b = Builder(1)
    x = b("Relu", b("Conv", "image", b.floats(8, 3, 3, 3), strides=[4, 4], pads=[1, 1, 1, 1]))
    x = b("Relu", b("Conv", x, b.floats(8, 8, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]))
    flat = b.integers(1, 0, -1)

    def head(channels):
        return b("Reshape", b("Conv", x, b.floats(channels, 8, 1, 1)), flat)

    centre, size = b("Split", b("Transpose", head(4), perm=[0, 2, 1]), outputs=2, axis=2)
    size = b("Exp", b("Clip", size, b.weight(np.float32(-2)), b.weight(np.float32(1))))
    boxes = b("Concat", b("Sub", centre, size), b("Add", centre, size), axis=2)
    # Far from 1, where the order of scores would hang on their last bits.
    scores = b("Sigmoid", b("Mul", head(3), b.weight(np.float32(0.05))))
    bounds = [b.integers(20), b.weight(np.array([0.4], np.float32)), b.weight(np.array([0.51], np.float32))]
    kept = b("NonMaxSuppression", boxes, scores, *bounds)
    best = b("GatherND", scores, kept)
    box = b("Gather", kept, b.weight(np.int64(2)), axis=1)
    found = b("Gather", boxes, box, axis=1)
    features = b("MatMul", found, b.floats(4, 16))
    return b.model({"image": [1, 3, "h", "w"]}, [best, found, b("Tanh", features)])


def rows_found(b, x, bound):
    """Some rows of x through two layers, and back to where they were."""
    first = b("Gather", x, b.weight(np.int64(0)), axis=1)
    which = b("Transpose", b("NonZero", b("Greater", first, b.weight(np.float32(bound)))), perm=[1, 0])
    rows = b("GatherND", x, which)
    y = b("Softmax", b("MatMul", b("Relu", b("MatMul", rows, b.floats(16, 32))), b.floats(32, 16)), axis=-1)
    return b("ScatterND", x, which, y), y


def sparse():
    b = Builder(2)
    x = b("LayerNormalization", "x", b.floats(16), axis=-1)
    whole, rows = rows_found(b, x, 0.1)
    return b.model({"x": ["n", 16]}, [b("Add", whole, "x"), rows])


def branches():
    b = Builder(3)
    left, few = rows_found(b, "x", 0.5)
    right, many = rows_found(b, "x", -0.5)
    both = b("Concat", few, many, axis=0)
    return b.model({"x": ["n", 16]}, [b("MatMul", both, b.floats(16, 8)), b("Mul", left, right)])


def images(random):
    height, width = random.integers(8, 160, 2)
    return {"image": random.standard_normal((1, 3, height, width)).astype(np.float32)}


def vectors(random):
    return {"x": random.standard_normal((random.integers(0, 400), 16)).astype(np.float32)}


MODELS = {"detector": (detector, images), "sparse": (sparse, vectors), "branches": (branches, vectors)}


def ours(model, given, folder, way):
    """The outputs, or why there are none."""
    flags = list(way)
    for name, array in given.items():
        path = os.path.join(folder, f"{name}.npy")
        np.save(path, array)
        flags += ["--input", f"{name}={path}"]
    saved = os.path.join(folder, "outputs")
    answer = lowtide.run(model, "--save-outputs", saved, *flags, seconds=SECONDS)
    if answer.document is None:
        return None, answer.message
    return [np.load(row["file"]) for row in answer.document["outputs"]], None


def fault(found, wanted):
    """What differs from ONNX Runtime's outputs, if anything does."""
    for at, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if one.shape != other.shape:
            return f"output {at} has shape {one.shape}, wanted {other.shape}"
        scale = max(1.0, np.abs(other).max(initial=0))
        error = np.abs(one - other).max(initial=0) / scale
        if not error <= TOLERANCE:
            return f"output {at} differs by {error:.2g}"
    return None


def compare(name, count):
    make, draw = MODELS[name]
    faults, sizes, failed = [], set(), 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"{name}.onnx")
        onnx.save(make(), path)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        for seed in range(count):
            given = draw(np.random.default_rng(seed))
            wanted = session.run(None, given)
            sizes.update(tuple(output.shape for output in wanted[:1]))
            first, faults_before = None, len(faults)
            for way in WAYS:
                found, message = ours(path, given, folder, way)
                message = message or fault(found, wanted)
                first = found if first is None else first
                if message is None and not all(map(np.array_equal, found, first)):
                    message = "other bits than in the first way"
                if message is not None:
                    faults.append(f"  {name}, input {seed}, {' '.join(way)}: {message}")
            failed += len(faults) > faults_before
    print(f"| {name} | {count - failed} of {count} | {len(WAYS)} | {len(sizes)} |")
    return faults


def late(args):
    parser = argparse.ArgumentParser(prog="peers late")
    parser.add_argument("--inputs", type=int, default=12, help="how many of each model")
    count = parser.parse_args(args).inputs
    print("| model | inputs right | ways | sizes of the first output |\n|---|--:|--:|--:|")
    faults = [line for name in MODELS for line in compare(name, count)]
    print("\n".join(faults))
    return not faults
