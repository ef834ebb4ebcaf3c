package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// Asks reports whether somebody is there to answer a question: input and errors are a terminal.
func (a *App) Asks() bool { return a.IsTerminal(a.In) && a.IsTerminal(a.Err) }

// Confirm asks a question on standard error, and reports whether the answer is yes. An empty answer
// and the end of the input are no.
func (a *App) Confirm(ctx context.Context, question string) (bool, error) {
	if _, err := fmt.Fprint(a.Err, question+" [y/N] "); err != nil {
		return false, err
	}
	answer := make(chan string, 1)
	go func() { // a read of a terminal cannot be ended; the process ends with the command
		line, _ := bufio.NewReader(a.In).ReadString('\n') // an error is no answer
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case said := <-answer:
		return said == "y" || said == "yes", nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
