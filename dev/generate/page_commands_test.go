package main

import (
	"strings"
	"testing"
)

// A command with all events of another one refers to it, and names the rest; few events are named.
func TestCommandsPage_Events(t *testing.T) {
	page, err := commandsPage()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	for want, where := range map[string]string{
		"Events: those of [`run.stop`](#runstop).":                                                "## run.cancel",
		"Events: those of [`run.retry`](#runretry), and [`queue.pushed`](events.md#queuepushed),": "## tool.queue",
		"Events: [`share.created`](events.md#sharecreated).":                                      "## thread.share",
	} {
		_, section, _ := strings.Cut(text, where+" ")
		section, _, _ = strings.Cut(section, " ## ")
		if !strings.Contains(section, want) {
			t.Errorf("%s lacks %s:\n%s", where, want, section)
		}
	}
}
