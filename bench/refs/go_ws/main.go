// The usual Go WebSocket server: gorilla/websocket and encoding/json, one message per answer.
// Usage: PORT
package main

import (
	"encoding/json"
	"net/http"
	"os"

	"github.com/gorilla/websocket"
)

type request struct {
	JSONRPC string          `json:"jsonrpc"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	ID      any             `json:"id"`
}

type answer struct {
	JSONRPC string         `json:"jsonrpc"`
	Result  map[string]any `json:"result"`
	ID      any            `json:"id"`
}

var upgrader = websocket.Upgrader{ReadBufferSize: 4096, WriteBufferSize: 4096}

func serve(response http.ResponseWriter, asking *http.Request) {
	conn, err := upgrader.Upgrade(response, asking, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			return
		}
		var asked request
		if json.Unmarshal(data, &asked) != nil {
			return
		}
		said, err := json.Marshal(answer{"2.0", map[string]any{"status": "ok"}, asked.ID})
		if err != nil || conn.WriteMessage(websocket.TextMessage, said) != nil {
			return
		}
	}
}

func main() {
	http.HandleFunc("/", serve)
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
