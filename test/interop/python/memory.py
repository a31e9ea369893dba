"""A client of the memory made with the official Python SDK: calls every tool of the adapter at URL and prints, as one JSON
object, the revision, the tools that it called and what each returned.

    memory.py auto|legacy|2026-07-28 URL
"""

import asyncio
import json
import sys

import mcp

# The example of server-memory's documentation.
JOHN = {"name": "John_Smith", "entityType": "person", "observations": ["Speaks fluent Spanish"]}
WORKS = {"from": "John_Smith", "to": "Anthropic", "relationType": "works_at"}
MORE = ["Graduated in 2019", "Prefers morning meetings"]
PAGE = "# Otters\n\nOtters hold hands while they sleep, so that they do not drift apart."
TURN = {"sessionId": "talk", "role": "user", "content": "Where do otters sleep?"}


async def run(mode, url):
    async with mcp.Client(url, mode=mode) as client:
        called = {}

        async def call(name, arguments):
            result = await client.call_tool(name, arguments)
            if result.is_error:
                raise RuntimeError(f"{name}: {result.content[0].text}")
            called[name] = result.structured_content
            return result.structured_content

        await call("ingest_document", {"title": "Otters", "content": PAGE})
        found = await call("search_knowledge", {"query": "how do otters sleep", "limit": 1})
        await call("query_graph", {"entityId": found["results"][0]["id"]})
        await call("store_episodic", TURN)
        await call("search_episodes", {"query": "otters", "sessionId": "talk"})
        await call("create_entities", {"entities": [JOHN]})
        await call("create_relations", {"relations": [WORKS]})
        await call("add_observations", {"observations": [{"entityName": "John_Smith", "contents": MORE}]})
        await call("read_graph", {})
        await call("search_nodes", {"query": "spanish"})
        await call("open_nodes", {"names": ["John_Smith"]})
        deletion = {"entityName": "John_Smith", "observations": MORE}
        await call("delete_observations", {"deletions": [deletion]})
        await call("delete_relations", {"relations": [WORKS]})
        await call("delete_entities", {"entityNames": ["John_Smith"]})
        refused = await client.call_tool("query_graph", {"entityId": "John_Smith"})
        tools = [tool.name for tool in (await client.list_tools()).tools]
        return {
            "revision": client.protocol_version,
            "not called": sorted(set(tools) - set(called)),
            "refused": refused.is_error and refused.content[0].text,
            "results": called,
        }


async def main():
    # What hangs is a failure.
    async with asyncio.timeout(25):
        print(json.dumps(await run(*sys.argv[1:])))


asyncio.run(main())
