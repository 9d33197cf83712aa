"""Random calls of recurrent layers: shapes, directions, lengths, optional inputs, activations, peepholes, clips."""

import numpy as np

GATES = {"LSTM": 4, "DynamicQuantizeLSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = {"LSTM": 3, "DynamicQuantizeLSTM": 3, "GRU": 2, "RNN": 1}
# What ONNX Runtime has, with whether it takes alpha and beta.
ACTIVATIONS = {
    "Sigmoid": (0, 0), "Tanh": (0, 0), "Relu": (0, 0), "Softsign": (0, 0), "Softplus": (0, 0), "LeakyRelu": (1, 0),
    "ThresholdedRelu": (1, 0), "Elu": (1, 0), "Affine": (1, 1), "ScaledTanh": (1, 1), "HardSigmoid": (1, 1),
}
# A quantised state has this many steps between its least and its largest value.
STEPS = 255


def attributes(rng, kind, directions):
    found = {}
    if rng.random() < 0.4:
        names = list(rng.choice(list(ACTIVATIONS), FUNCTIONS[kind] * directions))
        found["activations"] = [str(name) for name in names]
        for at, name in enumerate(["activation_alpha", "activation_beta"]):
            count = sum(ACTIVATIONS[one][at] for one in names)
            if count:
                found[name] = [float(value) for value in rng.uniform(0.1, 0.9, count)]
    if rng.random() < 0.2:
        found["clip"] = float(rng.uniform(0.3, 1.5))
    if kind == "GRU":
        found["linear_before_reset"] = int(rng.integers(2))
    if "LSTM" in kind and rng.random() < 0.2:
        found["input_forget"] = 1
    return found


def lengths(rng, steps, batch):
    if rng.random() < 0.6:
        return None
    return rng.integers(0 if rng.random() < 0.2 else min(1, steps), steps + 1, batch).astype(np.int32)


def weights(rng, kind, directions, hidden, size):
    """The inputs that are weights, by position."""
    rows = GATES[kind] * hidden
    if kind != "DynamicQuantizeLSTM":
        shape = (directions, rows)
        return {1: rng.normal(0, 0.5, (*shape, size)), 2: rng.normal(0, 0.5, (*shape, hidden))}
    dtype = np.int8 if rng.random() < 0.5 else np.uint8
    low, high = (-60, 60) if dtype == np.int8 else (68, 188)
    scales = (directions, rows) if rng.random() < 0.5 else (directions,)
    found = {}
    for at, inner in [(1, size), (2, hidden)]:
        found[at] = rng.integers(low, high, (directions, inner, rows)).astype(dtype)
        found[6 + 2 * at] = rng.uniform(0.005, 0.01, scales)
        # ONNX Runtime takes no zero points of columns but 0 of signed and 128 of unsigned ones.
        zero = 0 if dtype == np.int8 else 128
        found[7 + 2 * at] = np.full(scales, zero if len(scales) > 1 else zero + rng.integers(-5, 6), dtype)
    return found


def call(rng, kind):
    directions = int(rng.integers(1, 3))
    steps, batch, size, hidden = (int(rng.integers(1, most)) for most in (12, 5, 20, 20))
    if rng.random() < 0.1:
        steps, batch, hidden = int(rng.integers(30, 80)), int(rng.integers(1, 40)), int(rng.integers(20, 70))
    inputs = {0: rng.normal(0, 1, (steps, batch, size)), **weights(rng, kind, directions, hidden, size)}
    state = (directions, batch, hidden)
    if rng.random() < 0.7:
        inputs[3] = rng.normal(0, 0.5, (directions, 2 * GATES[kind] * hidden))
    if (lens := lengths(rng, steps, batch)) is not None:
        inputs[4] = lens
    if rng.random() < 0.4:
        inputs[5] = rng.normal(0, 1, state)
    if "LSTM" in kind and rng.random() < 0.4:
        inputs[6] = rng.normal(0, 1, state)
    if "LSTM" in kind and rng.random() < 0.3:
        inputs[7] = rng.normal(0, 0.5, (directions, 3 * hidden))
    outputs = ["y", "h", "c"] if "LSTM" in kind else ["y", "h"]
    kept = [name if rng.random() < 0.8 else "" for name in outputs]
    direction = "bidirectional" if directions == 2 else str(rng.choice(["forward", "reverse"]))
    return {
        "inputs": [inputs.get(at) for at in range(max(inputs) + 1)],
        "outputs": kept if any(kept) else outputs,
        "attributes": {"hidden_size": hidden, "direction": direction, **attributes(rng, kind, directions)},
    }


def of(kind):
    def generate(rng):
        made = call(rng, kind)
        single = [one.astype(np.float32) if one is not None and one.dtype == np.float64 else one for one in made["inputs"]]
        quantised = kind == "DynamicQuantizeLSTM"
        return {
            **made, "inputs": single, "kind": kind, "domain": "com.microsoft" if quantised else "",
            "opset": int(rng.choice([7, 11, 14, 21])),
            "tolerance": 1 / STEPS if quantised else 1e-4,
        }
    return generate


GENERATORS = {kind: of(kind) for kind in GATES}
