// The official TypeScript SDK's client of version 2: one conversation, results as one JSON object.
// Usage: node ts_client2.mjs CWD -- COMMAND [ARGS...]
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk/experimental/v2";

const cut = process.argv.indexOf("--");
const [cwd] = process.argv.slice(2, cut);
const [command, ...args] = process.argv.slice(cut + 1);
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

const updates = [];
const asked = [];
let waiting = [];
const state = (wanted) => new Promise((done) => waiting.push([wanted, done]));

const found = {};
await client({ name: "typescript-sdk-2" })
  .onRequest(methods.client.session.requestPermission, (ctx) => {
    asked.push(ctx.params.subject?.type);
    return { outcome: { outcome: "selected", optionId: "allow-once" } };
  })
  .onNotification(methods.client.session.update, (ctx) => {
    const one = ctx.params.update;
    updates.push(one);
    waiting = waiting.filter(([wanted, done]) => {
      if (one.state === wanted) done(one);
      return one.state !== wanted;
    });
  })
  .connectWith(stream, async (ctx) => {
    const said = await ctx.request(methods.agent.initialize, {
      protocolVersion: 2,
      info: { name: "typescript-sdk-2", version: "2.4.0" },
      capabilities: {},
    });
    found.version = said.protocolVersion;
    const opened = await ctx.request(methods.agent.session.new, { cwd });
    const sessionId = (found.session = opened.sessionId);
    const turn = async (text) => {
      const over = state("idle");
      const answer = await ctx.request(methods.agent.session.prompt, {
        sessionId,
        prompt: [{ type: "text", text }],
      });
      return { id: answer.messageId, stop: (await over).stopReason };
    };
    found.counted = await turn("count to 20");
    found.ran = await turn("run echo allowed");
    found.kinds = updates.map((one) => one.sessionUpdate);
    found.users = updates.filter((one) => one.sessionUpdate === "user_message");
    found.asked = asked;
    await ctx.request(methods.agent.session.close, { sessionId });
    updates.length = 0;
    await ctx.request(methods.agent.session.resume, {
      sessionId,
      cwd,
      replayFrom: { type: "start" },
    });
    found.replayed = updates.map((one) => one.sessionUpdate);
  });
agent.stdin.end();
found.exit = await new Promise((done) => agent.on("exit", done));
process.stdout.write(JSON.stringify(found));
