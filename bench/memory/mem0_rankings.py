"""Stores turns in mem0 (PyPI: mem0ai) and prints a ranking per question. Without a language model: `infer=False` stores
each turn as it is. Reads {"turns": [...], "questions": [...], "embeddings": URL, "size": N, "folder": PATH} from stdin,
and prints a list of indexes of turns per question."""

import json
import os
import sys

given = json.load(sys.stdin)
os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = given["folder"]

from mem0 import Memory  # noqa: E402 reads the environment when it is imported

service = {"api_key": "none", "openai_base_url": given["embeddings"]}
memory = Memory.from_config(
    {
        "llm": {"provider": "openai", "config": service},
        "embedder": {
            "provider": "openai",
            "config": {**service, "model": "local", "embedding_dims": given["size"]},
        },
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "path": f"{given['folder']}/vectors",
                "embedding_model_dims": given["size"],
            },
        },
        "history_db_path": f"{given['folder']}/history.db",
    }
)
for index, turn in enumerate(given["turns"]):
    memory.add(
        [{"role": turn["role"], "content": turn["content"]}],
        user_id="bench",
        metadata={"index": index},
        infer=False,
    )
rankings = []
for question in given["questions"]:
    found = memory.search(question, filters={"user_id": "bench"}, top_k=5, threshold=0.0)
    rankings.append([one["metadata"]["index"] for one in found["results"]])
json.dump(rankings, sys.stdout)
