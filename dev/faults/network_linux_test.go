package faults_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/skein-threads/skein/dev/cluster"
)

// ownNetwork creates a network namespace for each server with two cables: one to the
// other servers, one to clients. It skips the test where that is not possible.
func ownNetwork(t *testing.T) (*network, [cluster.Servers]cluster.Place) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root makes network namespaces")
	}
	ip := func(command string) error {
		out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("ip %s: %w: %s", command, err, out)
		}
		return err
	}
	id := os.Getpid() % 100000
	number := id % 250
	clients, peers := fmt.Sprintf("skc%d", id), fmt.Sprintf("skp%d", id)
	var places [cluster.Servers]cluster.Place
	undo := []string{"link del " + clients, "link del " + peers}
	t.Cleanup(func() {
		for _, command := range undo {
			if err := ip(command); err != nil {
				t.Log(err)
			}
		}
	})
	do := []string{
		"link add " + clients + " type bridge", "link add " + peers + " type bridge",
		fmt.Sprintf("addr add 10.213.%d.254/24 dev %s", number, clients), "link set " + clients + " up", "link set " + peers + " up",
	}
	for i := range places {
		ns := fmt.Sprintf("skein-%d-%d", id, i+1)
		undo = append([]string{"netns del " + ns}, undo...)
		do = append(do, "netns add "+ns, "-n "+ns+" link set lo up")
		for cable, bridge := range map[string]string{"c": clients, "p": peers} {
			outside, net := fmt.Sprintf("sk%s%d%d", cable, i, id), map[string]int{"c": 213, "p": 214}[cable]
			do = append(do,
				fmt.Sprintf("link add %s type veth peer name %s netns %s", outside, cable, ns),
				fmt.Sprintf("link set %s master %s up", outside, bridge),
				fmt.Sprintf("-n %s addr add 10.%d.%d.%d/24 dev %s", ns, net, number, i+1, cable), fmt.Sprintf("-n %s link set %s up", ns, cable))
		}
		client := fmt.Sprintf("10.213.%d.%d", number, i+1)
		places[i] = cluster.Place{
			Client: client + ":4222", Monitor: client + ":8222", Route: fmt.Sprintf("10.214.%d.%d:6222", number, i+1),
			Within: []string{"ip", "netns", "exec", ns},
		}
	}
	for _, command := range do {
		if err := ip(command); err != nil {
			t.Skipf("no network of its own: %v", err)
		}
	}
	set := func(i int, cable, state string) {
		if err := ip(fmt.Sprintf("link set sk%s%d%d %s", cable, i, id, state)); err != nil {
			t.Error(err)
		}
	}
	return &network{
		cut: func(i int, fromPeers, fromClients bool) {
			if fromPeers {
				set(i, "p", "down")
			}
			if fromClients {
				set(i, "c", "down")
			}
		},
		heal: func() {
			for i := range places {
				set(i, "p", "up")
				set(i, "c", "up")
			}
		},
	}, places
}
