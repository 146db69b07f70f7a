"""Write apps for the OpenClawOS kernel protocol in a few lines.

from dragoman.apps import App

app = App("@me/weather")

@app.tool()
async def weather(city: str) -> str:
    "What the weather is like in a city."
    return f"Sunny in {city}."

app.run()
"""

from .app import App
from .channel import Channel, Message
from .kernel import KernelError
from .work import Block, Invocation, Request

__all__ = ["App", "Block", "Channel", "Invocation", "KernelError", "Message", "Request"]
