// The official TypeScript SDK's client: one whole conversation, results as one JSON object.
// Usage: node ts_client.mjs CWD [SESSION_TO_LOAD] -- COMMAND [ARGS...]
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const cut = process.argv.indexOf("--");
const [cwd, known] = process.argv.slice(2, cut);
const [command, ...args] = process.argv.slice(cut + 1);
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

let option = "allow-once";
let updates = [];
let waiting = [];
const asked = [];
const see = (kind) =>
  new Promise((done) => {
    if (updates.some((one) => one.sessionUpdate === kind)) done();
    else waiting.push([kind, done]);
  });

const found = {};
await client({ name: "typescript-sdk" })
  .onRequest(methods.client.session.requestPermission, (ctx) => {
    asked.push(ctx.params.toolCall.title);
    return { outcome: { outcome: "selected", optionId: option } };
  })
  .onNotification(methods.client.session.update, (ctx) => {
    updates.push(ctx.params.update);
    waiting = waiting.filter(([kind, done]) => {
      if (kind === ctx.params.update.sessionUpdate) done();
      return kind !== ctx.params.update.sessionUpdate;
    });
  })
  .connectWith(stream, async (ctx) => {
    const said = await ctx.request(methods.agent.initialize, {
      protocolVersion: 1,
      clientCapabilities: {},
      clientInfo: { name: "typescript-sdk", version: "2.4.0" },
    });
    found.version = said.protocolVersion;
    const prompt = async (sessionId, text) => {
      updates = [];
      const answer = await ctx.request(methods.agent.session.prompt, {
        sessionId,
        prompt: [{ type: "text", text }],
      });
      return { stop: answer.stopReason, updates };
    };
    if (known) {
      updates = [];
      await ctx.request(methods.agent.session.load, { sessionId: known, cwd, mcpServers: [] });
      found.replayed = updates;
      found.again = await prompt(known, "say still here");
      return;
    }
    const opened = await ctx.request(methods.agent.session.new, { cwd, mcpServers: [] });
    const sessionId = (found.session = opened.sessionId);
    found.streamed = await prompt(sessionId, "count slowly to 20");
    found.allowed = await prompt(sessionId, "run echo allowed");
    option = "reject-once";
    found.refused = await prompt(sessionId, "run echo refused");
    updates = [];
    const long = prompt(sessionId, "count slowly to 5000");
    await see("agent_message_chunk");
    await ctx.notify(methods.agent.session.cancel, { sessionId });
    found.cancelled = (await long).stop;
    updates = [];
    await ctx.request(methods.agent.session.setMode, { sessionId, modeId: "full" });
    await see("current_mode_update");
    found.listed = await ctx.request(methods.agent.session.list, {});
    found.asked = asked;
  });
agent.stdin.end();
found.exit = await new Promise((done) => agent.on("exit", done));
process.stdout.write(JSON.stringify(found));
