// The least a Node WebSocket server does: `http` upgrade, short frames, JSON.parse. Usage: PORT
const crypto = require("crypto");
const http = require("http");

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

// Whole frames of up to 64 KiB; gives back what is left over.
function eachFrame(data, take) {
  while (data.length >= 6) {
    let size = data[1] & 0x7f;
    let at = 2;
    if (size === 126) {
      size = data.readUInt16BE(2);
      at = 4;
    }
    if (data.length < at + 4 + size) break;
    const mask = data.subarray(at, at + 4);
    const body = Buffer.from(data.subarray(at + 4, at + 4 + size));
    for (let i = 0; i < size; i++) body[i] ^= mask[i & 3];
    take(data[0] & 0x0f, body);
    data = data.subarray(at + 4 + size);
  }
  return data;
}

function frame(text) {
  const body = Buffer.from(text);
  const head = body.length < 126 ? [0x81, body.length] : [0x81, 126, body.length >> 8, body.length & 0xff];
  return Buffer.concat([Buffer.from(head), body]);
}

const server = http.createServer((request, response) => response.writeHead(426).end());
server.on("upgrade", (request, socket) => {
  const key = request.headers["sec-websocket-key"];
  const accept = crypto.createHash("sha1").update(key + GUID).digest("base64");
  socket.setNoDelay(true);
  socket.write(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  let rest = Buffer.alloc(0);
  socket.on("error", () => socket.destroy());
  socket.on("data", (data) => {
    rest = eachFrame(rest.length ? Buffer.concat([rest, data]) : data, (kind, body) => {
      if (kind === 8) return socket.end();
      const message = JSON.parse(body.toString());
      socket.write(frame(JSON.stringify({ jsonrpc: "2.0", result: { status: "ok" }, id: message.id })));
    });
  });
});
server.listen(Number(process.argv[2]), "127.0.0.1");
