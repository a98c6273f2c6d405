"""Headless Chromium, driven over DevTools by one JSON object a line on standard input.

{"id": 1, "do": "open", "url": "http://…"}     loads a page
{"id": 2, "do": "eval", "js": "…"}             evaluates an expression, awaits a promise, answers its value
{"id": 3, "do": "shot", "path": "….png"}       takes a picture of the page
{"id": 4, "do": "call", "method": "…", "params": {…}}   calls DevTools itself: a mouse that is moved, a window of another size

Each is answered by {"id": n, "value": …} or {"id": n, "error": "…"}. What the page says on its console comes as
{"event": "console", …}. A small server beside it serves this folder and the modules `whip-whep` and `hls.js`, on another
origin than the edge: client pages of somebody else's.
"""

import argparse
import asyncio
import base64
import json
import pathlib
import shutil
import sys
import tempfile

import aiohttp
from aiohttp import web

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--mute-audio",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--allow-loopback-in-peer-connection",
    "--autoplay-policy=no-user-gesture-required",
    "--window-size=1100,900",
    "--remote-debugging-port=0",
]


def say(**facts):
    print(json.dumps(facts), flush=True)


class Page:
    """One tab behind its DevTools socket."""

    def __init__(self, socket):
        self.socket = socket
        self.number = 0
        self.waiting = {}

    async def call(self, method, **params):
        self.number += 1
        answer = asyncio.get_running_loop().create_future()
        self.waiting[self.number] = answer
        await self.socket.send_json({"id": self.number, "method": method, "params": params})
        return await asyncio.wait_for(answer, 60)

    async def read(self):
        async for frame in self.socket:
            message = json.loads(frame.data)
            if "id" in message:
                answer = self.waiting.pop(message["id"])
                if "error" in message:
                    answer.set_exception(RuntimeError(message["error"].get("message", "DevTools error")))
                else:
                    answer.set_result(message["result"])
            elif message["method"] == "Runtime.consoleAPICalled":
                texts = [str(a.get("value", a.get("description", ""))) for a in message["params"]["args"]]
                say(event="console", type=message["params"]["type"], text=" ".join(texts))
            elif message["method"] == "Runtime.exceptionThrown":
                details = message["params"]["exceptionDetails"]
                say(event="console", type="exception", text=details.get("exception", {}).get("description", details["text"]))
            elif message["method"] == "Log.entryAdded":
                say(event="console", type="log", text=message["params"]["entry"]["text"])

    async def evaluate(self, js):
        result = await self.call("Runtime.evaluate", expression=js, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return result["result"].get("value")

    async def do(self, order):
        match order["do"]:
            case "open":
                result = await self.call("Page.navigate", url=order["url"])
                if "errorText" in result:
                    raise RuntimeError(result["errorText"])
                while await self.evaluate("document.readyState") != "complete":
                    await asyncio.sleep(0.05)
                return order["url"]
            case "eval":
                return await self.evaluate(order["js"])
            case "shot":
                result = await self.call("Page.captureScreenshot", format="png")
                pathlib.Path(order["path"]).write_bytes(base64.b64decode(result["data"]))
                return order["path"]
            case "call":
                return await self.call(order["method"], **order["params"])
            case other:
                raise RuntimeError(f"unknown order {other!r}")

    async def obey(self, order):
        try:
            say(id=order["id"], value=await self.do(order))
        except Exception as error:
            say(id=order["id"], error=str(error) or repr(error))


async def serve(modules):
    """This folder's pages and the npm modules they import."""
    app = web.Application()
    here = pathlib.Path(__file__).parent
    app.router.add_get("/whip_whep.html", lambda request: web.FileResponse(here / "whip_whep.html"))
    app.router.add_get("/hls_js.html", lambda request: web.FileResponse(here / "hls_js.html"))
    app.router.add_get("/video.html", lambda request: web.FileResponse(here / "video.html"))
    app.router.add_get("/hls.js", lambda request: web.FileResponse(modules / "hls.js" / "dist" / "hls.min.js"))
    app.router.add_get("/whip.js", lambda request: web.FileResponse(modules / "whip-whep" / "whip.js"))
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"


async def devtools(profile):
    """The address Chromium wrote down once it listened."""
    port_file = profile / "DevToolsActivePort"
    for _ in range(600):
        if port_file.exists() and len(lines := port_file.read_text().split()) == 2:
            return f"http://127.0.0.1:{lines[0]}"
        await asyncio.sleep(0.05)
    raise RuntimeError("Chromium did not open its DevTools port within 30 s")


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", type=pathlib.Path, required=True, help="the node_modules folder with whip-whep and hls.js")
    parser.add_argument("--secure", help="an origin to be taken for a secure one")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        profile = pathlib.Path(folder)
        flags = FLAGS + [f"--user-data-dir={profile}"]
        if options.secure:
            flags.append(f"--unsafely-treat-insecure-origin-as-secure={options.secure}")
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program is None:
            raise RuntimeError("no chromium in PATH; tests/run installs it")
        chromium = await asyncio.create_subprocess_exec(
            program, *flags, "about:blank",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            origin = await serve(options.modules)
            base = await devtools(profile)
            async with aiohttp.ClientSession() as http:
                targets = []
                while not targets:
                    async with http.get(f"{base}/json/list") as response:
                        targets = [t for t in await response.json(content_type=None) if t["type"] == "page"]
                async with http.ws_connect(targets[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    page = Page(socket)
                    reader = asyncio.create_task(page.read())
                    for domain in ("Page", "Runtime", "Log"):
                        await page.call(f"{domain}.enable")
                    say(event="ready", origin=origin)
                    running = set()
                    loop = asyncio.get_running_loop()
                    while line := await loop.run_in_executor(None, sys.stdin.readline):
                        task = asyncio.create_task(page.obey(json.loads(line)))
                        running.add(task)
                        task.add_done_callback(running.discard)
                    reader.cancel()
        finally:
            chromium.kill()
            await chromium.wait()


asyncio.run(main())
