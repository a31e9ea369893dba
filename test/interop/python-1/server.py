"""An MCP server made with version 1 of the official Python SDK, with the tool `add`.

server.py PORT streamable|mounted|sse

`mounted` is Streamable HTTP below a Starlette mount, which redirects `/mcp` to `/mcp/`.
"""

import sys

import uvicorn
from mcp.server.fastmcp import FastMCP
from starlette.applications import Starlette
from starlette.routing import Mount

port, kind = int(sys.argv[1]), sys.argv[2]
server = FastMCP("python-1", streamable_http_path="/" if kind == "mounted" else "/mcp")


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


if kind == "sse":
    app = server.sse_app()
elif kind == "streamable":
    app = server.streamable_http_app()
else:
    mount = Mount("/mcp", app=server.streamable_http_app())
    app = Starlette(routes=[mount], lifespan=lambda _: server.session_manager.run())
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
