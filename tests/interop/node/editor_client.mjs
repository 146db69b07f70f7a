// The ACP side of the marimo notebook editor (`use-acp`), rendered without a screen: one
// conversation over a WebSocket, results as JSON. Usage: node editor_client.mjs CWD URL [SESSION]
import { createElement, useEffect } from "react";
import { create } from "react-test-renderer";
import { mergeToolCalls, useAcpClient } from "use-acp";

const [cwd, url, old] = process.argv.slice(2);
globalThis.IS_REACT_ACT_ENVIRONMENT = false;
const log = console.log;
console.log = () => {}; // the hook's own talk

const found = { asked: [], kinds: [], errors: [], text: "" };
let tell;
const ready = new Promise((done) => (tell = done));

function Panel() {
  const acp = useAcpClient({
    wsUrl: url,
    autoConnect: true,
    reconnectAttempts: 0,
    clientOptions: { onRpcError: (error) => found.errors.push(String(error)) },
  });
  useEffect(() => {
    if (acp.agent) tell(acp.agent);
  }, [acp.agent]);
  useEffect(() => {
    const asked = acp.pendingPermission;
    if (!asked) return;
    found.asked.push(asked.toolCall.title);
    const option = asked.options.find((one) => one.kind === "allow_once");
    acp.resolvePermission({ outcome: { outcome: "selected", optionId: option.optionId } });
  }, [acp.pendingPermission]);
  found.mode = acp.sessionMode?.currentModeId;
  found.commands = acp.availableCommands.map((one) => one.name);
  found.load = acp.agentCapabilities?.loadSession;
  const updates = acp.notifications
    .filter((one) => one.type === "session_notification")
    .map((one) => one.data.update);
  found.kinds = updates.map((one) => one.sessionUpdate);
  found.calls = mergeToolCalls(updates.filter((one) => one.sessionUpdate.startsWith("tool_call")));
  found.text = updates
    .filter((one) => one.sessionUpdate === "agent_message_chunk")
    .map((one) => one.content.text)
    .join("");
  return null;
}

const screen = create(createElement(Panel));
const agent = await ready;
await agent.initialize({
  protocolVersion: 1,
  clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
});
if (old) {
  await agent.loadSession({ sessionId: old, cwd, mcpServers: [] });
  found.session = old;
} else {
  const opened = await agent.newSession({ cwd, mcpServers: [] });
  found.session = opened.sessionId;
  for (const text of ["count to 20", "run touch made.txt", "plan: look, then go"]) {
    const said = { sessionId: found.session, prompt: [{ type: "text", text }] };
    found.stop = (await agent.prompt(said)).stopReason;
  }
  await agent.setSessionMode({ sessionId: found.session, modeId: "readonly" });
}
await new Promise((done) => setTimeout(done, 50)); // until the last state is drawn
screen.unmount();
log(JSON.stringify(found));
process.exit(0);
