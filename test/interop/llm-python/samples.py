"""What the clients send."""

import base64

from pydantic import BaseModel

KEY = "sk-client"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PNG_BYTES = base64.b64decode(PNG)
PNG_URL = f"data:image/png;base64,{PNG}"


class Weather(BaseModel):
    city: str
    degrees: int


CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
