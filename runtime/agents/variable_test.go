package agents

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

func TestParseVariables_WantsTenantAndTarget(t *testing.T) {
	for _, text := range []string{
		"SHOP_TOKEN", "SHOP_TOKEN=https://shop.example", "acme:SHOP_TOKEN", "acme:SHOP_TOKEN=", ":SHOP_TOKEN=x", "acme:=x", "acme:9=x", "a b:X=x",
		"acme:X=https://", "acme:X=https://u:p@shop.example", "acme:X=https://shop.example/?q", "acme:X=https://shop.example/a/../b", "acme:X=https://shop.example/%2e%2e/b",
	} {
		if _, err := ParseVariables([]string{text}); err == nil || !strings.Contains(err.Error(), "TENANT:NAME=TARGET") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A variable is passed to the server that its operator names, and below it.
func TestVariable_GoesToItsTarget(t *testing.T) {
	for _, c := range []struct {
		target, url, command string
		goes                 bool
	}{
		{"https://shop.example/mcp", "https://shop.example/mcp", "", true},
		{"https://shop.example/mcp", "https://shop.example/mcp/", "", true},
		{"https://shop.example/mcp", "https://SHOP.example/mcp/v2?x=1", "", true},
		{"https://shop.example", "https://shop.example/any", "", true},
		{"https://shop.example/", "https://shop.example", "", true},
		{"https://shop.example/mcp", "https://shop.example/mcp2", "", false},
		{"https://shop.example/mcp", "https://shop.example/", "", false},
		{"https://shop.example/mcp", "http://shop.example/mcp", "", false},
		{"https://shop.example/mcp", "https://shop.example:8443/mcp", "", false},
		{"https://shop.example/mcp", "https://shop.example.evil.example/mcp", "", false},
		{"https://shop.example/mcp", "https://shop.example@evil.example/mcp", "", false},
		{"https://shop.example/mcp", "https://shop.example/mcp/../other", "", false},
		{"https://shop.example/mcp", "https://shop.example/mcp/%2e%2e/other", "", false},
		{"https://shop.example/mcp", "https://shop.example/mcp/..%2fother", "", false},
		{"https://shop.example/mcp", "https://shop.example/mcp/..;/other", "", false},
		{"https://shop.example/mcp", "https://shop.example/mcp//..\\other", "", false},
		{"https://shop.example/mcp", "", "https://shop.example/mcp2", false},
		{"billing-mcp", "", "billing-mcp", true},
		{"billing-mcp", "", "./billing-mcp", false},
		{"billing-mcp", "https://billing-mcp", "", false},
	} {
		v, err := ParseVariables([]string{"acme:T=" + c.target})
		if err != nil {
			t.Fatal(err)
		}
		if got := v[0].goesTo(&events.ToolServer{URL: c.url, Command: c.command}); got != c.goes {
			t.Errorf("%s to %s%s: %v", c.target, c.url, c.command, got)
		}
	}
}
