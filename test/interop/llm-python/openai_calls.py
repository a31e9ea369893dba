"""Calls of the official client of OpenAI."""

import asyncio

import openai
from samples import CITY, KEY, PNG_URL, Weather

FUNCTION = {"name": "weather", "description": "The weather of a city.", "parameters": CITY, "strict": True}
TOOLS = [{"type": "function", "function": FUNCTION}]
RESPONSE_TOOLS = [{"type": "function", **FUNCTION}]


def user(content):
    return {"role": "user", "content": content}


class Calls:
    def __init__(self, url, model):
        self._model = model
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
        self._chats = self._client.chat.completions

    def _chat(self, text, client=None, **more):
        chats = (client or self._client).chat.completions
        return chats.create(model=self._model, messages=[user(text)], **more)

    def chat(self):
        messages = [{"role": "system", "content": "Be brief."}, user("Hello, wörld 🌍")]
        reply = self._chats.create(model=self._model, messages=messages, temperature=0.5, max_tokens=50)
        choice = reply.choices[0]
        return [choice.message.content, choice.finish_reason, reply.usage.prompt_tokens, reply.usage.completion_tokens]

    def stream(self):
        parts = list(self._chat("one two three", stream=True, stream_options={"include_usage": True}))
        texts = [choice.delta.content for part in parts for choice in part.choices if choice.delta.content]
        ends = [choice.finish_reason for part in parts for choice in part.choices if choice.finish_reason]
        usage = [part.usage.total_tokens for part in parts if part.usage]
        return ["".join(texts), len(texts) > 1, ends, usage]

    def async_stream(self):
        async def read():
            async with openai.AsyncOpenAI(base_url=self._client.base_url, api_key=KEY) as client:
                stream = await client.chat.completions.create(
                    model=self._model, messages=[user("one two three")], stream=True
                )
                return "".join([part.choices[0].delta.content or "" async for part in stream if part.choices])

        return asyncio.run(read())

    def tools(self):
        question = user('{"city": "Paris"}')
        asked = {"model": self._model, "tools": TOOLS, "tool_choice": "required"}
        choice = self._chats.create(messages=[question], **asked).choices[0]
        call = choice.message.tool_calls[0]
        result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        answer = self._chats.create(messages=[question, choice.message, result], **asked)
        return [choice.finish_reason, call.function.name, call.function.arguments, answer.choices[0].message.content]

    def tools_in_a_stream(self):
        question = user('{"city": "Paris"}')
        asked = {"model": self._model, "messages": [question], "tools": TOOLS, "tool_choice": "required"}
        with self._chats.stream(**asked) as stream:
            names = [event.name for event in stream if event.type == "tool_calls.function.arguments.done"]
            choice = stream.get_final_completion().choices[0]
        call = choice.message.tool_calls[0]
        return [names, choice.finish_reason, call.function.name, call.function.arguments]

    def structured_output(self):
        question = user('{"city":"Paris","degrees":21}')
        reply = self._chats.parse(model=self._model, messages=[question], response_format=Weather)
        return reply.choices[0].message.parsed.model_dump()

    def image(self):
        parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": PNG_URL}}]
        reply = self._chats.create(model=self._model, messages=[user(parts)])
        return reply.choices[0].message.content

    def responses(self):
        reply = self._client.responses.create(model=self._model, instructions="Be brief.", input="Hello")
        return [reply.output_text, reply.status, reply.usage.input_tokens, reply.usage.output_tokens]

    def responses_stream(self):
        with self._client.responses.stream(model=self._model, input="one two three") as stream:
            texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
            final = stream.get_final_response()
        return ["".join(texts), len(texts) > 1, final.output_text, final.status, final.usage.total_tokens]

    def responses_tools(self):
        question = user('{"city": "Paris"}')
        asked = {"model": self._model, "tools": RESPONSE_TOOLS, "tool_choice": "required"}
        reply = self._client.responses.create(input=[question], **asked)
        call = reply.output[0]
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        answer = self._client.responses.create(input=[question, *reply.output, result], **asked)
        return [call.type, call.name, call.arguments, answer.output_text]

    def responses_structured_output(self):
        question = '{"city":"Paris","degrees":21}'
        reply = self._client.responses.parse(model=self._model, input=question, text_format=Weather)
        return reply.output_parsed.model_dump()

    def responses_image(self):
        parts = [{"type": "input_text", "text": "Look:"}, {"type": "input_image", "image_url": PNG_URL, "detail": "auto"}]
        return self._client.responses.create(model=self._model, input=[user(parts)]).output_text

    def embeddings(self):
        reply = self._client.embeddings.create(model="echo", input=["a", "b c"])
        return [[len(item.embedding) for item in reply.data], reply.usage.prompt_tokens]

    def models(self):
        return [model.id for model in self._client.models.list()]

    def unknown_model(self):
        return self._chats.create(model="other", messages=[user("Hi")]).id

    def wrong_key(self):
        return self._chat("Hi", self._client.with_options(api_key="sk-wrong")).id

    def unknown_path(self):
        return list(self._client.files.list())

    def refused(self):
        return self._chat("refused").choices[0].message.content

    def broken(self):
        return self._chat("broken").choices[0].message.content

    def busy(self):
        try:
            return self._chat("busy").choices[0].message.content
        except openai.RateLimitError as error:
            return [error.code, error.response.headers.get("retry-after")]

    def busy_once(self):
        return self._chat("busy once", self._client.with_options(max_retries=2)).choices[0].message.content

    def broken_stream(self):
        texts = []
        try:
            for part in self._chat("break", stream=True):
                texts += [choice.delta.content for choice in part.choices if choice.delta.content]
        except openai.APIError as error:
            return [texts, error.code]
        return texts

    def broken_responses_stream(self):
        # This client has the error as an event.
        stream = self._client.responses.create(model=self._model, input="break", stream=True)
        events = [event for event in stream if event.type in ("response.output_text.delta", "error", "response.failed")]
        return [getattr(event, "delta", event.type) for event in events]

    def timeout(self):
        return self._chat("wait", timeout=1).choices[0].message.content

    def leaving_a_stream(self):
        with self._chat("wait", stream=True) as stream:
            for part in stream:
                if part.choices and part.choices[0].delta.content:
                    return part.choices[0].delta.content
        return None
