package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/dev/repository"
)

// The Dockerfile makes the image that a release has.
func TestDockerfile_IsTheImage(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(repository.Root(), "deploy", "docker", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, stage, ok := strings.Cut(string(body), " AS skein\n")
	if !ok {
		t.Fatal("it has no stage skein")
	}
	all := func(instruction string) (out []string) {
		for _, found := range regexp.MustCompile(`(?m)^`+instruction+` (.+)$`).FindAllStringSubmatch(stage, -1) {
			out = append(out, found[1])
		}
		return out
	}
	list := func(value []string) string {
		text, _ := json.Marshal(value)
		return strings.ReplaceAll(string(text), ",", ", ")
	}
	want, ports := imageConfig(""), []string{}
	for _, port := range slices.Sorted(maps.Keys(want.ExposedPorts)) {
		ports = append(ports, strings.TrimSuffix(port, "/tcp"))
	}
	h := want.Healthcheck
	for instruction, text := range map[string]string{
		"ENV": strings.Join(want.Env, " "), "USER": want.User, "WORKDIR": want.WorkingDir, "VOLUME": slices.Collect(maps.Keys(want.Volumes))[0],
		"EXPOSE": strings.Join(ports, " "), "ENTRYPOINT": list(want.Entrypoint), "CMD": list(want.Cmd),
		"HEALTHCHECK": fmt.Sprintf("--interval=%.0fs --timeout=%.0fs --start-period=%.0fs CMD %s", h.Interval.Seconds(), h.Timeout.Seconds(), h.StartPeriod.Seconds(), list(h.Test[1:])),
	} {
		if got := strings.Join(all(instruction), " "); got != text {
			t.Errorf("%s is %s\nin the image of a release it is %s", instruction, got, text)
		}
	}
}
