"""Uses a model of the gateway at URL with an unmodified client, and prints what came of each call as one JSON object.

    client.py openai|anthropic|google|langchain|litellm URL MODEL

A call is a public method of the class `Calls` in the client's module. What it raises is its outcome, too.
"""

import importlib
import json
import os
import sys

# Clients and their libraries write to stdout.
RESULT = os.dup(1)
os.dup2(2, 1)


def outcome(call):
    try:
        return call()
    except Exception as error:
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        return {"raised": type(error).__name__, "status": status, "message": str(error)[:300]}


def main(client, url, model):
    calls = importlib.import_module(f"{client}_calls").Calls(url, model)
    names = [name for name in vars(type(calls)) if not name.startswith("_")]
    with os.fdopen(RESULT, "w") as result:
        json.dump({name: outcome(getattr(calls, name)) for name in names}, result)


main(*sys.argv[1:])
