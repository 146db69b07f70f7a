// What Go daemons of this kind do: a scanner, encoding/json, one write per answer. Usage: PATH.
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

func serve(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 64*1024), 1<<20)
	for lines.Scan() {
		var asked request
		if json.Unmarshal(lines.Bytes(), &asked) != nil {
			return
		}
		var given params
		if asked.Params != nil && json.Unmarshal(asked.Params, &given) != nil {
			return
		}
		said, _ := json.Marshal(answer{"2.0", map[string]any{"status": "ok", "n": given.Cursor}, asked.ID})
		if _, err := conn.Write(append(said, '\n')); err != nil {
			return
		}
	}
}

func main() {
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go serve(conn)
	}
}
