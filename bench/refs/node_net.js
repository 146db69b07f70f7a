// The usual Node server: net and JSON.parse, one write per answer. Usage: node node_net.js PATH
const net = require("net");

net
  .createServer((socket) => {
    let rest = "";
    socket.setEncoding("utf8");
    socket.on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const message = JSON.parse(line);
        const answer = { jsonrpc: "2.0", result: { status: "ok" }, id: message.id };
        socket.write(JSON.stringify(answer) + "\n");
      }
    });
    socket.on("error", () => socket.destroy());
  })
  .listen({ path: process.argv[2], backlog: 4096 });
