"""What a function does not need before its first request is not made while it is imported."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_TOLD = """
import importlib, json, os, sys
for name in ("TABLE_NAME", "DATA_BUCKET", "SITE_BUCKET"):
    os.environ.setdefault(name, "x")
importlib.import_module(sys.argv[1])
from pydantic import BaseModel

def below(model):
    for one in model.__subclasses__():
        yield one
        yield from below(one)

ours = [m for m in below(BaseModel) if m.__module__.startswith(("shared.ratings", "functions."))]
print(json.dumps([len(ours), [m.__name__ for m in ours if m.__pydantic_complete__]]))
"""


@pytest.mark.parametrize("handler", ["functions.api.app", "functions.rater.app", "functions.publisher.app"])
def test_no_model_is_built_before_it_is_used(handler: str) -> None:
    done = subprocess.run([sys.executable, "-c", _TOLD, handler], stdout=subprocess.PIPE, text=True, check=True)
    models, built = json.loads(done.stdout.splitlines()[-1])
    assert models
    assert built == []
