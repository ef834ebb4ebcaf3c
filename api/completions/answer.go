package completions

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// completion is an answer, or a chunk of one.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitzero"`
}

// choice is the only choice. Exactly one of Message and Delta is set.
type choice struct {
	Index        int64    `json:"index"`
	Message      *content `json:"message,omitzero"`
	Delta        *delta   `json:"delta,omitzero"`
	Logprobs     *string  `json:"logprobs"` // always null: some clients read it
	FinishReason *string  `json:"finish_reason"`
	Skein        *skein   `json:"skein,omitzero"`
}

// content is the message of the assistant.
type content struct {
	Role      events.Role `json:"role"`
	Content   *string     `json:"content"`
	Refusal   *string     `json:"refusal"`
	Reasoning string      `json:"reasoning_content,omitzero"`
	ToolCalls []callDelta `json:"tool_calls,omitempty"`
}

// delta is more of the message.
type delta struct {
	Role      events.Role `json:"role,omitzero"`
	Content   *string     `json:"content,omitzero"`
	Refusal   *string     `json:"refusal,omitzero"`
	Reasoning string      `json:"reasoning_content,omitzero"`
	ToolCalls []callDelta `json:"tool_calls,omitempty"`
}

// callDelta is a call, or more of one.
type callDelta struct {
	Index    *int64    `json:"index,omitzero"` // of a chunk
	ID       string    `json:"id,omitzero"`
	Type     string    `json:"type,omitzero"`
	Function *function `json:"function"`
}

type function struct {
	Name      string `json:"name,omitzero"`
	Arguments string `json:"arguments"`
}

// skein says what a run waits for.
type skein struct {
	ThreadID    string    `json:"threadId"`
	ExecutionID string    `json:"executionId"`
	Waiting     []waiting `json:"waiting"`
}

type waiting struct {
	CallID   string `json:"callId"`
	Tool     string `json:"tool"`
	Kind     string `json:"kind"` // approval or question
	Question string `json:"question,omitzero"`
}

type usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
	PromptDetails    struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func usageOf(u *events.Usage) *usage {
	if u == nil {
		u = &events.Usage{}
	}
	out := &usage{PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, TotalTokens: max(u.TotalTokens, u.InputTokens+u.OutputTokens)}
	out.PromptDetails.CachedTokens, out.CompletionDetails.ReasoningTokens = u.CachedTokens, u.ReasoningTokens
	return out
}

// finishOf returns why an answer has ended, and what its run waits for.
func finishOf(run *openresponses.Run, a *openresponses.Answer, calls bool) (reason string, wait *skein) {
	if len(a.Waiting) > 0 {
		wait = &skein{ThreadID: run.Thread(), ExecutionID: run.Execution()}
		for _, one := range a.Waiting {
			kind := "approval"
			if one.Reason == events.ApprovalQuestion {
				kind = "question"
			}
			wait.Waiting = append(wait.Waiting, waiting{one.CallID, one.Name, kind, one.Question})
		}
		return "stop", wait
	}
	switch a.Reason {
	case "max_output_tokens":
		return "length", nil
	case "content_filter":
		return "content_filter", nil
	}
	if calls {
		return "tool_calls", nil
	}
	return "stop", nil
}

// messageOf returns an answer as a message.
func messageOf(output []transform.Item) *content {
	var text, refusal strings.Builder
	m := &content{Role: events.Assistant}
	for i := range output {
		switch o := &output[i]; o.Type {
		case messageItem:
			var parts []struct {
				Type    string `json:"type"`
				Text    string `json:"text"`
				Refusal string `json:"refusal"`
			}
			_ = json.Unmarshal(o.Content, &parts) // parts that Skein wrote
			for _, p := range parts {
				text.WriteString(p.Text)
				refusal.WriteString(p.Refusal)
			}
		case reasoningItem:
			var parts []struct {
				Text string `json:"text"`
			}
			_ = json.Unmarshal(o.Summary, &parts) // likewise
			for _, p := range parts {
				m.Reasoning += p.Text
			}
		case callItem:
			m.ToolCalls = append(m.ToolCalls, callDelta{ID: o.CallID, Type: functionType, Function: &function{o.Name, *o.Arguments}})
		}
	}
	if text.Len() > 0 || len(m.ToolCalls) == 0 && refusal.Len() == 0 {
		m.Content = new(text.String())
	}
	if refusal.Len() > 0 {
		m.Refusal = new(refusal.String())
	}
	return m
}

// deltaOf returns what is new of an answer.
func deltaOf(s openresponses.Shown) *delta {
	switch {
	case s.Reasoning != "":
		return &delta{Reasoning: s.Reasoning}
	case s.Refusal != "":
		return &delta{Refusal: &s.Refusal}
	}
	return &delta{Content: &s.Text}
}

// callsOf returns the calls of an answer as chunks: for each what begins it, and its arguments.
func callsOf(output []transform.Item) (list []*delta) {
	index := int64(0)
	for i := range output {
		o := &output[i]
		if o.Type != callItem {
			continue
		}
		n := index
		list = append(list, &delta{ToolCalls: []callDelta{{&n, o.CallID, functionType, &function{o.Name, ""}}}})
		if *o.Arguments != "" {
			list = append(list, &delta{ToolCalls: []callDelta{{Index: &n, Function: &function{"", *o.Arguments}}}})
		}
		index++
	}
	return list
}
