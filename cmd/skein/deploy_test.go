package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/skein-threads/skein/cmd/skein/cli"
)

func deployed(t *testing.T, name ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "deploy"}, name...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// serves fails the test for arguments and variables that skein serve does not accept.
func serves(t *testing.T, args []string, env map[string]string) {
	t.Helper()
	a := &cli.App{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	root := a.Root(verbs(a)...)
	cmd, rest, err := root.Find(args)
	if err != nil || cmd.Name() != "serve" {
		t.Fatalf("%v: no command of Skein (%v)", args, err)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	cmd.SetContext(t.Context())
	if err := root.PersistentPreRunE(cmd, nil); err != nil {
		t.Fatalf("%v: %v", env, err)
	}
	for name := range env {
		if strings.HasPrefix(name, "SKEIN_") && !takes(cmd, name) {
			t.Errorf("%s is no flag of skein serve", name)
		}
	}
}

func takes(cmd *cobra.Command, name string) bool {
	return cmd.Flags().Lookup(strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "SKEIN_"), "_", "-"))) != nil
}

// The compose file runs what exists: three durable servers that find each other, and
// Skeins with valid flags and variables.
func TestDeploy_Compose(t *testing.T) {
	t.Setenv("SKEIN_NATS_PASSWORD", "secretnats")
	t.Setenv("SKEIN_ROUTE_PASSWORD", "secretroute")
	variable := regexp.MustCompile(`\$\{(\w+)(:\?)?\}`)
	text := variable.ReplaceAllStringFunc(deployed(t, "docker", "compose.yaml"), func(s string) string { return os.Getenv(variable.FindStringSubmatch(s)[1]) })
	var file struct {
		Services map[string]struct {
			Build       struct{ Dockerfile, Target string }
			Command     []string
			Hostname    string
			Environment map[string]string
			Ports       []string
			Volumes     []string
		}
		Volumes map[string]any
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Services) != 5 || len(file.Volumes) != 3 {
		t.Fatalf("%d services, %d volumes", len(file.Services), len(file.Volumes))
	}
	docker := deployed(t, "docker", "Dockerfile")
	for name, s := range file.Services {
		if !strings.Contains(docker, " AS "+s.Build.Target+"\n") || s.Build.Dockerfile != "deploy/docker/Dockerfile" {
			t.Errorf("%s: no target %s of %s", name, s.Build.Target, s.Build.Dockerfile)
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: port %s is published beyond loopback", name, port)
			}
		}
		if s.Build.Target == "skein" {
			serves(t, s.Command, s.Environment)
			if got := strings.Count(s.Environment["SKEIN_NATS"], ":4222"); got != 3 {
				t.Errorf("%s: %d servers", name, got)
			}
			continue
		}
		for key, value := range s.Environment {
			t.Setenv(key, value)
		}
		o, err := natsserver.ProcessConfigFile(filepath.Join("..", "..", "deploy", "docker", "nats.conf"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if o.ServerName != name || s.Hostname != name || !o.SyncAlways || o.MaxPayload != 4<<20 || len(o.Routes) != 2 || o.StoreDir != "/data" {
			t.Errorf("%s: %+v", name, o)
		}
		for _, route := range o.Routes {
			if _, ok := file.Services[route.Hostname()]; !ok || route.Hostname() == name || route.Port() != "6222" || route.User.Username() != "route" {
				t.Errorf("%s: route %s", name, route.Redacted())
			}
		}
	}
}

// The Dockerfile builds packages of this module, and runs them with valid arguments.
func TestDeploy_Dockerfile(t *testing.T) {
	t.Parallel()
	text := deployed(t, "docker", "Dockerfile")
	built := regexp.MustCompile(`go build -trimpath -o /out/(\S+) (\S+)`).FindAllStringSubmatch(text, -1)
	if len(built) != 2 {
		t.Fatalf("%v", built)
	}
	for _, b := range built {
		cmd := exec.Command("go", "list", "-f", "{{.Name}}", b[2])
		cmd.Dir = filepath.Join("..", "..")
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "main" {
			t.Errorf("%s: %v %s", b[2], err, out)
		}
		if !strings.Contains(text, "COPY --from=build /out/"+b[1]+" ") && !strings.Contains(text, "./dev/release root /out/"+b[1]+" ") {
			t.Errorf("%s is built and not copied", b[1])
		}
	}
	for _, line := range regexp.MustCompile(`(?m)CMD \[(.+)\]$`).FindAllStringSubmatch(text, -1) {
		args := strings.Split(strings.ReplaceAll(strings.ReplaceAll(line[1], `"`, ""), " ", ""), ",")
		if args[0] == "/skein" { // of the health check
			args = args[1:]
		}
		cmd, rest, err := root().Find(args)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil || !cmd.Runnable() {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// The unit runs skein serve with flags that exist, and systemd accepts it.
func TestDeploy_SystemdUnit(t *testing.T) {
	t.Parallel()
	text := deployed(t, "systemd", "skein.service")
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/skein (.+)$`).FindStringSubmatch(text)
	if start == nil {
		t.Fatal("no ExecStart")
	}
	env := map[string]string{}
	for _, pair := range regexp.MustCompile(`(SKEIN_\w+)=([^\s,]+\w)`).FindAllStringSubmatch(text, -1) {
		env[pair[1]] = pair[2]
	}
	if len(env) == 0 {
		t.Error("it names no variable")
	}
	serves(t, strings.Fields(start[1]), env)
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // flags are the part that this project can break
	}
	// The rest is checked even if the program is not installed.
	unit := filepath.Join(t.TempDir(), "skein.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(text, "/usr/bin/skein", "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), "Unknown") {
		t.Errorf("systemd-analyze: %v: %s", err, out)
	}
}
