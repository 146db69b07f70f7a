// The official TypeScript SDK's client over a WebSocket: one conversation, results as JSON.
// Usage: node ts_ws_client.mjs CWD URL
import { client, methods } from "@agentclientprotocol/sdk";
import * as transport from "@agentclientprotocol/sdk/experimental/ws-client";

const [cwd, url] = process.argv.slice(2);
const stream = transport.createWebSocketStream(url);
const found = { asked: [], updates: [] };
await client({ name: "typescript-sdk-ws" })
  .onRequest(methods.client.session.requestPermission, (ctx) => {
    found.asked.push(ctx.params.toolCall.title);
    return { outcome: { outcome: "selected", optionId: "allow-once" } };
  })
  .onNotification(methods.client.session.update, (ctx) => {
    found.updates.push(ctx.params.update.sessionUpdate);
  })
  .connectWith(stream, async (ctx) => {
    const said = await ctx.request(methods.agent.initialize, {
      protocolVersion: 1,
      clientCapabilities: {},
      clientInfo: { name: "typescript-sdk-ws", version: "2.4.0" },
    });
    found.version = said.protocolVersion;
    const opened = await ctx.request(methods.agent.session.new, { cwd, mcpServers: [] });
    found.session = opened.sessionId;
    for (const text of ["count to 20", "run touch made.txt"]) {
      const answer = await ctx.request(methods.agent.session.prompt, {
        sessionId: found.session,
        prompt: [{ type: "text", text }],
      });
      found.stop = answer.stopReason;
    }
  });
process.stdout.write(JSON.stringify(found));
process.exit(0);
