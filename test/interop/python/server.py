"""An MCP server made with the official Python SDK, or with FastMCP, with the tools that test/interop/served.ts describes.

server.py mcp|fastmcp stdio|http

`http` listens on a free port of 127.0.0.1 and prints its URL.
"""

import asyncio
import json
import socket
import sys

import mcp_types as types

WATCHED = "test://watched-resource"
MODERN = "2026-07-28"
SCHEMA = {"type": "object", "properties": {"username": {"type": "string"}}}

cancelled = []


async def sampled(prompt, ctx, is_modern):
    """Since 2026-07-28 a tool asks by its result, and is called again with the answer."""
    content = types.TextContent(type="text", text=prompt)
    params = types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=content)], max_tokens=100
    )
    if not is_modern:
        answer = await ctx.session.create_message(
            messages=params.messages, max_tokens=params.max_tokens, related_request_id=ctx.request_id
        )
    elif (answer := (ctx.input_responses or {}).get("sample")) is None:
        request = types.CreateMessageRequest(params=params)
        return types.InputRequiredResult(input_requests={"sample": request})
    return answer.content.text


async def elicited(message, ctx, is_modern):
    if not is_modern:
        answer = await ctx.session.elicit_form(message, SCHEMA, related_request_id=ctx.request_id)
    elif (answer := (ctx.input_responses or {}).get("elicit")) is None:
        params = types.ElicitRequestFormParams(message=message, requested_schema=SCHEMA)
        request = types.ElicitRequest(params=params)
        return types.InputRequiredResult(input_requests={"elicit": request})
    return f"{answer.action} {answer.content}"


async def wait(name):
    try:
        await asyncio.sleep(20)
    except asyncio.CancelledError:
        cancelled.append(name)
        raise
    return "not cancelled"


def of_sdk():
    from mcp.server.mcpserver import Context, MCPServer

    server = MCPServer(name="interop")

    @server.tool()
    def test_simple_text() -> str:
        return "plain text"

    @server.tool()
    async def test_tool_with_progress(ctx: Context) -> str:
        for step in (0, 50, 100):
            await ctx.report_progress(step, 100)
        return "done"

    @server.tool()
    async def test_sampling(prompt: str, ctx: Context) -> str | types.InputRequiredResult:
        return await sampled(prompt, ctx, ctx.protocol_version == MODERN)

    @server.tool()
    async def test_elicitation(message: str, ctx: Context) -> str | types.InputRequiredResult:
        return await elicited(message, ctx, ctx.protocol_version == MODERN)

    @server.tool()
    async def test_trigger_resource_update(ctx: Context) -> str:
        if ctx.protocol_version == MODERN:
            await ctx.notify_resource_updated(WATCHED)
        else:
            await ctx.session.send_resource_updated(WATCHED)
        return "announced"

    @server.tool()
    async def test_wait(name: str, ctx: Context) -> str:
        await ctx.report_progress(1)
        return await wait(name)

    @server.tool()
    def test_cancelled() -> str:
        return json.dumps(cancelled)

    @server.resource(WATCHED)
    def watched() -> str:
        return "text of a resource"

    async def subscribed(_context, _params):
        return types.EmptyResult()

    low = server._lowlevel_server
    low.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribed)
    low.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, subscribed)
    return server


def of_fastmcp():
    from fastmcp import Context, FastMCP

    server = FastMCP("interop")

    def is_modern(ctx):
        return ctx.request_context.protocol_version == MODERN

    @server.tool
    def test_simple_text() -> str:
        return "plain text"

    @server.tool
    async def test_tool_with_progress(ctx: Context) -> str:
        for step in (0, 50, 100):
            await ctx.report_progress(step, 100)
        return "done"

    @server.tool
    async def test_sampling(prompt: str, ctx: Context) -> str | types.InputRequiredResult:
        return await sampled(prompt, ctx, is_modern(ctx))

    @server.tool
    async def test_elicitation(message: str, ctx: Context) -> str | types.InputRequiredResult:
        return await elicited(message, ctx, is_modern(ctx))

    @server.tool
    async def test_wait(name: str, ctx: Context) -> str:
        await ctx.report_progress(1)
        return await wait(name)

    @server.tool
    def test_cancelled() -> str:
        return json.dumps(cancelled)

    @server.resource(WATCHED)
    def watched() -> str:
        return "text of a resource"

    return server


def serve_http(app):
    import uvicorn

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


def main(library, transport):
    is_sdk = library == "mcp"
    server = of_sdk() if is_sdk else of_fastmcp()
    if transport == "stdio":
        server.run(transport="stdio", **({} if is_sdk else {"show_banner": False}))
    else:
        serve_http(server.streamable_http_app() if is_sdk else server.http_app())


main(*sys.argv[1:])
