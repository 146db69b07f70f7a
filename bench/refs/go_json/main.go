// What Go daemons of this kind do: a scanner, encoding/json, one write per answer.
// With --flush-when-drained: one write for all that was answered when nothing more has arrived.
// Usage: [--flush-when-drained] PATH
package main

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
)

type request struct {
	JSONRPC string          `json:"jsonrpc"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	ID      any             `json:"id"`
}

type params struct {
	SessionID string `json:"session_id"`
	Cursor    int    `json:"cursor"`
}

type answer struct {
	JSONRPC string         `json:"jsonrpc"`
	Result  map[string]any `json:"result"`
	ID      any            `json:"id"`
}

func reply(line []byte) ([]byte, bool) {
	var asked request
	if json.Unmarshal(line, &asked) != nil {
		return nil, false
	}
	var given params
	if asked.Params != nil && json.Unmarshal(asked.Params, &given) != nil {
		return nil, false
	}
	said, err := json.Marshal(answer{"2.0", map[string]any{"status": "ok", "n": given.Cursor}, asked.ID})
	return append(said, '\n'), err == nil
}

func serve(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 64*1024), 1<<20)
	for lines.Scan() {
		said, ok := reply(lines.Bytes())
		if !ok {
			return
		}
		if _, err := conn.Write(said); err != nil {
			return
		}
	}
}

// serveDrained collects answers until what has arrived is used up.
func serveDrained(conn net.Conn) {
	defer conn.Close()
	from := bufio.NewReaderSize(conn, 64*1024)
	to := bufio.NewWriterSize(conn, 64*1024)
	for {
		line, err := from.ReadSlice('\n')
		if err != nil {
			return
		}
		said, ok := reply(line)
		if !ok {
			return
		}
		to.Write(said)
		if from.Buffered() == 0 && to.Flush() != nil {
			return
		}
	}
}

func main() {
	path, handle := os.Args[1], serve
	if path == "--flush-when-drained" {
		path, handle = os.Args[2], serveDrained
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go handle(conn)
	}
}
