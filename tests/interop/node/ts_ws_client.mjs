// The official TypeScript SDK's client over a WebSocket or Streamable HTTP: one conversation,
// results as JSON. Usage: node ts_ws_client.mjs CWD URL [SESSION]
import { client, methods } from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const [cwd, url, old] = process.argv.slice(2);
const [address, token] = url.split("?token=");
const stream = url.startsWith("http")
  ? createHttpStream(address, { headers: { Authorization: `Bearer ${token}` } })
  : createWebSocketStream(url);
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
    if (old) {
      const params = { sessionId: old, cwd, mcpServers: [] };
      await ctx.request(methods.agent.session.load, params);
      return;
    }
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
if (url.startsWith("http")) await stream.writable.close().catch(() => {});
process.stdout.write(JSON.stringify(found));
process.exit(0);
