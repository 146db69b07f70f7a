// An agent on the official TypeScript SDK: answers session/list with nothing. Usage: PATH MODULES
import net from "node:net";
import { Readable, Writable } from "node:stream";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [where, modules] = process.argv.slice(2);
const entry = createRequire(`${modules}/`).resolve("@agentclientprotocol/sdk");
const { agent, methods, ndJsonStream } = await import(pathToFileURL(entry).href);

net
  .createServer((socket) => {
    socket.on("error", () => {});
    const stream = ndJsonStream(Writable.toWeb(socket), Readable.toWeb(socket));
    agent({ name: "bench" })
      .onRequest(methods.agent.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }))
      .onRequest(methods.agent.session.list, () => ({ sessions: [] }))
      .connect(stream);
  })
  .listen(where);
