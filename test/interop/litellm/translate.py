"""What LiteLLM sends to a provider for calls of another format.

Reads a list of calls from stdin: {"from", "to", "body"}. Sends each with LiteLLM's client of that format to a server in
this process, and writes the list of the bodies that the server got, or of errors.
"""

import asyncio
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The list of models in the package, instead of a download.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm  # noqa: E402

received = []


class Provider(BaseHTTPRequestHandler):
    def do_POST(self):
        received.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        # The first call is enough: none is repeated after this error.
        answer = b'{"error": {"message": "no", "type": "invalid_request_error"}}'
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


# Providers that LiteLLM calls in this format.
PREFIXES = {
    ("completions", "messages"): "anthropic/",
    ("completions", "responses"): "openai/responses/",
    ("messages", "completions"): "hosted_vllm/",
    ("messages", "responses"): "openai/",
    ("responses", "completions"): "custom_openai/",
    ("responses", "messages"): "anthropic/",
}


async def send(call, address):
    body = {**call["body"]}
    model = PREFIXES[call["from"], call["to"]] + body.pop("model")
    base = address if call["to"] == "messages" else address + "/v1"
    target = {"model": model, "api_base": base, "api_key": "key", "num_retries": 0, **body}
    if call["to"] == "completions":
        target["allowed_openai_params"] = ["reasoning_effort", "verbosity", "top_k"]
    match call["from"]:
        case "completions":
            await litellm.acompletion(**target)
        case "messages":
            await litellm.anthropic.messages.acreate(**target)
        case "responses":
            await litellm.aresponses(**target)


async def translate(call, address):
    received.clear()
    error = "no error"
    try:
        await send(call, address)
    except Exception as thrown:
        error = f"{type(thrown).__name__}: {thrown}"
    return {"body": received[0]} if received else {"error": error[:300]}


async def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    litellm.suppress_debug_info = True
    # Otherwise it refuses many members that the gateway translates.
    litellm.drop_params = True
    address = f"http://127.0.0.1:{server.server_port}"
    outcomes = [await translate(call, address) for call in json.load(sys.stdin)]
    with os.fdopen(RESULT, "w") as result:
        json.dump(outcomes, result)
    os._exit(0)


# LiteLLM writes to stdout, too.
RESULT = os.dup(1)
os.dup2(2, 1)
asyncio.run(main())
