package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/dev/machine"
	"github.com/skein-threads/skein/internal/loopback"
)

// Servers is the number of nats-servers of a cluster.
const Servers = 3

// Programs are the two programs of a cluster.
type Programs struct{ Server, Skein string }

// Build builds them into a folder, from the module in the folder root. What go run
// links stays in the build cache, and is copied from there the next time.
func Build(ctx context.Context, root, into string) (Programs, error) {
	p := Programs{Server: filepath.Join(into, "nats-server"), Skein: filepath.Join(into, "skein")}
	for program, source := range map[string]string{p.Server: "github.com/nats-io/nats-server/v2", p.Skein: "./cmd/skein"} {
		cmd := exec.CommandContext(ctx, "go", "run", "-ldflags=-w", "-exec", "cp -f", source, program)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return p, fmt.Errorf("build %s: %w: %s", source, err, out)
		}
	}
	return p, nil
}

// Place is where a server runs. The zero value means loopback and free ports.
type Place struct {
	Client, Route, Monitor string   // host and port of clients, of other servers, and of health
	Within                 []string // prefix of its command line, such as "ip netns exec n1"
}

// Config configures a Cluster.
type Config struct {
	Programs
	Conf   string // folder of the servers' configuration, deploy/cluster
	Dir    string // folder of the processes' data and output
	Places [Servers]Place

	// Each process has a machine of its own, whose disk can be slowed down and whose
	// clock can be set; the program that sets it calls machine.Begin.
	Machines bool
}

// Cluster is the servers and the processes on them.
type Cluster struct {
	cfg     Config
	Servers [Servers]*Process
	Skeins  []*Process

	held []io.Closer // the addresses that were free
}

// New prepares a cluster; Start starts it.
func New(cfg Config) (*Cluster, error) {
	c := &Cluster{cfg: cfg}
	var routes []string
	for i := range c.cfg.Places {
		p := &c.cfg.Places[i]
		for _, address := range []*string{&p.Client, &p.Route, &p.Monitor} {
			if err := c.fill(address); err != nil {
				return nil, err
			}
		}
		routes = append(routes, "nats://"+p.Route)
	}
	if err := os.MkdirAll(c.Folder(), 0o700); err != nil {
		return nil, err
	}
	for i, p := range c.cfg.Places {
		name := fmt.Sprintf("n%d", i+1)
		host, port, err := net.SplitHostPort(p.Client)
		if err != nil {
			return nil, err
		}
		_, monitor, err := net.SplitHostPort(p.Monitor)
		if err != nil {
			return nil, err
		}
		c.Servers[i] = c.process(name, p.Within, cfg.Server, "-c", filepath.Join(cfg.Conf, name+".conf"), "-a", host, "-p", port, "-m", monitor,
			"--cluster_listen", "nats://"+p.Route, "--no_advertise=true", "--routes", strings.Join(without(routes, i), ","))
	}
	return c, nil
}

// process returns a process of the cluster, which is not started yet.
func (c *Cluster) process(name string, within []string, args ...string) *Process {
	p := &Process{Name: name, within: within, args: args, dir: c.Folder(), cwd: c.cfg.Dir}
	if c.cfg.Machines {
		p.machine = new(machine.Machine)
	}
	return p
}

// fill replaces an empty address by a free one, which the cluster holds.
func (c *Cluster) fill(address *string) error {
	if *address != "" {
		return nil
	}
	free, held, err := loopback.Reserve()
	if err == nil {
		*address = free
		c.held = append(c.held, held)
	}
	return err
}

func without(list []string, i int) []string {
	return append(append([]string{}, list[:i]...), list[i+1:]...)
}

// URL returns the URL of all servers, for a client.
func (c *Cluster) URL() string {
	var all []string
	for i := range c.cfg.Places {
		all = append(all, c.ServerURL(i))
	}
	return strings.Join(all, ",")
}

// ServerURL returns the URL of one server, for a client.
func (c *Cluster) ServerURL(i int) string { return "nats://" + c.cfg.Places[i].Client }

// Folder returns the folder of the processes' data and output.
func (c *Cluster) Folder() string { return filepath.Join(c.cfg.Dir, "skein-cluster") }

// Store returns the folder of a server's streams, as in its configuration.
func (c *Cluster) Store(i int) string { return filepath.Join(c.Folder(), c.Servers[i].Name) }

// Start starts all servers and waits until they are ready.
func (c *Cluster) Start(ctx context.Context) error {
	for _, s := range c.Servers {
		if err := s.Start(nil); err != nil {
			return err
		}
	}
	for i := range c.Servers {
		if err := c.Ready(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// Ready waits until a server has caught up and can take part.
func (c *Cluster) Ready(ctx context.Context, i int) error {
	for {
		if !c.Servers[i].Running() {
			return fmt.Errorf("server %s has ended; see %s", c.Servers[i].Name, c.Servers[i].Log())
		}
		err := c.healthy(ctx, i)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("server %s: %w (%w)", c.Servers[i].Name, context.Cause(ctx), err)
		}
	}
}

func (c *Cluster) healthy(ctx context.Context, i int) error {
	var health struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	if err := c.Ask(ctx, i, "/healthz", &health); err != nil {
		return err
	}
	if health.Status != "ok" {
		return errors.New(health.Error)
	}
	return nil
}

// Ask reads one of a server's monitoring pages.
func (c *Cluster) Ask(ctx context.Context, i int, page string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.cfg.Places[i].Monitor+page, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return json.UnmarshalRead(answer.Body, into)
}

// Skein starts a Skein on the cluster, which connects to the servers in the order of
// the URL, and waits until it accepts commands. Again restarts it by its name.
func (c *Cluster) Skein(ctx context.Context, name, url string, args ...string) (*Process, error) {
	p := c.process(name, nil, append([]string{
		c.cfg.Skein, "serve", "--nats", url, "--replicas", fmt.Sprint(Servers), "--http-listen", "127.0.0.1:0", "--json",
	}, args...)...)
	c.Skeins = append(c.Skeins, p)
	return p, c.Again(ctx, p)
}

// Again restarts a Skein that has ended, and waits until it accepts commands.
func (c *Cluster) Again(ctx context.Context, p *Process) error {
	ready := make(chan struct{}, 1)
	err := p.Start(func(line []byte) {
		var said struct {
			Ready bool `json:"ready"`
		}
		if json.Unmarshal(line, &said) == nil && said.Ready {
			ready <- struct{}{}
		}
	})
	if err != nil {
		return err
	}
	gone := make(chan error, 1)
	go func() { gone <- p.Wait(ctx) }()
	select {
	case <-ready:
		return nil
	case <-gone:
		return fmt.Errorf("%s did not become ready; see %s", p.Name, p.Log())
	}
}

// Close ends everything: Skein first, so that it can finish the requests in flight.
func (c *Cluster) Close() {
	for _, p := range c.Skeins {
		p.Stop(10 * time.Second)
	}
	for _, p := range c.Servers {
		if p != nil {
			p.Stop(10 * time.Second)
		}
	}
	for _, address := range c.held {
		_ = address.Close()
	}
}
