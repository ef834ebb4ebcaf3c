package openresponses

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// resource is a response. Every field is always present; those that may be null are pointers,
// or JSON.
type resource struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	CreatedAt          int64             `json:"created_at"`
	CompletedAt        *int64            `json:"completed_at"`
	Status             string            `json:"status"`
	IncompleteDetails  *incomplete       `json:"incomplete_details"`
	Model              string            `json:"model"`
	PreviousResponseID *string           `json:"previous_response_id"`
	Conversation       *conversationRef  `json:"conversation,omitzero"`
	Instructions       *string           `json:"instructions"`
	Output             []transform.Item  `json:"output"`
	Error              *responseError    `json:"error"`
	Tools              []toolResource    `json:"tools"`
	ToolChoice         events.JSON       `json:"tool_choice"`
	Truncation         string            `json:"truncation"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	Text               events.JSON       `json:"text"`
	TopP               float64           `json:"top_p"`
	PresencePenalty    float64           `json:"presence_penalty"`
	FrequencyPenalty   float64           `json:"frequency_penalty"`
	TopLogprobs        int64             `json:"top_logprobs"`
	Temperature        float64           `json:"temperature"`
	Reasoning          *reasoningConfig  `json:"reasoning"`
	Usage              *usage            `json:"usage"`
	MaxOutputTokens    *int64            `json:"max_output_tokens"`
	MaxToolCalls       *int64            `json:"max_tool_calls"`
	Store              bool              `json:"store"`
	Background         bool              `json:"background"`
	ServiceTier        string            `json:"service_tier"`
	Metadata           map[string]string `json:"metadata"`
	SafetyIdentifier   *string           `json:"safety_identifier"`
	PromptCacheKey     *string           `json:"prompt_cache_key"`
	User               string            `json:"user,omitzero"`
}

type (
	incomplete struct {
		Reason string `json:"reason"`
	}
	conversationRef struct {
		ID string `json:"id"`
	}
	responseError struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	reasoningConfig struct {
		Effort  *string `json:"effort"`
		Summary *string `json:"summary"`
	}
	toolResource struct {
		Type        string      `json:"type"`
		Name        string      `json:"name"`
		Description *string     `json:"description"`
		Parameters  events.JSON `json:"parameters"`
		Strict      *bool       `json:"strict"`
	}
	usage struct {
		InputTokens        int64 `json:"input_tokens"`
		InputTokensDetails struct {
			CachedTokens int64 `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutputTokens        int64 `json:"output_tokens"`
		OutputTokensDetails struct {
			ReasoningTokens int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
		TotalTokens int64 `json:"total_tokens"`
	}
)

// The states of a response.
const (
	queuedStatus     = "queued"
	inProgressStatus = "in_progress"
	completedStatus  = "completed"
	failedStatus     = "failed"
	incompleteStatus = "incomplete"
	cancelledStatus  = "cancelled"
)

// Why a response is incomplete, where the protocol has no word for it.
const (
	cancelledReason = "cancelled"
	approvalReason  = "approval_required" // its run waits for people to approve calls
)

// newResource returns a response without what its execution has done.
func newResource(id string, e *echo, s *events.RunSettings, agent string) *resource {
	if e == nil {
		e = &echo{Model: agent}
	}
	if s == nil {
		s = &events.RunSettings{}
	}
	p := e.Parameters
	r := &resource{
		ID: id, Object: "response", Status: inProgressStatus, Model: e.Model, Output: []transform.Item{}, Tools: []toolResource{}, ToolChoice: p.ToolChoice,
		Truncation: cmp.Or(p.Truncation, "disabled"), ParallelToolCalls: p.ParallelToolCalls == nil || *p.ParallelToolCalls, Text: p.Text,
		TopP: valueOr(p.TopP, 1), PresencePenalty: valueOr(p.PresencePenalty, 0), FrequencyPenalty: valueOr(p.FrequencyPenalty, 0),
		TopLogprobs: valueOr(p.TopLogprobs, 0), Temperature: valueOr(s.Temperature, 1), MaxToolCalls: p.MaxToolCalls, Store: !e.Temporary,
		Background: e.Background, ServiceTier: "default", Metadata: e.Metadata, SafetyIdentifier: p.SafetyIdentifier, PromptCacheKey: e.PromptCacheKey, User: e.User,
	}
	r.ToolChoice = withMode(r.ToolChoice)
	r.Text = withFormat(r.Text)
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	if e.PreviousResponseID != "" {
		r.PreviousResponseID = &e.PreviousResponseID
	}
	if e.Conversation != "" {
		r.Conversation = &conversationRef{e.Conversation}
	}
	if s.Instructions != "" {
		r.Instructions = &s.Instructions
	}
	if s.MaxOutputTokens != 0 {
		r.MaxOutputTokens = &s.MaxOutputTokens
	}
	if p.Reasoning != nil {
		r.Reasoning = &reasoningConfig{}
		_ = decode(p.Reasoning, r.Reasoning) // fields of another form are shown as null
	}
	for _, t := range s.Tools {
		tool := toolResource{Type: "function", Name: t.Name, Parameters: t.Parameters, Strict: &t.Strict}
		if t.Description != "" {
			tool.Description = &t.Description
		}
		if tool.Parameters == nil {
			tool.Parameters = events.JSON("null")
		}
		r.Tools = append(r.Tools, tool)
	}
	return r
}

func valueOr[T any](v *T, or T) T {
	if v == nil {
		return or
	}
	return *v
}

