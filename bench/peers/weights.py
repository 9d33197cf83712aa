"""Writes weights back into a model that was stripped of them: random values, seeded by name, that suit their use.

A stripped model has its weights as graph inputs, whose names stand in its metadata as `weight_inputs`. Runtimes
fold and pack only weights that they know before the run, so for comparisons they become initializers again. The
values keep the scale of what flows through: a network whose activations vanish gives the right zeros whatever is
wrong with its kernels, and one where they explode gives infinities.
"""

import json
import os
import zlib

import numpy as np
import onnx
from onnx import numpy_helper

from models import PEERS, dims_of

# What each input of an operator is to it; what is not listed is added to something.
USES = {
    "Conv": ["", "factor", "bias"],
    "ConvTranspose": ["", "factor", "bias"],
    "Gemm": ["factor", "factor", "bias"],
    "MatMul": ["factor", "factor"],
    "LSTM": ["", "factor", "factor", "bias"],
    "BatchNormalization": ["", "scale", "bias", "bias", "variance"],
    "InstanceNormalization": ["", "scale", "bias"],
    "LayerNormalization": ["", "scale", "bias"],
    "Mul": ["scale", "scale"],
    # Scales and biases of a group normalization that was exported in parts.
    "Unsqueeze": ["scale"],
    "Gather": ["table"],
}


def attribute(node, name, default):
    found = [onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name]
    return found[0] if found else default


def fan_in(node, place, dims):
    """How many products an output sums up."""
    if node.op_type == "ConvTranspose":
        steps = np.prod(attribute(node, "strides", [1]))
        return dims[0] * np.prod(dims[2:]) / attribute(node, "group", 1) / steps
    if node.op_type == "Conv":
        return np.prod(dims[1:])
    if node.op_type == "LSTM":
        return dims[-1]
    is_flipped = attribute(node, "transB" if place else "transA", 0)
    return dims[-2] if bool(place) != bool(is_flipped) else dims[-1]


def draw(name, dims, use, fan, gain):
    noise = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(dims, np.float32)
    if use == "factor":
        return noise * np.float32(np.sqrt(gain / fan))
    if use == "scale":
        return 1 + noise / 10
    if use == "variance":
        return np.abs(noise) / 2 + 0.5
    return noise if use == "table" else noise / 20


def first_uses(model):
    """The first operator that reads each tensor, and as which of its inputs."""
    uses = {}
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            uses.setdefault(name, (node, place))
    return uses


def weight(info, node, place):
    dims, uses = dims_of(info), USES.get(node.op_type, [])
    use = uses[place] if place < len(uses) else ""
    fan = fan_in(node, place, dims) if use == "factor" else 1
    # Behind a convolution mostly stands a Relu, which halves the variance; behind a product mostly none.
    gain = 2 if node.op_type.startswith("Conv") else 1
    dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    return numpy_helper.from_array(np.asarray(draw(info.name, dims, use, fan, gain)).astype(dtype), info.name)


def write_back(model):
    """Makes the stripped weights initializers again."""
    stripped = set(json.loads({p.key: p.value for p in model.metadata_props}["weight_inputs"]))
    uses = first_uses(model)
    inputs = list(model.graph.input)
    given = [info for info in inputs if info.name in stripped]
    model.graph.initializer.extend(weight(info, *uses[info.name]) for info in given if info.name in uses)
    del model.graph.input[:]
    model.graph.input.extend(info for info in inputs if info.name not in stripped)
    kept = [p for p in model.metadata_props if p.key != "weight_inputs"]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)


def with_weights(path):
    """The path of the model with all its weights: its own, or that of a copy, written once."""
    with open(path, "rb") as file:
        data = file.read()
    model = onnx.ModelProto.FromString(data)
    if all(p.key != "weight_inputs" for p in model.metadata_props):
        return path
    # A copy is as good as the file and the rules that it was made from.
    with open(__file__, "rb") as rules:
        key = zlib.crc32(rules.read(), zlib.crc32(data))
    folder = os.path.join(PEERS, "weights")
    copy = os.path.join(folder, f"{os.path.basename(path)[:-5]}-{key:08x}.onnx")
    if not os.path.exists(copy):
        os.makedirs(folder, exist_ok=True)
        write_back(model)
        onnx.save(model, copy + ".part")
        os.replace(copy + ".part", copy)
    return copy
