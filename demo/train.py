"""Trains a small irregular image classifier on scikit-learn's 8x8 digits and writes it as ONNX.

The network is a table of steps, each a layer with the names of what it reads and writes:

    image -> stem (16x16) -> fan of 4 branches (8x8) -> dense cell (8x8) -> fan of 3 branches (4x4) -> head

Three walks read the table: `forward` downwards, `backward` upwards, `export` to an ONNX graph. A layer keeps what
its backward pass needs from the last forward pass, and leaves gradients beside its weights.

Images lie as (batch, row, column, channel) here, so that a 1x1 convolution is one matrix product; ONNX wants
(batch, channel, row, column), which only the `export` methods know.
"""

import os
import struct
import zlib
from dataclasses import dataclass

# Sums depend on how threads share them: with one thread, the bytes do not depend on the number of cores.
# numpy reads this when it is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import onnx
from onnx import helper, numpy_helper
from sklearn.datasets import load_digits

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 7
TEST_IMAGES = 360
EPOCHS = 14
BATCH = 32
RATE = 3e-3


# Windows: what each output of a convolution sees. A kernel of one sees each pixel, and nothing need be copied.


def windows(padded, kernel, stride, rows, columns):
    """For each place in the kernel, the strided view of all the pixels that it meets."""
    for row in range(kernel):
        for column in range(kernel):
            last_row, last_column = row + stride * rows, column + stride * columns
            yield padded[:, row:last_row:stride, column:last_column:stride]


