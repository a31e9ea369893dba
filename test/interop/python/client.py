"""An MCP client made with the official Python SDK, or with FastMCP. It uses the everything fixture at URL and prints what it
got as one JSON object.

    client.py mcp|fastmcp URL auto|legacy|2026-07-28
"""

import asyncio
import contextlib
import json
import os
import sys

import mcp
import mcp_types as types

WATCHED = "test://watched-resource"
MODERN = "2026-07-28"
PROMPT = "test_prompt_with_arguments"
SAMPLED = types.CreateMessageResult(
    role="assistant", model="test", content=types.TextContent(type="text", text="sampled")
)
FORM = {"username": "ada", "email": "ada@a.test"}


async def sampling(_context, _params):
    return SAMPLED


async def elicitation(_context, _params):
    return types.ElicitResult(action="accept", content=FORM)


class Updates:
    """URIs of resources that were reported as updated in a session."""

    def __init__(self):
        self.uris = asyncio.Queue()

    async def __call__(self, message):
        notification = getattr(message, "root", message)
        if isinstance(notification, types.ResourceUpdatedNotification):
            self.uris.put_nowait(str(notification.params.uri))


def of_sdk(url, mode, updates):
    return mcp.Client(
        url,
        mode=mode,
        sampling_callback=sampling,
        elicitation_callback=elicitation,
        message_handler=updates,
    )


def of_fastmcp(url, mode, updates):
    import fastmcp
    from fastmcp.client.elicitation import ElicitResult

    async def sample(_messages, _params, _context):
        return "sampled"

    async def elicit(_message, _type, _params, _context):
        return ElicitResult(action="accept", content=FORM)

    return fastmcp.Client(
        url, mode=mode, sampling_handler=sample, elicitation_handler=elicit, message_handler=updates
    )


async def run(library, url, mode):
    updates = Updates()
    is_sdk = library == "mcp"
    async with (of_sdk if is_sdk else of_fastmcp)(url, mode, updates) as client:
        steps = []
        begun = asyncio.Event()

        async def progress(value, _total, _message):
            steps.append(value)
            begun.set()

        callback = {"progress_callback" if is_sdk else "progress_handler": progress}

        async def call(name, arguments=None):
            result = await client.call_tool(name, arguments or {}, **callback)
            return result.content[0].text

        tools = await client.list_tools()
        report = {
            "revision": client.protocol_version,
            "tools": len(tools.tools if is_sdk else tools),
            "call": await call("test_simple_text"),
        }
        resource = await client.read_resource("test://static-text")
        report["resource"] = (resource.contents if is_sdk else resource)[0].text
        prompt = await client.get_prompt(PROMPT, {"arg1": "a", "arg2": "b"})
        report["prompt"] = prompt.messages[0].content.text
        reference = types.PromptReference(type="ref/prompt", name=PROMPT)
        completion = await client.complete(reference, {"name": "arg1", "value": "par"})
        report["completion"] = (completion.completion if is_sdk else completion).values
        steps.clear()
        await call("test_tool_with_progress")
        report["progress"] = list(steps)
        report["elicitation"] = await call("test_elicitation", {"message": "Who?"})
        report["sampling"] = await call("test_sampling", {"prompt": "Say it"})
        report["updated"] = await updated(client, updates, call)
        report["cancelled"] = await cancelled(call, begun)
        return report


async def updated(client, updates, call):
    session = client.session
    async with contextlib.AsyncExitStack() as stack:
        if client.protocol_version == MODERN:
            from mcp.client.subscriptions import listen

            stream = await stack.enter_async_context(listen(session, resource_subscriptions=[WATCHED]))
            await call("test_trigger_resource_update")
            return str((await anext(stream)).uri)
        await session.subscribe_resource(WATCHED)
        await call("test_trigger_resource_update")
        return await updates.uris.get()


async def cancelled(call, begun):
    """Cancels a call once it has begun, and waits until the server says so."""
    name = os.environ.get("CALL_NAME", f"python {os.getpid()}")
    begun.clear()
    waiting = asyncio.create_task(call("test_wait", {"name": name}))
    await begun.wait()
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    while name not in json.loads(await call("test_cancelled")):
        await asyncio.sleep(0.01)
    return True


async def main():
    # What hangs is a failure.
    async with asyncio.timeout(25):
        print(json.dumps(await run(*sys.argv[1:])))


asyncio.run(main())
