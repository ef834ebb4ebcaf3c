package main

import (
	"fmt"
	"strings"

	"github.com/skein-threads/skein/events"
)

func machinesPage() ([]byte, error) {
	p, err := newPage("State machines")
	if err != nil {
		return nil, err
	}
	p.line(`Five entities have a state: this page lists the moves of each. Any other move, also to the present
state, is refused with %s, and the error names the allowed states. A state without a move is final.
Each move is an event, %s:`, "`illegal_transition`", "`{entity}.status.changed`")
	p.code("sh", "bin/skein tail --from start --type 'execution.*'")
	machine(p, events.ThreadMachine())
	machine(p, events.ContextMachine())
	p.line(`A closed context accepts no item, no content and no execution (%s). A run that is in
progress in it comes to its end. Its key is free for the next context of the thread.`, "`illegal_transition`")
	machine(p, events.ExecutionMachine())
	machine(p, events.StepMachine())
	machine(p, events.ItemMachine())
	return p.Bytes(), nil
}

func machine[S ~string](p *page, m events.Machine[S]) {
	p.line("## %s", m.Entity)
	p.code("mermaid", m.Mermaid())
	var order []string
	from := map[string][]string{}
	for _, a := range m.Advice {
		rest := fmt.Sprintf("cannot become `%s`: %s.", a.To, a.Instead)
		if from[rest] == nil {
			order = append(order, rest)
		}
		from[rest] = append(from[rest], fmt.Sprintf("`%s`", a.From))
	}
	for _, rest := range order {
		p.line("%s %s", strings.Join(from[rest], " and "), rest)
	}
}
