package main_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// skein acp answers what comes before the end of its input, with the protocol alone on standard
// output, and ends with exit code 0; what is not supported is also said on standard error. An agent
// that does not exist is refused at once.
func TestACP_Stdio(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	s.ok("cmd", "definition.apply", `{"definitions":[{"kind":"agent","definition":{"name":"triage","type":"ai_human","reactor":"shout"}}]}`)
	run := func(agent, in string) (out, said string, code int) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(binary, "acp", "--agent", agent)
		cmd.Env = append(environment(s.env...), "SKEIN_TIMEOUT=1m") // of a busy machine
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		code = ended(t, cmd)
		return stdout.String(), stderr.String(), code
	}
	out, said, code := run("triage", strings.Join([]string{
		`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":1}}`,
		`not JSON`,
		`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/work","mcpServers":[{"name":"fs","command":"/bin/fs","args":[],"env":[]}]}}`,
	}, "\n")+"\n")
	if code != 0 || !strings.Contains(said, "mcpServers") {
		t.Errorf("exit code %d: %s", code, said)
	}
	answers := map[string]bool{}
	for line := range strings.Lines(out) {
		var m struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Result  struct {
				Protocol int    `json:"protocolVersion"`
				Session  string `json:"sessionId"`
			} `json:"result"`
			Error struct {
				Code int `json:"code"`
			} `json:"error"`
		}
		decode(t, line, &m)
		answers[string(m.ID)] = m.JSONRPC == "2.0" && (m.Result.Protocol == 1 || strings.HasPrefix(m.Result.Session, "T-") || m.Error.Code == -32700)
	}
	if len(answers) != 3 || !answers[`"a"`] || !answers["null"] || !answers["2"] {
		t.Errorf("answered %s", out)
	}
	if out, said, code := run("nobody", ""); code == 0 || out != "" || !strings.Contains(said, "nobody") {
		t.Errorf("exit code %d, %q, %q", code, out, said)
	}
}
