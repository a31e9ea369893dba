"""Calls of the official client of Anthropic."""

import anthropic
from samples import CITY, KEY, PNG, Weather

TOOLS = [{"name": "weather", "description": "The weather of a city.", "input_schema": CITY}]
QUESTION = {"role": "user", "content": '{"city": "Paris"}'}


class Calls:
    def __init__(self, url, model):
        self._model = model
        self._client = anthropic.Anthropic(base_url=url, auth_token=KEY, max_retries=0)

    def _ask(self, content, client=None, **more):
        messages = content if isinstance(content, list) and "role" in content[0] else [{"role": "user", "content": content}]
        asked = {"model": self._model, "max_tokens": 50, "messages": messages, **more}
        return (client or self._client).messages.create(**asked)

    def chat(self):
        reply = self._ask("Hello, wörld 🌍", system="Be brief.")
        return [reply.content[0].text, reply.stop_reason, reply.usage.input_tokens, reply.usage.output_tokens]

    def stream(self):
        messages = [{"role": "user", "content": "one two three"}]
        with self._client.messages.stream(model=self._model, max_tokens=50, messages=messages) as stream:
            texts = list(stream.text_stream)
            final = stream.get_final_message()
        return ["".join(texts), len(texts) > 1, final.stop_reason, final.usage.input_tokens, final.usage.output_tokens]

    def tools(self):
        asked = {"tools": TOOLS, "tool_choice": {"type": "any"}}
        reply = self._ask([QUESTION], **asked)
        call = reply.content[0]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
        turns = [QUESTION, {"role": "assistant", "content": reply.content}, {"role": "user", "content": [result]}]
        return [reply.stop_reason, call.type, call.name, call.input, self._ask(turns, **asked).content[0].text]

    def tools_in_a_stream(self):
        asked = {"model": self._model, "max_tokens": 50, "messages": [QUESTION], "tools": TOOLS}
        with self._client.messages.stream(tool_choice={"type": "tool", "name": "weather"}, **asked) as stream:
            pieces = [event.partial_json for event in stream if event.type == "input_json"]
            final = stream.get_final_message()
        return ["".join(pieces), final.stop_reason, final.content[0].name, final.content[0].input]

    def structured_output(self):
        messages = [{"role": "user", "content": '{"city":"Paris","degrees":21}'}]
        asked = {"model": self._model, "max_tokens": 50, "messages": messages}
        return self._client.messages.parse(output_format=Weather, **asked).parsed_output.model_dump()

    def image(self):
        source = {"type": "base64", "media_type": "image/png", "data": PNG}
        return self._ask([{"type": "text", "text": "Look:"}, {"type": "image", "source": source}]).content[0].text

    def count_tokens(self):
        return self._client.messages.count_tokens(model=self._model, messages=[QUESTION]).input_tokens

    def models(self):
        return [model.id for model in self._client.models.list()]

    def unknown_model(self):
        return self._ask("Hi", model="other").id

    def wrong_key(self):
        return self._ask("Hi", self._client.with_options(auth_token="sk-wrong")).id

    def unknown_path(self):
        return list(self._client.beta.files.list())

    def refused(self):
        return self._ask("refused").content[0].text

    def broken(self):
        return self._ask("broken").content[0].text

    def busy(self):
        try:
            return self._ask("busy").content[0].text
        except anthropic.RateLimitError as error:
            return [error.body["error"]["type"], error.response.headers.get("retry-after")]

    def busy_once(self):
        return self._ask("busy once", self._client.with_options(max_retries=2)).content[0].text

    def broken_stream(self):
        texts = []
        messages = [{"role": "user", "content": "break"}]
        try:
            with self._client.messages.stream(model=self._model, max_tokens=50, messages=messages) as stream:
                texts += stream.text_stream
        except anthropic.APIError as error:
            return error.body["error"]["type"]
        return texts

    def timeout(self):
        return self._ask("wait", timeout=1).content[0].text

    def leaving_a_stream(self):
        messages = [{"role": "user", "content": "wait"}]
        with self._client.messages.stream(model=self._model, max_tokens=50, messages=messages) as stream:
            return next(iter(stream.text_stream))
