"""Calls Lowtide's command line; LOWTIDE names the binary."""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass

LOWTIDE = os.environ["LOWTIDE"]


def plan(model, *flags):
    """The planned graph's tensors by name, and the figures; None and the message if that failed."""
    with tempfile.TemporaryDirectory() as folder:
        graph = os.path.join(folder, "graph.json")
        done = subprocess.run(
            [LOWTIDE, "plan", model, "--json", "--graph", graph, *flags], capture_output=True, text=True
        )
        if done.returncode != 0:
            return None, done.stderr.strip()
        with open(graph) as file:
            tensors = json.load(file)["tensors"]
        return {row["name"]: row for row in tensors}, json.loads(done.stdout)


@dataclass
class Answer:
    """What a run said: its JSON document, or else why there is none."""

    code: int | None
    document: dict | None
    message: str


def run(model, *flags, seconds):
    """Runs a model; a run that takes longer than `seconds` counts as a crash."""
    command = [LOWTIDE, "run", model, "--json", *flags]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired:
        return Answer(None, None, f"no answer in {seconds} s")
    message = done.stderr.strip()
    if done.returncode != 0:
        return Answer(done.returncode, None, message or f"exit code {done.returncode}, and nothing said")
    try:
        return Answer(0, json.loads(done.stdout), message)
    except json.JSONDecodeError as error:
        return Answer(0, None, f"its output is not JSON: {error}")
