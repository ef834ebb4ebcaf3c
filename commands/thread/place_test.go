package thread

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/skein-threads/skein/events"
)

// A message that others add during a run stands after all that was written by steps that began
// before it, and before all that later steps write, wherever the run is when it comes: before its
// first step, while a reactor or a tool works, or while a person is asked.
func TestPlaceStep_MessagesStandBetweenSteps(t *testing.T) {
	for seed := range uint64(200) {
		roll := rand.New(rand.NewPCG(seed, 28))
		k := newStory(t)
		k.do(events.CreateThread{AgentID: "triage"})
		k.do(events.ReactThread{Text: to("hello")})
		w := &work{story: k, execution: k.state.Active()}
		var came []string // items of steps and messages, in their order
		note := func(made []events.Event) {
			for _, e := range made {
				switch d := e.Data.(type) {
				case events.StepCreated:
					if !slices.Contains(came, d.EventID) {
						came = append(came, d.EventID)
					} else if came[len(came)-1] != d.EventID {
						t.Fatalf("seed %d: step %d writes an item that a message follows", seed, d.Iteration)
					}
				case events.ItemCreated:
					if d.Type == events.Message && d.Role == events.User {
						came = append(came, d.ID)
					}
				}
			}
		}
		others := func(n int) {
			for range roll.IntN(n + 1) {
				switch roll.IntN(3) {
				case 0:
					made := w.do(events.ReactThread{Text: to("steer"), Policy: events.Steer})
					note(made)
					if d := made[0].Data.(events.ItemCreated); d.ReactionItemID == "" {
						t.Fatalf("seed %d: a message that steers does not say what answers it", seed)
					}
				case 1:
					note(w.do(message("itm_m"+strconv.Itoa(len(came)), "add")))
				case 2:
					silent := message("itm_m"+strconv.Itoa(len(came)), "add")
					silent.Item.Silent = true
					note(w.do(silent))
				}
			}
		}
		others(1)
		note(w.claim())
		for n := 0; w.state.Active() != ""; n++ {
			others(2)
			if n < 8 && roll.IntN(4) > 0 {
				note(w.do(w.reaction("call_" + strconv.Itoa(n))))
				others(2)
				if roll.IntN(4) == 0 {
					note(w.claim()) // by another worker
				}
				note(w.do(w.results("call_" + strconv.Itoa(n))))
				continue
			}
			note(w.do(w.reaction()))
		}
		last := int64(-1)
		for _, id := range came {
			i, made := w.state.item(id)
			if !made || i.Index <= last || i.Assistant && i.Status != events.ItemCompleted {
				t.Fatalf("seed %d: item %s is %+v, after the place %d; they came as %v", seed, id, i, last, came)
			}
			last = i.Index
		}
	}
}

// The step that begins after a message that steers names the message, and writes the item that the
// message was promised.
func TestPlaceStep_AnswersWhatSteers(t *testing.T) {
	w := atWork(t)
	first := w.do(events.ReactThread{Text: to("in Oslo"), Policy: events.Steer})[0].Data.(events.ItemCreated)
	last := w.do(events.ReactThread{Text: to("in Rome"), Policy: events.Steer})[0].Data.(events.ItemCreated)
	made := w.do(w.reaction())
	step, ok := made[len(made)-1].Data.(events.StepCreated)
	if !ok || step.SteeredBy != last.ID || step.EventID != first.ReactionItemID || step.EventID != last.ReactionItemID || step.Place == nil {
		t.Errorf("after %+v and %+v begins %+v", first, last, step)
	}
	if r := w.run(); r.ItemID != step.EventID || r.ReactionItemID != "itm_a" {
		t.Errorf("the run is %+v", r)
	}
	if w.do(w.reaction()); w.state.Active() != "" {
		t.Error("the run did not end")
	}
}

// A run that ends records of each call without a result that it has none, with its arguments and
// the reason: nobody can answer it any more.
func TestEndStep_EndsOpenCalls(t *testing.T) {
	ends := map[string]func(w *work) []events.Event{
		"a cancel": func(w *work) []events.Event { return w.do(events.CancelRun{}) },
		"a stop":   func(w *work) []events.Event { return w.do(events.StopRun{}) },
		"an interrupt": func(w *work) []events.Event {
			return w.do(events.ReactThread{Text: to("now"), Policy: events.Interrupt})
		},
		"a failure": func(w *work) []events.Event {
			return w.do(FailRun{ExecutionID: w.execution, Token: w.token, ErrorText: "too long"})
		},
	}
	for name, end := range ends {
		for calls, c := range map[string]struct {
			hold   func(w *work) HoldCalls
			reason string
		}{
			"a person": {func(w *work) HoldCalls {
				return HoldCalls{Approve: []events.ApprovalRequested{{CallID: "call_1", StepID: w.run().StepID, Name: "find", Reason: events.ApprovalManual}}}
			}, events.CallUnanswered},
			"another agent": {func(*work) HoldCalls { return HoldCalls{Wait: []string{"call_1"}} }, events.CallUnfinished},
		} {
			if name == "a stop" && calls == "another agent" {
				continue // it waits for what that agent does
			}
			w := atWork(t)
			w.do(w.reaction("call_1", "call_2"))
			w.do(w.results("call_2"))
			d := c.hold(w)
			d.ExecutionID, d.Token, d.StepID = w.execution, w.token, w.run().StepID
			w.do(d)
			var part events.JSON
			result := ""
			for _, e := range end(w) {
				switch d := e.Data.(type) {
				case events.PartUpdated:
					part = d.Part
				case events.ItemCreated:
					if d.Type == events.ActionResult {
						result = string(d.Content)
					}
				}
			}
			said := string(events.Quote(c.reason))
			if want := `{"errorText":` + said + `,"input":{"n":1},"output":` + said + `,"state":"output-error","toolCallId":"call_1","type":"tool-find"}`; string(part) != want {
				t.Errorf("%s while %s is asked leaves the part %s", name, calls, part)
			}
			if want := `{"callId":"call_1","output":` + said + `,"isError":true,"name":"find"}`; result != want {
				t.Errorf("%s while %s is asked leaves the result %s", name, calls, result)
			}
			x, _ := w.state.execution(w.execution)
			if x.Status == events.Executing || calls == "another agent" && !slices.Equal(x.Run.Left, []string{"call_1"}) {
				t.Errorf("%s while %s is asked: the run is %s, and left %q", name, calls, x.Status, x.Run.Left)
			}
		}
	}
}
