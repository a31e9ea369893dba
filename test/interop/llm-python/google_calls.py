"""Calls of the official client of the Gemini API."""

from google import genai
from google.genai import types
from samples import CITY, KEY, PNG_BYTES, Weather

FUNCTION = types.FunctionDeclaration(
    name="weather", description="The weather of a city.", parameters_json_schema=CITY
)
CALLING = types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode="ANY"))
QUESTION = types.Content(role="user", parts=[types.Part.from_text(text='{"city": "Paris"}')])


class Calls:
    def __init__(self, url, model):
        self._model = model
        # The client sends its key as `x-goog-api-key`.
        self._client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url))

    def _ask(self, contents, **config):
        config = types.GenerateContentConfig(**config)
        return self._client.models.generate_content(model=self._model, contents=contents, config=config)

    def chat(self):
        reply = self._ask("Hello, wörld 🌍", system_instruction="Be brief.", temperature=0.5)
        usage = reply.usage_metadata
        reason = reply.candidates[0].finish_reason.value
        return [reply.text, reason, usage.prompt_token_count, usage.candidates_token_count]

    def stream(self):
        parts = list(self._client.models.generate_content_stream(model=self._model, contents="one two three"))
        texts = [part.text for part in parts if part.text]
        usage = [part.usage_metadata.total_token_count for part in parts if part.usage_metadata]
        return ["".join(texts), len(texts) > 1, parts[-1].candidates[0].finish_reason.value, usage[-1]]

    def tools(self):
        asked = {"tools": [types.Tool(function_declarations=[FUNCTION])], "tool_config": CALLING}
        reply = self._ask([QUESTION], **asked)
        [call] = reply.function_calls
        result = types.Part.from_function_response(name="weather", response={"result": "sunny"})
        result.function_response.id = call.id
        turns = [QUESTION, reply.candidates[0].content, types.Content(role="user", parts=[result])]
        return [call.name, call.args, self._ask(turns, **asked).text]

    def tools_in_a_stream(self):
        config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=[FUNCTION])], tool_config=CALLING
        )
        stream = self._client.models.generate_content_stream(
            model=self._model, contents=[QUESTION], config=config
        )
        calls = [call for part in stream for call in part.function_calls or []]
        return [[call.name, call.args] for call in calls]

    def automatic_function_calling(self):
        called = []

        def weather(city: str) -> str:
            """The weather of a city."""
            called.append(city)
            return "sunny"

        reply = self._ask("Which weather is it in Paris?", tools=[weather])
        return [called, reply.text]

    def structured_output(self):
        question = '{"city":"Paris","degrees":21}'
        reply = self._ask(question, response_mime_type="application/json", response_schema=Weather)
        return reply.parsed.model_dump()

    def image(self):
        return self._ask(["Look:", types.Part.from_bytes(data=PNG_BYTES, mime_type="image/png")]).text

    def count_tokens(self):
        return self._client.models.count_tokens(model=self._model, contents=[QUESTION]).total_tokens

    def unknown_model(self):
        return self._client.models.generate_content(model="other", contents="Hi").text

    def refused(self):
        return self._ask("refused").text

    def broken(self):
        return self._ask("broken").text

    def busy(self):
        return self._ask("busy").text

    def broken_stream(self):
        texts = []
        try:
            for part in self._client.models.generate_content_stream(model=self._model, contents="break"):
                texts.append(part.text)
        except genai.errors.APIError as error:
            return [texts, error.code, error.status]
        return texts
