// The usual Node server's streams: one write per event. Usage:
// fanout PATH | turns PATH FILE | calls PATH FILE
const fs = require("fs");
const net = require("net");

const [mode, path, file] = process.argv.slice(2);
const SESSION = "0f8fad5b-d9cb-469f-a165-70867728950e";
const subscribers = new Set();

function delta() {
  const update = { sessionUpdate: "agent_message_chunk", text: "some text " };
  const params = { sessionId: SESSION, update };
  return JSON.stringify({ jsonrpc: "2.0", method: "session/update", params }) + "\n";
}

const tick = () => new Promise((done) => setImmediate(done));

// Encoded once for all; bursts of 16 per turn of the loop.
async function fanOut(events) {
  for (let made = 0; made < events; made++) {
    const event = Buffer.from(delta());
    for (const socket of subscribers) socket.write(event);
    if (made % 16 === 15) await tick();
  }
  for (const socket of subscribers) socket.write('{"id":99}\n');
}

async function turn(socket, asked) {
  let text = "";
  for (let made = 0; made < 50; made++) {
    text += "some text ";
    socket.write(delta());
    await tick();
  }
  const kept = [
    { session: SESSION, role: "user", text: "go" },
    { session: SESSION, role: "assistant", text },
  ];
  await fs.promises.appendFile(file, kept.map((one) => JSON.stringify(one) + "\n").join(""));
  const answer = { jsonrpc: "2.0", id: asked.id, result: { stopReason: "end_turn" } };
  socket.write(JSON.stringify(answer) + "\n");
}

function tool(kind, status) {
  const rawInput = { entries: [{ content: "x" }] };
  const update = { sessionUpdate: kind, toolCallId: "call_1", title: "plan", status, rawInput };
  const params = { sessionId: SESSION, update };
  return JSON.stringify({ jsonrpc: "2.0", method: "session/update", params }) + "\n";
}

async function call(socket, asked) {
  const events = [tool("tool_call", "in_progress"), tool("tool_call_update", "completed"), delta()];
  for (const event of events) {
    socket.write(event);
    await tick();
  }
  const kept = ["user", "call", "result", "assistant"].map((role) => ({ session: SESSION, role, text: "plan x" }));
  await fs.promises.appendFile(file, kept.map((one) => JSON.stringify(one) + "\n").join(""));
  const answer = { jsonrpc: "2.0", id: asked.id, result: { stopReason: "end_turn" } };
  socket.write(JSON.stringify(answer) + "\n");
}

net
  .createServer((socket) => {
    subscribers.add(socket);
    let rest = "";
    socket.setEncoding("utf8");
    socket.on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const asked = JSON.parse(line);
        if (mode === "turns") turn(socket, asked);
        else if (mode === "calls") call(socket, asked);
        else fanOut(asked.events);
      }
    });
    socket.on("close", () => subscribers.delete(socket));
    socket.on("error", () => socket.destroy());
  })
  .listen({ path, backlog: 4096 });
