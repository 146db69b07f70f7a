// A typed client made from the daemon's OpenAPI document: launch, approve, read, follow.
// Run as: node humanlayer_rest.ts ADDRESS TOKEN FOLDER
import createClient from "openapi-fetch"
import type { paths } from "./humanlayer_rest.gen.ts"

const [address, token, folder] = process.argv.slice(2)
const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {}
const client = createClient<paths>({ baseUrl: `${address}/api/v1`, headers })

const health = await client.GET("/health")
const heard: string[] = []
const stream = await fetch(`${address}/api/v1/stream/events`, { headers })
const reading = (async () => {
  let rest = ""
  for await (const chunk of stream.body!.pipeThrough(new TextDecoderStream())) {
    rest += chunk
    const parts = rest.split("\n\n")
    rest = parts.pop() ?? ""
    for (const part of parts) {
      if (!part.startsWith("data: ")) continue
      const event = JSON.parse(part.slice(6))
      heard.push(event.type)
      if (event.data.new_status === "completed") return
    }
  }
})()

const made = await client.POST("/sessions", {
  body: { query: "run echo hi > made.txt", working_dir: folder, title: "typed" },
})
if (!made.data) throw new Error(JSON.stringify(made.error))
const id = made.data.data.session_id

let approved = ""
while (!approved) {
  const open = await client.GET("/approvals", { params: { query: { sessionId: id } } })
  const first = open.data?.data[0]
  if (!first) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    continue
  }
  const decided = await client.POST("/approvals/{id}/decide", {
    params: { path: { id: first.id } },
    body: { decision: "approve" },
  })
  if (!decided.data?.data.success) throw new Error(JSON.stringify(decided.error))
  approved = first.tool_name
}
await reading

const session = await client.GET("/sessions/{id}", { params: { path: { id } } })
const messages = await client.GET("/sessions/{id}/messages", { params: { path: { id } } })
const missing = await client.GET("/sessions/{id}", { params: { path: { id: "nope" } } })
console.log(
  JSON.stringify({
    health: health.data?.status,
    status: session.data?.data.status,
    title: session.data?.data.title,
    approved,
    kinds: messages.data?.data.map((one) => one.event_type),
    heard: [...new Set(heard)],
    missing: missing.error?.error.code,
  }),
)
process.exit(0)
