package chattest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Count is what a set of conversations holds.
type Count struct {
	Conversations, Turns, Answers, Calls int
	Steps                                int // answers of the model: with calls, or the last of a turn
}

// Conversations returns n conversations, one a line, and what they hold.
func Conversations(seed uint64, n int) ([]byte, Count) {
	w := &writer{rng: rand.New(rand.NewPCG(seed, 20))}
	var out bytes.Buffer
	for i := range n {
		line, err := json.Marshal(map[string]any{"id": fmt.Sprintf("workshop-%03d", i), "messages": w.conversation(i)})
		if err != nil {
			panic(err) // maps of texts
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	w.count.Conversations = n
	return out.Bytes(), w.count
}

type message map[string]any

type writer struct {
	rng   *rand.Rand
	count Count
	calls int // in this conversation
}

func pick[T any](w *writer, from []T) T { return from[w.rng.IntN(len(from))] }

// conversation has one to twelve turns, most of them few.
func (w *writer) conversation(n int) []message {
	w.calls = 0
	out := []message{{"role": "system", "content": w.policy()}}
	for range 1 + min(w.rng.IntN(9)+w.rng.IntN(9), 11) {
		out = w.turn(out, n)
	}
	return out
}

// turn is what a customer says, the calls that follow, and the answer.
func (w *writer) turn(out []message, n int) []message {
	w.count.Turns++
	out = append(out, message{"role": "user", "content": w.content(pick(w, wishes()) + " " + pick(w, details()))})
	steps := 0
	for w.rng.IntN(10) < 5 && steps < 6 {
		steps++
		w.count.Steps++
		out = w.step(out, n)
	}
	if steps > 0 && w.rng.IntN(40) == 0 { // the agent has nothing to add
		return out
	}
	w.count.Steps++
	w.count.Answers++
	return append(out, message{"role": "assistant", "content": w.content(pick(w, answers()) + " " + pick(w, details()))})
}

// step is one to three calls made together, and their results.
func (w *writer) step(out []message, n int) []message {
	var calls []any
	var results []message
	for range 1 + w.rng.IntN(12)/9 + w.rng.IntN(30)/29 {
		w.calls++
		w.count.Calls++
		id := fmt.Sprintf("call_%03d_%d", n, w.calls)
		name, arguments, output := w.call()
		calls = append(calls, message{"id": id, "type": "function", "function": message{"name": name, "arguments": arguments}})
		results = append(results, message{"role": "tool", "tool_call_id": id, "name": name, "content": output})
	}
	say := message{"role": "assistant", "content": nil, "tool_calls": calls}
	if w.rng.IntN(5) == 0 {
		say["content"] = "One moment, I am looking into it."
	}
	return append(append(out, say), results...)
}

// call returns a call's tool, its arguments, and its result.
func (w *writer) call() (name, arguments, output string) {
	customer := pick(w, customers())
	switch w.rng.IntN(6) {
	case 0:
		return "get_customer", encode(message{"customer_id": customer}), encode(message{
			"customer_id": customer, "since": 1990 + w.rng.IntN(35), "bicycles": []string{pick(w, bicycles()), pick(w, bicycles())}, "open_bills": w.rng.IntN(3),
		})
	case 1:
		var parts []message
		for i := range w.rng.IntN(60) { // some results are long
			parts = append(parts, message{"part": fmt.Sprintf("%s %d", pick(w, spares()), i), "stock": w.rng.IntN(20), "price": float64(w.rng.IntN(20000)) / 100})
		}
		return "search_parts", encode(message{"text": pick(w, spares()), "limit": 60}), encode(message{"parts": parts})
	case 2:
		return "book_slot", encode(message{"customer_id": customer, "day": w.rng.IntN(28) + 1, "work": pick(w, spares())}), fmt.Sprintf("booked: %d", w.rng.IntN(100000))
	case 3:
		return "cancel_slot", encode(message{"slot": w.rng.IntN(100000)}), "Error: the slot has passed"
	case 4:
		a, b := w.rng.IntN(500), w.rng.IntN(500)
		return "calculate", encode(message{"expression": fmt.Sprintf("%d + %d", a, b)}), fmt.Sprint(a + b)
	}
	return "think", encode(message{"thought": pick(w, details())}), ""
}

// content is a text, or now and then the parts of one.
func (w *writer) content(text string) any {
	if w.rng.IntN(8) > 0 {
		return text
	}
	half := strings.LastIndex(text[:len(text)/2], " ") + 1
	return []message{{"type": "text", "text": text[:half]}, {"type": "text", "text": text[half:]}}
}

// policy is a system prompt of some kilobytes.
func (w *writer) policy() string {
	var b strings.Builder
	b.WriteString("# Workshop policy\n\nYou help the customers of a workshop for bicycles.\n")
	for i := range 20 + w.rng.IntN(30) {
		fmt.Fprintf(&b, "\n%d. Before %s, name the price, and wait for a clear yes.", i+1, pick(w, spares()))
	}
	return b.String()
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of texts and numbers
	}
	return string(raw)
}

func customers() []string {
	return []string{"ada_lind_17", "jun_okada_4", "marta_ruiz_88", "per_åkesson_2", "zoë_brandt_51"}
}

func bicycles() []string {
	return []string{"a steel tourer", "a folding bicycle", "a cargo bicycle with a motor", "a child's bicycle", "a tandem"}
}

func spares() []string {
	return []string{"truing a wheel", "a chain", "brake pads", "a bottom bracket", "tubeless tyres", "a dynamo", "gear cables"}
}

func wishes() []string {
	return []string{
		"Hi! My rear wheel wobbles.", "Can you fit new brake pads by Friday?", "Ich möchte meinen Termin verschieben.", "ブレーキを見てもらえますか。",
		"How much is a new chain?", "I'd like to cancel, please.", "¿Tienen luces para una bici plegable?", "ok", "Yes, please go ahead 👍",
		"هل يمكنكم إصلاح الإطار اليوم؟", "It said \"out of stock\" yesterday, is that still so?",
	}
}

func answers() []string {
	return []string{
		"Of course, I have looked that up for you.", "That will be 42.50, is that all right?", "Your slot is booked.", "Leider ist das Teil nicht vorrätig.",
		"I am sorry, the slot has passed; shall I look for another one?", "予約しました。", "Done. Is there anything else?",
	}
}

func details() []string {
	return []string{
		"", "It is for the tourer.", "Nothing urgent.", "The bill goes to my employer, number 7.", "1. Steel\n2. Front wheel\n3. No insurance",
		"I come by after five, if the shop is open then; otherwise tomorrow at nine, with the other bicycle too.", "Thanks!",
	}
}
