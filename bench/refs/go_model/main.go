// A host as Go programs of this kind are: one process to a session, lines in and out. A prompt is
// posted to the model with the conversation so far; each delta becomes one line and one write; the
// turn is appended to a file, which is never synced.
//
//	go_model URL anthropic|openai FILE
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
)

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
	Messages  []message `json:"messages"`
}

type claudeEvent struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage struct {
		InputTokens  int `json:"input_tokens"`
		OutputTokens int `json:"output_tokens"`
	} `json:"usage"`
}

type chatEvent struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
}

type event struct {
	Type  string `json:"type"`
	Delta string `json:"delta,omitempty"`
	ID    string `json:"id,omitempty"`
}

func tell(out event) {
	line, _ := json.Marshal(out)
	os.Stdout.Write(append(line, '\n'))
}

// stream hands every piece of text to say; it is over when the answer is.
func stream(body io.Reader, anthropic bool, say func(string)) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 64*1024), 16*1024*1024)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, "data:") {
			continue
		}
		data := strings.TrimSpace(strings.TrimPrefix(line, "data:"))
		if data == "" || data == "[DONE]" {
			continue
		}
		if anthropic {
			var found claudeEvent
			if err := json.Unmarshal([]byte(data), &found); err != nil {
				return err
			}
			if found.Type == "content_block_delta" && found.Delta.Text != "" {
				say(found.Delta.Text)
			}
		} else {
			var found chatEvent
			if err := json.Unmarshal([]byte(data), &found); err != nil {
				return err
			}
			if len(found.Choices) > 0 && found.Choices[0].Delta.Content != "" {
				say(found.Choices[0].Delta.Content)
			}
		}
	}
	return lines.Err()
}

func main() {
	url, anthropic := os.Args[1], os.Args[2] == "anthropic"
	if anthropic {
		url += "/v1/messages"
	} else {
		url += "/v1/chat/completions"
	}
	file, err := os.OpenFile(os.Args[3], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	var history []message
	prompts := bufio.NewScanner(os.Stdin)
	for prompts.Scan() {
		var asked struct {
			ID     string `json:"id"`
			Prompt string `json:"prompt"`
		}
		if err := json.Unmarshal(prompts.Bytes(), &asked); err != nil {
			panic(err)
		}
		if asked.Prompt == "" {
			tell(event{Type: "pong", ID: asked.ID})
			continue
		}
		history = append(history, message{"user", asked.Prompt})
		body, _ := json.Marshal(request{"m", 8192, true, history})
		ask, _ := http.NewRequest("POST", url, bytes.NewReader(body))
		ask.Header.Set("content-type", "application/json")
		ask.Header.Set("accept", "text/event-stream")
		answer, err := http.DefaultClient.Do(ask)
		if err != nil {
			panic(err)
		}
		var text strings.Builder
		err = stream(answer.Body, anthropic, func(said string) {
			text.WriteString(said)
			tell(event{Type: "text_delta", Delta: said})
		})
		answer.Body.Close()
		if err != nil {
			panic(err)
		}
		history = append(history, message{"assistant", text.String()})
		for _, one := range history[len(history)-2:] {
			line, _ := json.Marshal(one)
			file.Write(append(line, '\n'))
		}
		tell(event{Type: "done", ID: asked.ID})
	}
}
