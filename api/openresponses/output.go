package openresponses

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/internal/attachment"
)

// The types of items.
const (
	messageItem    = "message"
	reasoningItem  = "reasoning"
	callItem       = "function_call"
	callOutputItem = "function_call_output"
	serverCallItem = "mcp_call"
	requestItem    = "mcp_approval_request"
	responseItem   = "mcp_approval_response"
)

// serverLabel is the server_label of tools that the server runs.
const serverLabel = "skein"

// numbering numbers the items of one item of a thread, so that a stream and a document of it
// have the same ids.
type numbering struct {
	base               string // the thread's item, without its prefix
	messages, thoughts int
	others             int
}

func numberingOf(item string) numbering {
	return numbering{base: strings.TrimPrefix(item, events.ItemPrefix)}
}

// message returns the id of the next message.
func (n *numbering) message() string {
	n.messages++
	return "msg_" + n.base + "_" + strconv.Itoa(n.messages-1)
}

// reasoning returns the id of the next reasoning.
func (n *numbering) reasoning() string {
	n.thoughts++
	return "rs_" + n.base + "_" + strconv.Itoa(n.thoughts-1)
}

// other returns the id of the next item of another type.
func (n *numbering) other() string {
	n.others++
	return "it_" + n.base + "_" + strconv.Itoa(n.others-1)
}

// call returns the id of a call.
func (n *numbering) call(prefix, callID string) string {
	sum := sha256.Sum256([]byte(callID))
	return prefix + n.base + "_" + hex.EncodeToString(sum[:5])
}

// baseOf returns the thread's item that an id names, which may be one of its parts.
func baseOf(id string) (item string, part bool) {
	for _, prefix := range []string{"msg_", "rs_", "fc_", "mcp_", "it_", requestPrefix} {
		rest, ok := strings.CutPrefix(id, prefix)
		at := strings.LastIndexByte(rest, '_')
		if ok && at > 0 && events.ValidID(events.ItemPrefix+rest[:at]) {
			return events.ItemPrefix + rest[:at], true
		}
	}
	return id, false
}

// piecesOf returns an item of a thread as items of Open Responses. An answer becomes as many as
// its reactor wrote; any other item is one, with its own id. What the server called is left
// out, or shown as mcp_call.
func piecesOf(i *events.Item, showServer bool) []transform.Item {
	answer := i.Type == events.Message && i.Role == events.Assistant
	if i.ThreadID != "" {
		served := *i
		served.Content, served.Metadata = attachment.Served(i.Content, i.ThreadID), attachment.Served(i.Metadata, i.ThreadID)
		i = &served
	}
	list, err := transform.Form{Split: true}.Write(i)
	if err != nil {
		return nil
	}
	if !answer || len(list) == 1 && list[0].Type == messageItem && !written(i) {
		for n := range list {
			list[n].ID = i.ID
			list[n] = completed(list[n])
		}
		return list
	}
	number := numberingOf(i.ID)
	return number.items(list, i.Content, func(string) bool { return showServer })
}

// pieces returns parts of a step as the next items. shows reports which calls that the
// server makes are shown.
func (n *numbering) pieces(x *events.Execution, parts []events.JSON, shows func(call string) bool) []transform.Item {
	i := &events.Item{
		ID: x.ReactionItemID, Type: events.Message, Role: events.Assistant, Status: events.ItemCompleted, Content: attachment.Served(marshal(parts), x.ThreadID),
	}
	list, err := transform.Form{Split: true}.Write(i)
	if err != nil {
		return []transform.Item{}
	}
	// The server makes its calls when the model has answered: a stream shows them after its items.
	all := n.items(list, i.Content, shows)
	slices.SortStableFunc(all, func(a, b transform.Item) int { return cmp.Compare(turn(a), turn(b)) })
	return all
}

// turn returns 1 for a call that the server has made, and 0 for what the model has written.
func turn(o transform.Item) int {
	if isServerCall(o) {
		return 1
	}
	return 0
}

// isServerCall reports whether an item is a call that the server has made. A provider makes calls of
// the same type, which are numbered as its other items are.
func isServerCall(o transform.Item) bool {
	return o.Type == serverCallItem && strings.HasPrefix(o.ID, "mcp_")
}

