// What Go daemons of this kind do with streams. Usage: stdio | fanout PATH | drain PATH |
// turns PATH FILE | loop PATH FILE | calls PATH FILE
package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
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

type update struct {
	JSONRPC string       `json:"jsonrpc"`
	Method  string       `json:"method"`
	Params  updateParams `json:"params"`
}

type updateParams struct {
	SessionID string  `json:"sessionId"`
	Update    content `json:"update"`
}

type content struct {
	Kind string `json:"sessionUpdate"`
	Text string `json:"text"`
}

type toolUpdate struct {
	JSONRPC string     `json:"jsonrpc"`
	Method  string     `json:"method"`
	Params  toolParams `json:"params"`
}

type toolParams struct {
	SessionID string   `json:"sessionId"`
	Update    toolCall `json:"update"`
}

type toolCall struct {
	Kind   string         `json:"sessionUpdate"`
	ID     string         `json:"toolCallId"`
	Title  string         `json:"title"`
	Status string         `json:"status"`
	Input  map[string]any `json:"rawInput"`
}

type stored struct {
	Session string `json:"session"`
	Role    string `json:"role"`
	Text    string `json:"text"`
}

const session = "0f8fad5b-d9cb-469f-a165-70867728950e"
const piece = "some text "

func encode(value any) []byte {
	said, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return append(said, '\n')
}

func delta() []byte {
	return encode(update{"2.0", "session/update",
		updateParams{session, content{"agent_message_chunk", piece}}})
}

func scanner(from io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 4096), 1<<20)
	return lines
}

// stdio answers each line on standard output.
func stdio() {
	lines := scanner(os.Stdin)
	for lines.Scan() {
		var asked request
		if json.Unmarshal(lines.Bytes(), &asked) != nil {
			return
		}
		os.Stdout.Write(encode(answer{"2.0", map[string]any{"status": "ok"}, asked.ID}))
	}
}

type hub struct {
	lock  sync.Mutex
	queue []chan []byte
}

// follow writes one subscriber's events: each at once, or all that wait with one flush.
func follow(conn net.Conn, events chan []byte, drain bool) {
	out := bufio.NewWriterSize(conn, 65536)
	for event := range events { // after an error the rest is only taken, never written
		if !drain {
			conn.Write(event)
			continue
		}
		out.Write(event)
		if len(events) == 0 {
			out.Flush()
		}
	}
}

func (all *hub) join() chan []byte {
	events := make(chan []byte, 1024)
	all.lock.Lock()
	all.queue = append(all.queue, events)
	all.lock.Unlock()
	return events
}

// fanout: every connection subscribes; one that sends a line gets everybody N events.
func fanout(conn net.Conn, all *hub, events chan []byte, drain bool) {
	go follow(conn, events, drain)
	lines := scanner(conn)
	for lines.Scan() {
		var asked struct {
			Events int `json:"events"`
		}
		if json.Unmarshal(lines.Bytes(), &asked) != nil {
			break
		}
		all.lock.Lock()
		for made := 0; made < asked.Events; made++ {
			event := delta()
			for _, queue := range all.queue {
				queue <- event
			}
			if made%16 == 15 {
				runtime.Gosched()
			}
		}
		end := []byte("{\"id\":99}\n")
		for _, queue := range all.queue {
			queue <- end
		}
		all.lock.Unlock()
	}
	conn.Close()
	all.lock.Lock()
	for at, queue := range all.queue {
		if queue == events {
			all.queue = append(all.queue[:at], all.queue[at+1:]...)
			break
		}
	}
	all.lock.Unlock()
	close(events)
}

// model says 50 pieces, each handed over: what Go hosts do with a stream that comes from elsewhere.
func model() chan string {
	said := make(chan string)
	go func() {
		for made := 0; made < 50; made++ {
			said <- piece
		}
		close(said)
	}()
	return said
}

// keep stores a turn and answers its prompt.
func keep(conn net.Conn, file *os.File, lock *sync.Mutex, text string, id any) {
	kept := append(encode(stored{session, "user", "go"}),
		encode(stored{session, "assistant", text})...)
	lock.Lock()
	file.Write(kept)
	lock.Unlock()
	conn.Write(encode(answer{"2.0", map[string]any{"stopReason": "end_turn"}, id}))
}

// turns: a prompt gives 50 deltas of the model, two stored lines and an answer.
func turns(conn net.Conn, file *os.File, lock *sync.Mutex) {
	defer conn.Close()
	lines := scanner(conn)
	for lines.Scan() {
		var asked request
		if json.Unmarshal(lines.Bytes(), &asked) != nil {
			return
		}
		var text strings.Builder
		broken := false
		for said := range model() { // to its end, so that the model is not left behind
			text.WriteString(said)
			if _, err := conn.Write(delta()); err != nil {
				broken = true
			}
		}
		if broken {
			return
		}
		keep(conn, file, lock, text.String(), asked.ID)
	}
}

// loop: the same with no model at all: the deltas are made where they are written.
func loop(conn net.Conn, file *os.File, lock *sync.Mutex) {
	defer conn.Close()
	lines := scanner(conn)
	for lines.Scan() {
		var asked request
		if json.Unmarshal(lines.Bytes(), &asked) != nil {
			return
		}
		var text strings.Builder
		for made := 0; made < 50; made++ {
			text.WriteString(piece)
			if _, err := conn.Write(delta()); err != nil {
				return
			}
			runtime.Gosched()
		}
		keep(conn, file, lock, text.String(), asked.ID)
	}
}

func tool(kind, status string) []byte {
	input := map[string]any{"entries": []any{map[string]any{"content": "x"}}}
	return encode(toolUpdate{"2.0", "session/update",
		toolParams{session, toolCall{kind, "call_1", "plan", status, input}}})
}

// calls: a prompt gives a tool call, its end, a word, four stored lines and an answer.
func calls(conn net.Conn, file *os.File, lock *sync.Mutex) {
	defer conn.Close()
	lines := scanner(conn)
	for lines.Scan() {
		var asked request
		if json.Unmarshal(lines.Bytes(), &asked) != nil {
			return
		}
		for _, event := range [][]byte{tool("tool_call", "in_progress"),
			tool("tool_call_update", "completed"), delta()} {
			if _, err := conn.Write(event); err != nil {
				return
			}
			runtime.Gosched()
		}
		var kept []byte
		for _, role := range []string{"user", "call", "result", "assistant"} {
			kept = append(kept, encode(stored{session, role, "plan x"})...)
		}
		lock.Lock()
		file.Write(kept)
		lock.Unlock()
		conn.Write(encode(answer{"2.0", map[string]any{"stopReason": "end_turn"}, asked.ID}))
	}
}

func main() {
	mode := os.Args[1]
	if mode == "stdio" {
		stdio()
		return
	}
	listener, err := net.Listen("unix", os.Args[2])
	if err != nil {
		panic(err)
	}
	var file *os.File
	if mode == "turns" || mode == "loop" || mode == "calls" {
		file, err = os.OpenFile(os.Args[3], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
	}
	var lock sync.Mutex
	var all hub
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		if mode == "turns" {
			go turns(conn, file, &lock)
		} else if mode == "loop" {
			go loop(conn, file, &lock)
		} else if mode == "calls" {
			go calls(conn, file, &lock)
		} else {
			go fanout(conn, &all, all.join(), mode == "drain")
		}
	}
}
