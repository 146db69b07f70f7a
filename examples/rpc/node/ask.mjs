// One prompt over `dragoman rpc`, no packages: node ask.mjs "list the files here"
// Text goes to stdout, the rest to stderr. Set DRAGOMAN to run another program.
import { spawn } from "node:child_process";

const [program, ...before] = (process.env.DRAGOMAN || "dragoman").split(" ");
const rpc = spawn(program, [...before, "rpc"], { stdio: ["pipe", "pipe", "inherit"] });
const send = (command) => rpc.stdin.write(JSON.stringify(command) + "\n");
let status = 0;

function hear(event) {
  switch (event.type) {
    case "text_delta":
      process.stdout.write(event.delta);
      break;
    case "tool_call":
      process.stderr.write(`[${event.name}] ${JSON.stringify(event.args)}\n`);
      break;
    case "error":
      process.stderr.write(`error: ${event.message}\n`);
      status = 1;
      break;
    case "response":
      if (event.success) break;
      process.stderr.write(`error: ${event.error}\n`);
      status = 1;
      rpc.stdin.end();
      break;
    case "done":
      process.stdout.write("\n");
      rpc.stdin.end(); // the end of input: it leaves
      break;
  }
}

// Only a newline ends a line, and a character may be split between two chunks.
let rest = "";
rpc.stdout.setEncoding("utf8");
rpc.stdout.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const line of lines) if (line) hear(JSON.parse(line));
});
rpc.on("error", (problem) => {
  process.stderr.write(`cannot start ${program}: ${problem.message}\n`);
  process.exitCode = 1;
});
rpc.on("close", (code) => { process.exitCode = status || code || 0; });

const token = process.env.ZOTCORE_RPC_TOKEN;
if (token) send({ id: "0", type: "hello", token });
send({ id: "1", type: "prompt", message: process.argv.slice(2).join(" ") });
