"""An MCP client made with the official Python SDK. It uses server-everything at URL and prints what it got as one JSON object.

    everything.py URL auto|legacy
"""

import asyncio
import json
import sys

import mcp
import mcp_types as types

RESOURCE = "demo://resource/dynamic/text/1"
asked = []


async def sampling(_context, _params):
    asked.append("sampling")
    content = types.TextContent(type="text", text="sampled")
    return types.CreateMessageResult(role="assistant", model="test", content=content)


async def elicitation(_context, _params):
    asked.append("elicitation")
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def run(url, mode):
    callbacks = {"sampling_callback": sampling, "elicitation_callback": elicitation}
    async with mcp.Client(url, mode=mode, **callbacks) as client:
        steps = []

        async def progress(value, total, _message):
            if total is not None:
                steps.append(value)

        async def call(name, arguments):
            result = await client.call_tool(name, arguments, progress_callback=progress)
            return [part.model_dump(mode="json") for part in result.content]

        report = {
            "revision": client.protocol_version,
            "tools": [tool.model_dump(mode="json") for tool in (await client.list_tools()).tools],
            "echo": await call("echo", {"message": "hello"}),
            "image": await call("get-tiny-image", {}),
            "invalid": await call("get-sum", {"a": "x"}),
            "elicitation": await call("trigger-elicitation-request", {}),
            "sampling": await call("trigger-sampling-request", {"prompt": "Say it"}),
        }
        steps.clear()
        report["long"] = await call("trigger-long-running-operation", {"duration": 0.2, "steps": 2})
        report["progress"] = steps[-1]
        resource = await client.read_resource(RESOURCE)
        report["resource"] = resource.contents[0].text
        prompt = await client.get_prompt("args-prompt", {"city": "Bonn"})
        report["prompt"] = prompt.messages[0].content.text
        report["asked"] = asked
        return report


async def main():
    # What hangs is a failure.
    async with asyncio.timeout(25):
        print(json.dumps(await run(*sys.argv[1:])))


asyncio.run(main())