// items returns the items of an answer with their ids, from its content.
func (n *numbering) items(list []transform.Item, content events.JSON, shows func(call string) bool) []transform.Item {
	callers, failures := callersOf(content)
	out := []transform.Item{}
	for at := 0; at < len(list); at++ {
		o := list[at]
		switch o.Type {
		case messageItem:
			o.ID = n.message()
		case reasoningItem:
			o.ID = n.reasoning()
		case callItem:
			answered := at+1 < len(list) && list[at+1].Type == callOutputItem && list[at+1].CallID == o.CallID
			if callers[o.CallID] {
				o.ID = n.call("fc_", o.CallID)
				break
			}
			if answered {
				at++
			}
			if !shows(o.CallID) {
				continue
			}
			o.ID = n.call("mcp_", o.CallID)
			var output events.JSON
			if answered {
				output = list[at].Output
			}
			o = serverCall(o, output, failures[o.CallID])
		default:
			o.ID = n.other()
		}
		out = append(out, completed(o))
	}
	return out
}

// written reports whether a run wrote the item: no caller has added it as it is.
func written(i *events.Item) bool {
	return i.Metadata == nil || !strings.Contains(string(i.Metadata), ownItem)
}

// ownItem is the key in the metadata of items that a request or a conversation has added.
const ownItem = "skein.input"

// serverCall returns a call as one that the server makes, with its output, or with the reason why it
// failed.
func serverCall(o transform.Item, output events.JSON, failure string) transform.Item {
	o.Type, o.CallID, o.Status, o.Output = serverCallItem, "", "completed", output
	o.Rest = map[string]events.JSON{"server_label": events.Quote(serverLabel), "error": events.JSON("null")}
	if failure != "" {
		o.Status, o.Output, o.Rest["error"] = "failed", events.JSON("null"), events.Quote(failure)
	}
	return o
}

// callersOf returns the calls among parts that the caller of the run executes, and the reasons why
// others failed, by call.
func callersOf(content events.JSON) (callers map[string]bool, failures map[string]string) {
	var parts []struct {
		CallID    events.JSON `json:"toolCallId"`
		State     events.JSON `json:"state"`
		ErrorText events.JSON `json:"errorText"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return nil, nil
	}
	callers, failures = map[string]bool{}, map[string]string{}
	for _, p := range parts {
		if textOf(p.State) == events.CallerState {
			callers[textOf(p.CallID)] = true
		} else if why := textOf(p.ErrorText); why != "" {
			failures[textOf(p.CallID)] = why
		}
	}
	return callers, failures
}

// completed fills in what clients need in an item.
func completed(o transform.Item) transform.Item {
	if o.Status == "" && o.Type != reasoningItem {
		o.Status = "completed"
	}
	o.Origin = nil
	delete(o.Rest, transform.Provider)
	switch o.Type {
	case messageItem, "":
		o.Type = messageItem
		if jsontext.Value(o.Content).Kind() == '"' {
			kind := events.InputText
			if o.Role == events.Assistant {
				kind = events.OutputText
			}
			o.Content = marshal([]map[string]string{{"type": kind, "text": textOf(o.Content)}})
		}
		o.Content = wholeParts(o.Content)
	case callOutputItem:
		if jsontext.Value(o.Output).Kind() == '[' {
			o.Output = wholeParts(o.Output)
		}
	case reasoningItem:
		if text, ok := o.Rest["text"]; ok && jsontext.Value(o.Content).Kind() != '[' {
			o.Content = marshal([]map[string]events.JSON{{"type": events.JSON(`"reasoning_text"`), "text": text}})
		}
		o.Rest = nil
		if jsontext.Value(o.Content).Kind() != '[' {
			o.Content = nil
		}
		if jsontext.Value(o.Summary).Kind() != '[' {
			o.Summary = events.JSON("[]")
		}
		if jsontext.Value(o.EncryptedContent).Kind() != '"' {
			o.EncryptedContent = nil
		}
	case callItem:
		o.Rest = nil
		if o.Arguments == nil {
			o.Arguments = new("")
		}
	}
	return o
}

// wholeParts fills in what clients need in the parts of a message, or of the output of a call.
func wholeParts(content events.JSON) events.JSON {
	var parts []map[string]events.JSON
	if json.Unmarshal(content, &parts) != nil {
		parts = []map[string]events.JSON{}
	}
	for _, p := range parts {
		switch textOf(p["type"]) {
		case events.OutputText:
			for _, name := range []string{"annotations", "logprobs"} {
				if jsontext.Value(p[name]).Kind() != '[' {
					p[name] = events.JSON("[]")
				}
			}
		case events.InputImage:
			if p["detail"] == nil {
				p["detail"] = events.JSON(`"auto"`)
			}
		}
	}
	return marshal(parts)
}

// marshal encodes values that were decoded from JSON.
func marshal(v any) events.JSON {
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil { // it was JSON
		return nil
	}
	return raw
}
