// One prompt over `dragoman rpc`, standard library only: go run . "list the files here"
// Text goes to stdout, the rest to stderr. Set DRAGOMAN to run another program.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

type frame struct {
	Type, Delta, Name, Message, Error string
	Success                           bool
}

func main() {
	words := strings.Fields(os.Getenv("DRAGOMAN"))
	if len(words) == 0 {
		words = []string{"dragoman"}
	}
	rpc := exec.Command(words[0], append(words[1:], "rpc")...)
	rpc.Stderr = os.Stderr
	in, _ := rpc.StdinPipe()
	out, _ := rpc.StdoutPipe()
	if err := rpc.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	send, status := json.NewEncoder(in), 0
	if token := os.Getenv("ZOTCORE_RPC_TOKEN"); token != "" {
		send.Encode(map[string]string{"id": "0", "type": "hello", "token": token})
	}
	send.Encode(map[string]string{"id": "1", "type": "prompt", "message": strings.Join(os.Args[1:], " ")})
	lines := bufio.NewReader(out) // no Scanner: its lines are limited
	for line, err := lines.ReadBytes('\n'); err == nil; line, err = lines.ReadBytes('\n') {
		var f frame
		json.Unmarshal(line, &f)
		switch {
		case f.Type == "text_delta":
			fmt.Print(f.Delta)
		case f.Type == "tool_call":
			fmt.Fprintf(os.Stderr, "[%s]\n", f.Name)
		case f.Type == "error", f.Type == "response" && !f.Success:
			fmt.Fprintln(os.Stderr, "error:", f.Message+f.Error)
			status = 1
		}
		if f.Type == "done" || f.Type == "response" && !f.Success {
			in.Close() // the end of input: it leaves
		}
	}
	fmt.Println()
	if rpc.Wait() != nil {
		status = 1
	}
	os.Exit(status)
}