def gather(x, kernel, stride, pad):
    """(n, h, w, c) to (n, rows, columns, kernel * kernel * c): the window of each output as one row."""
    if kernel == 1:
        return x
    count, height, width, channels = x.shape
    rows, columns = ((side + 2 * pad - kernel) // stride + 1 for side in (height, width))
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    seen = np.empty((count, rows, columns, kernel * kernel, channels), x.dtype)
    for place, view in enumerate(windows(padded, kernel, stride, rows, columns)):
        seen[:, :, :, place] = view
    return seen.reshape(count, rows, columns, -1)


def scatter(seen, shape, kernel, stride, pad):
    """The transpose of `gather`: adds each window back to where it was taken from."""
    if kernel == 1:
        return seen
    count, height, width, channels = shape
    rows, columns = seen.shape[1:3]
    padded = np.zeros((count, height + 2 * pad, width + 2 * pad, channels), seen.dtype)
    seen = seen.reshape(count, rows, columns, kernel * kernel, channels)
    for place, view in enumerate(windows(padded, kernel, stride, rows, columns)):
        view += seen[:, :, :, place]
    return padded[:, pad:pad + height, pad:pad + width]


# Layers.


def he(rng, fan_in, shape):
    """Random weights that keep the scale of activations through a Relu."""
    return (rng.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)


def rows_of(x):
    return x.reshape(-1, x.shape[-1])


def times(x, matrix):
    """Each row of `x` by `matrix`, as one large product instead of one for each image row."""
    return (rows_of(x) @ matrix).reshape(*x.shape[:-1], -1)


class Layer:
    """Without weights, unless a subclass says otherwise."""

    weights = ()
    gradients = ()

    def export(self):
        """Operator type, attributes, and the weights by name."""
        return type(self).__name__, {}, {}


class Conv(Layer):
    def __init__(self, rng, inputs, outputs, kernel=1):
        weight = he(rng, kernel * kernel * inputs, (kernel * kernel * inputs, outputs))
        self.weights = [weight, np.zeros(outputs, np.float32)]
        self.kernel = kernel

    def forward(self, x):
        self.shape, self.seen = x.shape, gather(x, self.kernel, 1, self.kernel // 2)
        return times(self.seen, self.weights[0]) + self.weights[1]

    def backward(self, gradient):
        self.gradients = [rows_of(self.seen).T @ rows_of(gradient), rows_of(gradient).sum(0)]
        return [scatter(times(gradient, self.weights[0].T), self.shape, self.kernel, 1, self.kernel // 2)]

    def export(self):
        square = self.weights[0].reshape(self.kernel, self.kernel, -1, len(self.weights[1]))
        attributes = {"kernel_shape": [self.kernel] * 2, "pads": [self.kernel // 2] * 4}
        return "Conv", attributes, {"weight": square.transpose(3, 2, 0, 1), "bias": self.weights[1]}


class Depthwise(Layer):
    """A kernel of its own for each channel, in steps of two pixels: halves height and width."""

    def __init__(self, rng, channels, kernel):
        places = kernel * kernel
        self.weights = [he(rng, places, (places, channels)), np.zeros(channels, np.float32)]
        self.kernel = kernel

    def views(self, padded):
        sides = ((side - self.kernel + 1) // 2 for side in padded.shape[1:3])
        return windows(padded, self.kernel, 2, *sides)

    def forward(self, x):
        pad = self.kernel // 2
        self.padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        return sum(map(np.multiply, self.views(self.padded), self.weights[0])) + self.weights[1]

    def backward(self, gradient):
        out, pad = np.zeros_like(self.padded), self.kernel // 2
        for view, weight in zip(self.views(out), self.weights[0]):
            view += gradient * weight
        products = [np.einsum("nhwc,nhwc->c", view, gradient) for view in self.views(self.padded)]
        self.gradients = [np.stack(products), rows_of(gradient).sum(0)]
        return [out[:, pad:-pad, pad:-pad]]

    def export(self):
        channels, pad = len(self.weights[1]), self.kernel // 2
        weight = self.weights[0].T.reshape(channels, 1, self.kernel, self.kernel)
        attributes = {"kernel_shape": [self.kernel] * 2, "strides": [2, 2], "pads": [pad] * 4, "group": channels}
        return "Conv", attributes, {"weight": weight, "bias": self.weights[1]}


class ConvTranspose(Layer):
    """Doubles height and width: a convolution in steps of two, with its two passes exchanged."""

    def __init__(self, rng, inputs, outputs):
        # Each output pixel sees four of the sixteen places of the kernel.
        self.weights = [he(rng, 4 * inputs, (inputs, 16 * outputs)), np.zeros(outputs, np.float32)]

    def forward(self, x):
        self.x = x
        count, height, width, _ = x.shape
        shape = count, 2 * height, 2 * width, len(self.weights[1])
        return scatter(times(x, self.weights[0]), shape, 4, 2, 1) + self.weights[1]

    def backward(self, gradient):
        seen = gather(gradient, 4, 2, 1)
        self.gradients = [rows_of(self.x).T @ rows_of(seen), rows_of(gradient).sum(0)]
        return [times(seen, self.weights[0].T)]

    def export(self):
        square = self.weights[0].reshape(-1, 4, 4, len(self.weights[1]))
        attributes = {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1] * 4}
        return "ConvTranspose", attributes, {"weight": square.transpose(0, 3, 1, 2), "bias": self.weights[1]}


class Gemm(Layer):
    def __init__(self, rng, inputs, outputs):
        self.weights = [he(rng, inputs, (inputs, outputs)), np.zeros(outputs, np.float32)]

    def forward(self, x):
        self.x = x
        return x @ self.weights[0] + self.weights[1]

    def backward(self, gradient):
        self.gradients = [self.x.T @ gradient, gradient.sum(0)]
        return [gradient @ self.weights[0].T]

    def export(self):
        return "Gemm", {}, {"weight": self.weights[0], "bias": self.weights[1]}


class Relu(Layer):
    def forward(self, x):
        self.y = np.maximum(x, 0)
        return self.y

    def backward(self, gradient):
        return [gradient * (self.y > 0)]


class MaxPool(Layer):
    """The largest of each 2x2 pixels."""

    def forward(self, x):
        self.x = x
        self.y = np.maximum.reduce(list(windows(x, 2, 2, x.shape[1] // 2, x.shape[2] // 2)))
        return self.y

    def backward(self, gradient):
        # Equal pixels get the gradient each: behind a Relu these are zeros, where the Relu stops it.
        out = np.empty_like(self.x)
        pairs = zip(*(windows(image, 2, 2, *self.y.shape[1:3]) for image in (self.x, out)))
        for pixels, place in pairs:
            place[...] = gradient * (pixels == self.y)
        return [out]

    def export(self):
        return "MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}, {}


class AveragePool(Layer):
    """The mean of each 2x2 pixels."""

    def forward(self, x):
        return sum(windows(x, 2, 2, x.shape[1] // 2, x.shape[2] // 2)) / 4

    def backward(self, gradient):
        return [(gradient / 4).repeat(2, 1).repeat(2, 2)]

    def export(self):
        return "AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}, {}


class GlobalAveragePool(Layer):
    def forward(self, x):
        self.shape = x.shape
        return x.mean((1, 2), keepdims=True)

    def backward(self, gradient):
        return [np.broadcast_to(gradient / (self.shape[1] * self.shape[2]), self.shape)]


class Flatten(Layer):
    def forward(self, x):
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, gradient):
        return [gradient.reshape(self.shape)]


class Concat(Layer):
    def forward(self, *parts):
        self.cuts = np.cumsum([part.shape[-1] for part in parts])[:-1]
        return np.concatenate(parts, -1)

    def backward(self, gradient):
        return np.split(gradient, self.cuts, -1)

    def export(self):
        return "Concat", {"axis": 1}, {}


class Add(Layer):
    def forward(self, a, b):
        return a + b

    def backward(self, gradient):
        return [gradient, gradient]


class Softmax(Layer):
    """Has no backward pass: with cross-entropy behind it, the gradient before it is known at once."""

    def forward(self, x):
        powers = np.exp(x - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    def export(self):
        return "Softmax", {"axis": -1}, {}


# The network.


@dataclass
class Step:
    layer: Layer
    inputs: tuple
    output: str


class Builder:
    """Grows the table of steps; a tensor is known by its name."""

    def __init__(self, rng):
        self.rng = rng
        self.steps = []

    def add(self, name, layer, *inputs):
        self.steps.append(Step(layer, inputs, name))
        return name

    def conv(self, name, x, inputs, outputs, kernel=1):
        x = self.add(f"{name}.conv", Conv(self.rng, inputs, outputs, kernel), x)
        return self.add(f"{name}.relu", Relu(), x)


def fan(net, name, x, inputs, wide, narrow, shrinkers):
    """Branches that each widen all of `x`, shrink that to a quarter and narrow it; beside them a short cut.

    Written level by level, as one would with lists of layers. So the file's order holds all the wide tensors at
    once, where branch by branch one is enough: finding that out is left to the planner.
    """
    branches = list(shrinkers)
    expanded = [net.conv(f"{name}.{b}.widen", x, inputs, wide) for b in branches]
    shrunk = [net.add(f"{name}.{b}", shrinkers[b], e) for b, e in zip(branches, expanded)]
    narrowed = [net.conv(f"{name}.{b}.narrow", s, wide, narrow) for b, s in zip(branches, shrunk)]
    joined = net.add(f"{name}.join", Concat(), *narrowed)
    short = net.add(f"{name}.short.shrink", AveragePool(), x)
    short = net.add(f"{name}.short.conv", Conv(net.rng, inputs, narrow * len(branches)), short)
    return net.add(f"{name}.sum", Add(), joined, short)


def dense(net, name, x, inputs, growth, layers):
    """Layers that each read everything before them, and add a few channels to it."""
    for layer in range(layers):
        y = net.conv(f"{name}.{layer}.squeeze", x, inputs + layer * growth, 2 * growth)
        y = net.conv(f"{name}.{layer}.look", y, 2 * growth, growth, kernel=3)
        x = net.add(f"{name}.{layer}.join", Concat(), x, y)
    return x


def build(rng):
    net = Builder(rng)
    x = net.add("stem.conv", ConvTranspose(rng, 1, 16), "image")
    x = net.add("stem.relu", Relu(), x)
    shrinkers = {"deep5": Depthwise(rng, 128, 5), "deep3": Depthwise(rng, 128, 3)}
    shrinkers |= {"max": MaxPool(), "mean": AveragePool()}
    x = fan(net, "fan1", x, 16, 128, 12, shrinkers)
    x = dense(net, "dense", x, 48, 16, 4)
    x = net.conv("between", x, 112, 48)
    shrinkers = {"deep3": Depthwise(rng, 128, 3), "max": MaxPool(), "mean": AveragePool()}
    x = fan(net, "fan2", x, 48, 128, 32, shrinkers)
    x = net.conv("last", x, 96, 96)
    x = net.add("pool", GlobalAveragePool(), x)
    x = net.add("flat", Flatten(), x)
    x = net.add("logits", Gemm(rng, 96, 10), x)
    net.add("probabilities", Softmax(), x)
    return net.steps


def forward(steps, images):
    values = {"image": images}
    for step in steps:
        values[step.output] = step.layer.forward(*(values[name] for name in step.inputs))
    return values["probabilities"]


def backward(steps, logits_gradient):
    """Leaves gradients in the layers; a tensor with several readers gets the sum of theirs."""
    gradients = {"logits": logits_gradient}
    for step in reversed(steps[:-1]):
        parts = step.layer.backward(gradients.pop(step.output))
        for name, part in zip(step.inputs, parts):
            gradients[name] = gradients[name] + part if name in gradients else part


# Training.


class Adam:
    def __init__(self, steps):
        self.layers = [step.layer for step in steps if step.layer.weights]
        self.means = [[np.zeros_like(w) for w in layer.weights] for layer in self.layers]
        self.squares = [[np.zeros_like(w) for w in layer.weights] for layer in self.layers]
        self.time = 0

    def step(self, rate):
        self.time += 1
        # Means that begin at zero are too small at first.
        rate *= np.sqrt(1 - 0.99**self.time) / (1 - 0.9**self.time)
        for layer, means, squares in zip(self.layers, self.means, self.squares):
            for weight, gradient, mean, square in zip(layer.weights, layer.gradients, means, squares):
                mean += 0.1 * (gradient - mean)
                square += 0.01 * (gradient**2 - square)
                weight -= rate * mean / (np.sqrt(square) + 1e-8)


def shifted(images, rng):
    """Each image moved by up to one pixel: nine times the data."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    moves = rng.integers(0, 3, (len(images), 2))
    return np.stack([image[row:row + 8, column:column + 8] for image, (row, column) in zip(padded, moves)])


def train(steps, images, labels, rng):
    adam = Adam(steps)
    batches = len(images) // BATCH
    for epoch in range(EPOCHS):
        loss = 0.0
        order = rng.permutation(len(images))
        for batch in range(batches):
            chosen = order[batch * BATCH:(batch + 1) * BATCH]
            probabilities = forward(steps, shifted(images[chosen], rng))
            wanted = np.eye(10, dtype=np.float32)[labels[chosen]]
            loss -= np.log(probabilities[wanted > 0] + 1e-9).mean() / batches
            backward(steps, (probabilities - wanted) / BATCH)
            # Half a cosine: large steps first, ever smaller ones to settle.
            adam.step(RATE * (1 + np.cos(np.pi * (epoch + batch / batches) / EPOCHS)) / 2)
        print(f"epoch {epoch + 1:2} of {EPOCHS}: loss {loss:.4f}", flush=True)


def classify(steps, images):
    """Probabilities, a batch at a time: every activation of a batch is kept."""
    cuts = range(BATCH, len(images), BATCH)
    return np.concatenate([forward(steps, batch) for batch in np.split(images, cuts)])


def split(rng):
    """Pixels scaled to 0..1 and labels, as pairs for training and for testing."""
    digits = load_digits()
    images = (digits.images[..., None] / 16).astype(np.float32)
    order = rng.permutation(len(images))
    test, rest = order[:TEST_IMAGES], order[TEST_IMAGES:]
    return (images[rest], digits.target[rest]), (images[test], digits.target[test])


# Files.


def export(steps, metadata):
    nodes, initializers = [], []
    for step in steps:
        operator, attributes, weights = step.layer.export()
        named = {f"{step.output}.{key}": np.ascontiguousarray(value) for key, value in weights.items()}
        inputs = [*step.inputs, *named]
        nodes.append(helper.make_node(operator, inputs, [step.output], name=step.output, **attributes))
        initializers += [numpy_helper.from_array(value, key) for key, value in named.items()]
    image = helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 1, 8, 8])
    output = helper.make_tensor_value_info("probabilities", onnx.TensorProto.FLOAT, [1, 10])
    graph = helper.make_graph(nodes, "digits", [image], [output], initializers)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="lowtide demo")
    helper.set_model_props(model, metadata)
    onnx.checker.check_model(model, full_check=True)
    return model


def png(pixels):
    """A grey picture: rows of bytes, each behind the number of its filter, which is 0."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_sample(image):
    """An image as an array and as a picture 32 times as large."""
    np.save(os.path.join(HERE, "seven.npy"), image.reshape(1, 1, 8, 8))
    pixels = (image[:, :, 0] * 255).astype(np.uint8).repeat(32, 0).repeat(32, 1)
    with open(os.path.join(HERE, "seven.png"), "wb") as file:
        file.write(png(pixels))


def main():
    rng = np.random.default_rng(SEED)
    (images, labels), (test_images, test_labels) = split(rng)
    steps = build(rng)
    train(steps, images, labels, rng)
    probabilities = classify(steps, test_images)
    accuracy = float((probabilities.argmax(1) == test_labels).mean())
    print(f"{len(steps)} operators; right on {accuracy:.2%} of {TEST_IMAGES} images held out")
    metadata = {
        "accuracy": f"{accuracy:.4f}",
        "test_images": str(TEST_IMAGES),
        "labels": ",".join(map(str, range(10))),
    }
    onnx.save(export(steps, metadata), os.path.join(HERE, "digits.onnx"))
    # Of the sevens among the test images the one that it is surest of.
    write_sample(test_images[np.where(test_labels == 7, probabilities[:, 7], 0).argmax()])


if __name__ == "__main__":
    main()
