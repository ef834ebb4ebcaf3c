package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/cmd/skein/operator"
	"github.com/skein-threads/skein/dev/repository"
)

// helm renders the chart, as its users have it.
const helm = "helm.sh/helm/v3/cmd/helm@v3.22.0"

// object is the part of a manifest that the tests look at.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Template struct {
			Spec struct {
				Containers []container
				Volumes    []struct{ Name string }
			}
		}
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
	}
}

type container struct {
	Args         []string
	Env          []struct{ Name, Value string }
	VolumeMounts []struct{ Name string } `yaml:"volumeMounts"`
}

// chart are the values that the chart is rendered with, and the kinds that come of them.
func chart() map[string]struct{ values, kinds []string } {
	outside := []string{"nats.url=tls://nats:4222", "nats.credsSecret=creds", "nats.caSecret=ca"}
	return map[string]struct{ values, kinds []string }{
		"a server inside": {[]string{"serviceMonitor.enabled=true", "envFromSecrets={models}", "env.SKEIN_TENANT_RATE=100"},
			[]string{"NetworkPolicy/x-skein", "PodDisruptionBudget/x-skein", "Service/x-skein", "ServiceMonitor/x-skein", "StatefulSet/x-skein"}},
		"on a NATS": {append(outside, "keysSecret=keys", "tlsSecret=tls"),
			[]string{"Deployment/x-skein", "NetworkPolicy/x-skein", "PodDisruptionBudget/x-skein", "Service/x-skein"}},
		"gateways": {append(outside, "keysSecret=keys", "gateway.replicaCount=2", "gateway.credsSecret=edge", "podDisruptionBudget.enabled=false", "networkPolicy.enabled=false"),
			[]string{"Deployment/x-skein", "Deployment/x-skein-gateway", "Service/x-skein", "Service/x-skein-gateway"}},
	}
}

// The chart is one that Helm accepts, and what it renders fits together: each variable is a flag
// of the program, each volume is there, selectors and names of ports find something, and Kubernetes
// and the Prometheus operator have each field, of that type.
func TestChart(t *testing.T) {
	released(t)
	program := filepath.Join(t.TempDir(), "helm")
	output(t, "", []string{"GOWORK=off", "GOBIN=" + filepath.Dir(program)}, "go", "install", helm)
	folder := filepath.Join(repository.Root(), "deploy", "helm", "skein")
	types := filepath.Join(t.TempDir(), "manifests")
	output(t, filepath.Join("testdata", "manifests"), []string{"GOWORK=off"}, "go", "build", "-o", types, ".")
	output(t, "", nil, program, "lint", "--strict", folder)
	for name, c := range chart() {
		text := output(t, "", nil, program, "template", "x", folder, "--kube-version", "1.33.0", "--namespace", "here", "--set", strings.Join(c.values, ","))
		if refused := typed(t, types, text); refused != "" {
			t.Errorf("%s: %s", name, refused)
		}
		var kinds []string
		objects := objectsOf(t, text)
		for _, o := range objects {
			kinds = append(kinds, o.Kind+"/"+o.Metadata.Name)
			for _, problem := range fits(o) {
				t.Errorf("%s: %s %s: %s", name, o.Kind, o.Metadata.Name, problem)
			}
		}
		if missing := difference(c.kinds, kinds); missing != "" {
			t.Errorf("%s: %s", name, missing)
		}
	}
	for name, values := range map[string]string{
		"needs nats.url": "gateway.replicaCount=1", "gateway.credsSecret": "gateway.replicaCount=1,nats.url=nats://n:4222", "tlsSecret": "httpPlain=false",
		"replicas": "nats.replicas=2", "nonsense": "nonsense=1",
	} {
		out, err := exec.Command(program, "template", "x", folder, "--kube-version", "1.33.0", "--set", values).CombinedOutput()
		if err == nil || !strings.Contains(string(out), name) {
			t.Errorf("%s: %v; it does not say %q: %.400s", values, err, name, out)
		}
	}
}

// typed returns what Kubernetes' own types refuse in rendered objects.
func typed(t *testing.T, program, text string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return ""
}

func objectsOf(t *testing.T, text string) (out []object) {
	t.Helper()
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		out = append(out, o)
	}
}

// fits says what of an object does not fit together, or to the program.
func fits(o object) (problems []string) {
	pod := o.Spec.Template.Spec
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, v := range o.Spec.VolumeClaimTemplates {
		volumes[v.Metadata.Name] = true
	}
	for _, c := range pod.Containers {
		problems = append(problems, runs(c)...)
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				problems = append(problems, "there is no volume "+m.Name)
			}
			delete(volumes, m.Name)
		}
		for name := range volumes {
			problems = append(problems, "nothing mounts the volume "+name)
		}
	}
	return problems
}

// runs says what of a container the program does not accept.
func runs(c container) (problems []string) {
	env := map[string]string{}
	for _, v := range imageConfig("").Env {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	for _, v := range c.Env {
		env[v.Name] = v.Value
	}
	var errs bytes.Buffer
	app := &cli.App{Out: io.Discard, Err: &errs, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	root := app.Root(operator.Verbs(app))
	cmd, _, err := root.Find(c.Args)
	if err != nil || !cmd.Runnable() {
		return []string{fmt.Sprintf("skein %v: %v", c.Args, err)}
	}
	cmd.SetContext(context.Background())
	if err := root.PersistentPreRunE(cmd, nil); err != nil {
		problems = append(problems, err.Error())
	}
	for _, v := range c.Env {
		if name, ours := strings.CutPrefix(v.Name, "SKEIN_"); ours && !hasFlag(cmd, name) {
			problems = append(problems, v.Name+" is no flag of skein "+cmd.Name())
		}
	}
	return problems
}

func hasFlag(cmd *cobra.Command, variable string) bool {
	return cmd.Flags().Lookup(strings.ToLower(strings.ReplaceAll(variable, "_", "-"))) != nil
}

// difference says in what two lists differ, whatever their order.
func difference(want, got []string) string {
	count := map[string]int{}
	for _, w := range want {
		count[w]++
	}
	for _, g := range got {
		count[g]--
	}
	var out []string
	for name, n := range count {
		switch {
		case n > 0:
			out = append(out, name+" is missing")
		case n < 0:
			out = append(out, name+" is too much")
		}
	}
	return strings.Join(out, ", ")
}
