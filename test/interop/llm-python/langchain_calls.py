"""Calls of LangChain with the clients of OpenAI and of Anthropic."""

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from samples import KEY, PNG_URL, Weather


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return "sunny"


PROMPT = [SystemMessage("Be brief."), HumanMessage("Hello")]


def chat(model):
    reply = model.invoke(PROMPT)
    return [reply.text, reply.usage_metadata["input_tokens"], reply.usage_metadata["output_tokens"]]


def stream(model):
    parts = list(model.stream("one two three"))
    whole = parts[0]
    for part in parts[1:]:
        whole += part
    return [whole.text, len([part for part in parts if part.text]) > 1, whole.usage_metadata["total_tokens"]]


def tools(model):
    bound = model.bind_tools([weather], tool_choice="weather")
    question = HumanMessage('{"city": "Paris"}')
    reply = bound.invoke([question])
    [call] = reply.tool_calls
    result = ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"])
    return [call["name"], call["args"], bound.invoke([question, reply, result]).text]


def structured_output(model, method):
    return model.with_structured_output(Weather, method=method).invoke('{"city":"Paris","degrees":21}').model_dump()


def image(model):
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": PNG_URL}}]
    return model.invoke([HumanMessage(parts)]).text


class Calls:
    def __init__(self, url, model):
        address = {"base_url": f"{url}/v1", "api_key": KEY, "max_retries": 0}
        self._completions = ChatOpenAI(model=model, stream_usage=True, **address)
        self._responses = ChatOpenAI(model=model, use_responses_api=True, **address)
        self._messages = ChatAnthropic(
            model=model, base_url=url, api_key=KEY, max_retries=0, max_tokens=50, stream_usage=True
        )
        self._embeddings = OpenAIEmbeddings(model="echo", check_embedding_ctx_length=False, **address)

    def chat(self):
        return [chat(model) for model in (self._completions, self._responses, self._messages)]

    def stream(self):
        return [stream(model) for model in (self._completions, self._responses, self._messages)]

    def tools(self):
        return [tools(model) for model in (self._completions, self._responses, self._messages)]

    def structured_output(self):
        models = (self._completions, self._responses, self._messages)
        return [structured_output(model, "json_schema") for model in models]

    def image(self):
        return [image(model) for model in (self._completions, self._responses, self._messages)]

    def embeddings(self):
        return [len(vector) for vector in self._embeddings.embed_documents(["a", "b c"])]

    def completions_refused(self):
        return self._completions.invoke("refused").text

    def messages_refused(self):
        return self._messages.invoke("refused").text
