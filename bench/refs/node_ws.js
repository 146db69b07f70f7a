// The `ws` package's server: JSON.parse, one message per answer. Usage: node_ws.js PORT MODULES
const { createRequire } = require("module");
const [port, modules] = process.argv.slice(2);
const { WebSocketServer } = createRequire(`${modules}/`)("ws");

const server = new WebSocketServer({ port: Number(port), host: "127.0.0.1", perMessageDeflate: false });
server.on("connection", (socket) => {
  socket.on("error", () => socket.terminate());
  socket.on("message", (data) => {
    const message = JSON.parse(data.toString());
    socket.send(JSON.stringify({ jsonrpc: "2.0", result: { status: "ok" }, id: message.id }));
  });
});
