// A long list over `net`: the answer's objects are written anew for each request, as a server does
// that keeps them in memory. Usage: node node_list.js PATH ANSWER_FILE
const fs = require("fs");
const net = require("net");

const [path, file] = process.argv.slice(2);
const { result } = JSON.parse(fs.readFileSync(file, "utf8"));

net
  .createServer((socket) => {
    let rest = "";
    socket.setEncoding("utf8");
    socket.on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const { id } = JSON.parse(line);
        socket.write(JSON.stringify({ jsonrpc: "2.0", result, id }) + "\n");
      }
    });
    socket.on("error", () => socket.destroy());
  })
  .listen({ path, backlog: 4096 });
