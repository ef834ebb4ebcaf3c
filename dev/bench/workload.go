package bench

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

const tenant = "bench"

// eventsPerCommit is how many events a commit of the workload has.
const eventsPerCommit = 12

const question = "Please move my booking to the morning flight on the 14th and tell me what it costs."
const answerText = "Done: you are on the 07:40 flight on the 14th. The change costs 35 dollars, charged to your card."

// opening is the data of a thread.commit that creates a thread with one message.
const opening = `{"commands":[{"command":"thread.create","data":{}},` +
	`{"command":"item.create","data":{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + question + `"}]}}}]}`

// turn returns the commands of one turn with one tool call. The nonce makes the ids of
// different turns unique.
func turn(nonce string) []byte {
	return fmt.Appendf(nil, `[`+
		`{"command":"item.create","data":{"item":{"id":"itm_u%[1]s","type":"message","role":"user","content":[{"type":"input_text","text":"%[2]s"}]}}},`+
		`{"command":"execution.create","data":{"id":"exe_%[1]s","triggerItemId":"itm_u%[1]s","reactionItemId":"itm_a%[1]s"}},`+
		`{"command":"step.create","data":{"id":"stp_%[1]s","executionId":"exe_%[1]s"}},`+
		`{"command":"part.put","data":{"stepId":"stp_%[1]s","idx":0,"type":"output_text","part":{"type":"output_text","text":"I will change the booking."}}},`+
		`{"command":"part.put","data":{"stepId":"stp_%[1]s","idx":1,"type":"tool-change_flight","part":{"type":"tool-change_flight","toolCallId":"tc_1","input":{"booking":"ZX81QL","flight":"HAT083"}}}},`+
		`{"command":"item.create","data":{"item":{"id":"itm_x%[1]s","type":"action_execute","content":{"callId":"tc_1","name":"change_flight","arguments":{"booking":"ZX81QL","flight":"HAT083"}}}}},`+
		`{"command":"item.create","data":{"item":{"id":"itm_r%[1]s","type":"action_result","content":{"callId":"tc_1","output":{"ok":true,"fee":35}}}}},`+
		`{"command":"part.put","data":{"stepId":"stp_%[1]s","idx":1,"type":"tool-change_flight","part":{"type":"tool-change_flight","toolCallId":"tc_1","state":"output-available","output":{"ok":true,"fee":35}}}},`+
		`{"command":"item.create","data":{"item":{"id":"itm_a%[1]s","type":"message","role":"assistant","status":"pending","content":[{"type":"output_text","text":"%[3]s"}]}}},`+
		`{"command":"step.status","data":{"stepId":"stp_%[1]s","to":"completed","continueLoop":false}},`+
		`{"command":"item.status","data":{"itemId":"itm_a%[1]s","to":"completed"}},`+
		`{"command":"execution.status","data":{"executionId":"exe_%[1]s","to":"completed"}}]`,
		nonce, question, answerText)
}

// requests writes the requests of thread.commits of one turn each, cheaply: the
// clients share the processor with what is measured.
type requests struct{ pieces [][]byte }

func newRequests() requests {
	const mark = "NONCE"
	return requests{bytes.Split(turn(mark), []byte(mark))}
}

func (r requests) make(threadID, nonce string) []byte {
	b := make([]byte, 0, 4096)
	b = append(append(b, `{"commandId":"`...), nonce...)
	b = append(append(b, `","threadId":"`...), threadID...)
	b = append(b, `","data":{"commands":`...)
	for i, piece := range r.pieces {
		if i > 0 {
			b = append(b, nonce...)
		}
		b = append(b, piece...)
	}
	return append(b, `}}`...)
}

// readyMade returns a commit of one turn as Skein stores it, on a new thread.
func readyMade() (*events.Commit, error) {
	_, turn, _, err := readyTurn()
	return turn, err
}

// readyTurn returns the commit that creates a thread, and the one of its first turn, in whose ids
// the nonce is.
func readyTurn() (create, commit *events.Commit, nonce string, err error) {
	threadID, nonce := "T-"+uuid.Must(uuid.NewV7()).String(), strings.ReplaceAll(uuid.NewString(), "-", "")
	var state thread.State
	made, err := thread.Decide(&state, &thread.Command{ID: "bench-create", Tenant: tenant, ThreadID: threadID, Time: 1, Parts: []thread.Part{
		{Name: "thread.create", Data: events.CreateThread{}},
	}})
	if err != nil {
		return nil, nil, "", err
	}
	if create, err = events.NewCommit("", made); err != nil {
		return nil, nil, "", err
	}
	for i := range made {
		thread.Evolve(&state, &made[i])
	}
	var subs []events.SubCommand
	if err := json.Unmarshal(turn(nonce), &subs); err != nil {
		return nil, nil, "", err
	}
	c := &thread.Command{ID: uuid.Must(uuid.NewV7()).String(), Tenant: tenant, ThreadID: threadID, Time: 1763600000000000, Batch: true}
	for _, sub := range subs {
		row, _ := events.LookupCommand(sub.Command)
		data, err := row.Decode(sub.Data)
		if err != nil {
			return nil, nil, "", err
		}
		c.Parts = append(c.Parts, thread.Part{Name: sub.Command, Data: data})
	}
	if made, err = thread.Decide(&state, c); err != nil {
		return nil, nil, "", err
	}
	commit, err = events.NewCommit("", made)
	return create, commit, nonce, err
}
