"""Calls of LiteLLM as a client: by chat completions, messages, responses and the Gemini API."""

import asyncio
import os

# The list of models in the package, instead of a download.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm  # noqa: E402
from samples import CITY, KEY, PNG_URL, Weather  # noqa: E402

litellm.suppress_debug_info = True
FUNCTION = {"name": "weather", "description": "The weather of a city.", "parameters": CITY}
TOOLS = [{"type": "function", "function": FUNCTION}]


def user(content):
    return {"role": "user", "content": content}


class Calls:
    def __init__(self, url, model):
        shared = {"api_key": KEY, "num_retries": 0, "max_retries": 0}
        self._targets = {
            "completions": {"model": f"openai/{model}", "api_base": f"{url}/v1", **shared},
            "responses": {"model": f"openai/responses/{model}", "api_base": f"{url}/v1", **shared},
            "messages": {
                "model": f"anthropic/{model}",
                "api_base": url,
                "extra_headers": {"authorization": f"Bearer {KEY}"},
                **shared,
            },
        }

    def _each(self, call):
        outcomes = {}
        for name, target in self._targets.items():
            try:
                outcomes[name] = call(target)
            except Exception as error:
                outcomes[name] = {"raised": type(error).__name__, "message": str(error)[:300]}
        return outcomes

    def chat(self):
        def call(target):
            reply = litellm.completion(messages=[{"role": "system", "content": "Be brief."}, user("Hello")], **target)
            return [reply.choices[0].message.content, reply.usage.prompt_tokens, reply.usage.completion_tokens]

        return self._each(call)

    def stream(self):
        def call(target):
            options = {"stream": True, "stream_options": {"include_usage": True}}
            parts = list(litellm.completion(messages=[user("one two three")], **options, **target))
            texts = [part.choices[0].delta.content for part in parts if part.choices and part.choices[0].delta.content]
            usage = [part.usage.total_tokens for part in parts if getattr(part, "usage", None)]
            return ["".join(texts), len(texts) > 1, usage]

        return self._each(call)

    def tools(self):
        def call(target):
            question = user('{"city": "Paris"}')
            asked = {"tools": TOOLS, "tool_choice": "required", **target}
            message = litellm.completion(messages=[question], **asked).choices[0].message
            called = message.tool_calls[0]
            result = {"role": "tool", "tool_call_id": called.id, "content": "sunny"}
            answer = litellm.completion(messages=[question, message, result], **asked).choices[0].message.content
            return [called.function.name, called.function.arguments.replace(" ", ""), answer]

        return self._each(call)

    def image(self):
        def call(target):
            parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": PNG_URL}}]
            return litellm.completion(messages=[user(parts)], **target).choices[0].message.content

        return self._each(call)

    def structured_output(self):
        target = self._targets["completions"]
        question = [user('{"city":"Paris","degrees":21}')]
        reply = litellm.completion(messages=question, response_format=Weather, **target)
        return Weather.model_validate_json(reply.choices[0].message.content).model_dump()

    def responses(self):
        return litellm.responses(input="Hello", **self._targets["completions"]).output[0].content[0].text

    def messages(self):
        target = self._targets["messages"]
        reply = asyncio.run(
            litellm.anthropic.messages.acreate(messages=[user("Hello")], max_tokens=50, **target)
        )
        return reply["content"][0]["text"]

    def embeddings(self):
        target = {**self._targets["completions"], "model": "openai/echo"}
        reply = litellm.embedding(input=["a", "b c"], encoding_format="float", **target)
        return [len(item["embedding"]) for item in reply.data]

    def refused(self):
        return self._each(lambda target: litellm.completion(messages=[user("refused")], **target).id)

    def busy(self):
        return self._each(lambda target: litellm.completion(messages=[user("busy")], **target).id)