// withFormat returns the text configuration of a response, which has a format.
func withFormat(text events.JSON) events.JSON {
	fields := map[string]events.JSON{}
	if jsontext.Value(text).Kind() == '{' {
		_ = decode(text, &fields) // it is an object
	}
	fields["format"] = wholeFormat(fields["format"])
	if jsontext.Value(fields["verbosity"]).Kind() == 'n' {
		delete(fields, "verbosity")
	}
	return marshal(fields)
}

// wholeFormat returns the format of a text with what the protocol wants of it: a schema has a
// description, which may be null, and says whether it is strict.
func wholeFormat(format events.JSON) events.JSON {
	fields := map[string]events.JSON{}
	if jsontext.Value(format).Kind() != '{' || decode(format, &fields) != nil {
		return events.JSON(`{"type":"text"}`)
	}
	if textOf(fields["type"]) != schemaFormat {
		return format
	}
	if fields["description"] == nil {
		fields["description"] = events.JSON("null")
	}
	if k := jsontext.Value(fields["strict"]).Kind(); k != 't' && k != 'f' {
		fields["strict"] = events.JSON("false")
	}
	return marshal(fields)
}

// withMode returns the tool choice of a response: auto if its request says nothing. One among
// allowed tools has a mode.
func withMode(choice events.JSON) events.JSON {
	fields := map[string]events.JSON{}
	switch {
	case choice == nil:
		return events.JSON(`"auto"`)
	case jsontext.Value(choice).Kind() != '{' || decode(choice, &fields) != nil || textOf(fields["type"]) != allowedTools:
		return choice
	}
	if textOf(fields["mode"]) == "" {
		fields["mode"] = events.JSON(`"auto"`)
	}
	return marshal(fields)
}

// resourceOf returns the response of a leg as it is now. Its output is there when the leg has ended.
func resourceOf(ctx context.Context, c *client.Client, l leg, showServer bool) (*resource, error) {
	r := resourceAt(l)
	if runstream.IsQueued(l.x) {
		blocked, err := blockedBy(ctx, c, l.x)
		if err != nil || blocked == nil {
			return r, err
		}
		return r, r.blocked(ctx, c, blocked)
	}
	if !l.over() {
		return r, nil
	}
	var err error
	if r.Output, _, err = l.output(ctx, c, showServer || showsServer(l.x)); err != nil {
		return nil, err
	}
	if last := len(r.Output) - 1; last >= 0 && r.Output[last].Type == messageItem && (r.Status == incompleteStatus || r.Status == cancelledStatus) {
		r.Output[last].Status = incompleteStatus // as its stream said
	}
	return r, nil
}

// blocked makes the response one that waits for another run of its conversation, which waits for
// people: it shows what they are asked.
func (r *resource) blocked(ctx context.Context, c *client.Client, by *leg) (err error) {
	r.Status, r.IncompleteDetails = incompleteStatus, &incomplete{approvalReason}
	r.Output, err = by.requests(ctx, c)
	return err
}

// resourceAt returns the response of a leg without its output.
func resourceAt(l leg) *resource {
	x := l.x
	r := newResource(l.id(), echoOf(x), x.Settings, x.AgentID)
	r.CreatedAt = unix(x.CreatedAt)
	if before := l.before(); before != nil {
		r.CreatedAt, r.PreviousResponseID = unix(before.AnsweredAt()), new(leg{x: x, n: l.n - 1}.id())
	}
	if u := x.Usage; u != nil && (u.InputTokens != 0 || u.OutputTokens != 0 || u.TotalTokens != 0) { // else the model said nothing of it
		r.Usage = &usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, TotalTokens: max(u.TotalTokens, u.InputTokens+u.OutputTokens)}
		r.Usage.InputTokensDetails.CachedTokens, r.Usage.OutputTokensDetails.ReasoningTokens = u.CachedTokens, u.ReasoningTokens
	}
	switch {
	case l.waits() && l.pause().Approves():
		r.Status, r.IncompleteDetails = incompleteStatus, &incomplete{approvalReason}
	case l.waits(): // as with other function calls, it is for the caller to go on
		r.Status, r.CompletedAt = completedStatus, new(unix(l.pause().Calls[0].RequestedAt))
	case !x.Finished && x.Token == 0:
		r.Status = queuedStatus
	case !x.Finished:
	case x.Status == events.ExecutionFailed && x.Stopped:
		r.Status, r.IncompleteDetails = cancelledStatus, &incomplete{cancelledReason}
	case x.Status == events.ExecutionFailed:
		r.Status, r.Error = failedStatus, failureOf(x)
	case x.FinishReason != "":
		r.Status, r.IncompleteDetails = incompleteStatus, &incomplete{incompleteReason(x.FinishReason)}
	default:
		r.Status = completedStatus
		r.CompletedAt = new(unix(cmp.Or(x.UpdatedAt, x.CreatedAt)))
	}
	return r
}

// failureOf returns why a run has failed.
func failureOf(x *events.Execution) *responseError {
	e := &responseError{"server_error", cmp.Or(string(x.ErrorCode), "server_error"), cmp.Or(x.ErrorText, "the run failed")}
	switch x.ErrorCode {
	case events.FailedRateLimit, events.FailedQuota:
		e.Type = "too_many_requests"
	case events.FailedPolicy:
		e.Type = "invalid_request"
	}
	return e
}

// incompleteReason returns why a response is incomplete, in the words of the protocol.
func incompleteReason(finish string) string {
	switch finish {
	case events.FinishLength:
		return "max_output_tokens"
	case events.FinishContentFilter:
		return "content_filter"
	}
	return finish
}

// showsServer reports whether the request of an execution asked for the tools of the server.
func showsServer(x *events.Execution) bool {
	e := echoOf(x)
	return e != nil && slices.Contains(e.Include, serverTools)
}

func unix(at string) int64 {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return 0
	}
	return t.Unix()
}
