package runview_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// settled is what frames come to: what a reader has in the end.
type settled struct {
	steps []*settledStep
	end   string
}

type settledStep struct {
	id, status string
	items      []*settledItem
}

type settledItem struct {
	kind, id, text string
	asked, open    bool // it waits for an approval, or for an answer
}

func (s *settled) step(id string) *settledStep {
	for _, one := range s.steps {
		if one.id == id {
			return one
		}
	}
	one := &settledStep{id: id}
	s.steps = append(s.steps, one)
	return one
}

func (s *settledStep) item(kind, id string) *settledItem {
	for _, one := range s.items {
		if one.kind == kind && one.id == id {
			return one
		}
	}
	one := &settledItem{kind: kind, id: id}
	s.items = append(s.items, one)
	return one
}

// add folds frames. A frame that a reader cannot place is an error.
func (s *settled) add(frames []runview.Frame) error {
	for _, f := range frames {
		if s.end != "" {
			return fmt.Errorf("%T after the end", f)
		}
		switch f := f.(type) {
		case runview.StepStarted:
			s.step(f.ID).status = string(f.Status)
		case runview.StepReset:
			s.step(f.ID).items = nil
		case runview.StepFinished:
			s.step(f.ID).status = string(f.Status)
		case runview.TextStarted:
			s.step(f.StepID).item(string(f.Kind), fmt.Sprint(f.N))
		case runview.TextDelta:
			s.step(f.StepID).item(string(f.Kind), fmt.Sprint(f.N)).text += f.Delta
		case runview.TextFinished:
		case runview.Data:
			if f.Recorded {
				s.step(f.StepID).item("data", f.Key).text = string(f.JSON)
			}
		case runview.Finished:
			s.end = fmt.Sprintf("%s, %s, %s, %v", f.Status, f.Reason, f.ErrorText, f.Aborted != nil)
		case runview.CallStarted:
			s.step(f.StepID).item("call", f.ID).text = f.Name
		case runview.Sealed:
			if f.Bare {
				s.step(f.StepID).items = append(s.step(f.StepID).items, &settledItem{kind: "sealed", text: f.Encrypted})
			}
		case runview.CallDelta, runview.CallWritten:
		case runview.CallReady:
			s.step(f.StepID).item("call", f.ID).text = f.Name + string(f.Input)
		case runview.Asked:
			c := s.step(f.StepID).item("call", f.ID)
			if c.text == "" {
				return fmt.Errorf("%s is asked about before it is ready", f.ID)
			}
			c.asked, c.open = !f.Question, f.Question
		case runview.CallResult:
			s.outcome(f.Call, "="+string(f.Output))
		case runview.CallFailed:
			s.outcome(f.Call, "!"+f.Error)
		case runview.CallDenied:
			s.outcome(f.Call, " denied")
		case runview.CallDropped:
			one := s.step(f.StepID)
			one.items = slices.DeleteFunc(one.items, func(i *settledItem) bool { return i.kind == "call" && i.id == f.ID })
		case runview.Substate, runview.Cited:
		default:
			return fmt.Errorf("unknown frame %T", f)
		}
	}
	return nil
}

func (s *settled) outcome(c runview.Call, how string) {
	one := s.step(c.StepID).item("call", c.ID)
	one.text, one.asked, one.open = c.Name+string(c.Input)+how, false, false
}

// waiting returns the calls that a reader sees waiting: for an approval, and for an answer.
func (s *settled) waiting() (approvals, answers []string) {
	for _, step := range s.steps {
		for _, i := range step.items {
			if i.asked {
				approvals = append(approvals, i.id)
			}
			if i.open {
				answers = append(answers, i.id)
			}
		}
	}
	slices.Sort(approvals)
	return approvals, answers
}

// String describes the content in its order. Texts next to each other are one.
func (s *settled) String() string {
	var out strings.Builder
	for _, step := range s.steps {
		fmt.Fprintf(&out, "%s (%s):\n", step.id, step.status)
		before := ""
		for _, i := range step.items {
			switch {
			case i.kind != before || i.kind == "call" || i.kind == "data" || i.kind == "sealed":
				fmt.Fprintf(&out, "\n  %s %s", i.kind, i.text)
			default:
				out.WriteString(i.text)
			}
			before = i.kind
		}
		out.WriteString("\n")
	}
	return out.String() + s.end
}

// read folds inputs as a reader gets them. early is how many events happened before it came; pick says
// whether an event is next, where a chunk could be, too.
func read(v *runview.View, list []*events.Event, chunks []*events.ChunkEmitted, early int, pick func() bool) (*settled, error) {
	out := &settled{}
	v.History()
	if early == 0 {
		if err := out.add(v.Live()); err != nil {
			return out, err
		}
	}
	for n := 0; n < len(list) || len(chunks) > 0; {
		takes := len(chunks) > 0 && v.Takes(chunks[0])
		var frames []runview.Frame
		switch {
		case n < len(list) && (!takes || pick()):
			frames = v.Event(list[n])
			if n++; n == early {
				frames = append(frames, v.Live()...)
			}
		case takes:
			frames = v.Chunk(chunks[0])
			chunks = chunks[1:]
		default:
			return out, fmt.Errorf("%d chunks cannot be taken", len(chunks))
		}
		if err := out.add(frames); err != nil {
			return out, err
		}
	}
	return out, out.add(v.Finish())
}
