package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/dev/bench/traffic"
	"github.com/skein-threads/skein/internal/loopback"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/server"
)

// NeighbourOptions says what to measure of one tenant alongside a hostile one.
type NeighbourOptions struct {
	Seconds  float64      // a case; default 6
	HTTP     bool         // over HTTP, instead of NATS
	Conns    int          // of the flood; default 4, and 64 over HTTP
	Clients  int          // of the tenant that sends heavy requests; default 16
	Cases    []string     // of NeighbourCases; default all
	Dir      string       // where the store is made; default the system's temporary folder
	Profile  string       // file for a processor profile of the last case; default none
	LoadArgs []string     // makes this program run RunLoad
	Log      func(string) // told what is being measured; may be nil
}

// NeighbourCase is what one tenant saw of its own commands.
type NeighbourCase struct {
	Name      string  `json:"name"`    // what the other tenant does
	Clients   int     `json:"clients"` // of the tenant that is measured
	PerSecond float64 `json:"perSecond"`
	P50Ms     float64 `json:"p50Ms"`
	P99Ms     float64 `json:"p99Ms"`
	MaxMs     float64 `json:"maxMs"`
	Commands  int     `json:"commands"`
	Refused   int     `json:"refused,omitzero"`
	Sent      int64   `json:"sent,omitzero"`  // messages that the flood wrote
	Ended     int64   `json:"ended,omitzero"` // connections of the flood that the server ended
	ServerMiB float64 `json:"serverMiB"`      // the most that server and Skein took so far
}

// NeighbourResult is one run.
type NeighbourResult struct {
	Cases  []NeighbourCase `json:"cases"`
	Ratios []Ratio         `json:"ratios"`
}

// Neighbours' tenants.
const quietTenant = "quiet"

// NeighbourCases lists what the other tenant does, over HTTP or over NATS.
func NeighbourCases(overHTTP bool) []string {
	if overHTTP {
		return traffic.Abuses()
	}
	return append([]string{"queries", "commands", "submits"}, traffic.HeavyKinds()...)
}

// floods are what the other tenant does in the cases after the first.
func floods() []struct{ name, subject, body string } {
	const query = `{"threadId":"T-01a20478-7391-7ae8-a09f-d3a53b34f112","data":{"includeWhatIsNotThere":"some filling............"}}`
	return []struct{ name, subject, body string }{ // the name is the tenant's, too: what one did is not held against the next
		{"queries", "query.queries.thread.get", query[:100]},
		{"commands", "cmd.commands.thread.create", `{"data":{"title":"flooded"}}`},
		{"submits", "submit.submits.thread.create", `{"data":{"title":"flooded"}}`},
	}
}

// neighbourhood is a Skein with the tenants of Neighbour.
type neighbourhood struct {
	o         NeighbourOptions
	nats, url string // of NATS and HTTP
	creds     map[string]string
	keys      map[string]string // of HTTP
}

// hostile is what another tenant does; load is nil if there is none.
type hostile struct {
	name string
	load *Load
}

// Neighbour measures the commands of one tenant, alone and alongside floods of
// another one. Each tenant has an account of its own, as skein access makes it.
func Neighbour(ctx context.Context, o NeighbourOptions) (*NeighbourResult, error) {
	if o.Seconds == 0 {
		o.Seconds = 6
	}
	if o.Conns == 0 {
		if o.Conns = 4; o.HTTP {
			o.Conns = 64
		}
	}
	o.Clients = cmp.Or(o.Clients, 16)
	if len(o.Cases) == 0 {
		o.Cases = NeighbourCases(o.HTTP)
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	dir, err := os.MkdirTemp(o.Dir, "skein-bench-")
	if err != nil {
		return nil, fmt.Errorf("a folder for the store: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	n := &neighbourhood{o: o}
	if n.creds, n.keys, err = neighbours(filepath.Join(dir, "access")); err != nil {
		return nil, err
	}
	server, err := server.Start(ctx, server.Config{
		Store: filepath.Join(dir, "store"), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Access: filepath.Join(dir, "access"),
	}, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = server.Stop(stop)
	}()
	n.nats, n.url = server.Addresses().NATS, server.Addresses().HTTP
	result := &NeighbourResult{}
	list, err := n.hostiles(ctx)
	if err != nil {
		return nil, err
	}
	for i, h := range list {
		o.Log("commands of one tenant, alongside: " + h.name)
		profile := ""
		if i == len(list)-1 {
			profile = o.Profile
		}
		c, err := n.measure(ctx, h.load, profile)
		if err != nil {
			return nil, fmt.Errorf("alongside %s: %w", h.name, err)
		}
		c.Name = h.name
		result.Cases = append(result.Cases, *c)
	}
	quiet := result.Cases[0]
	for _, c := range result.Cases[1:] {
		ratio := c.P99Ms / max(quiet.P99Ms, 0.001)
		result.Ratios = append(result.Ratios, Ratio{Name: "p99 alongside " + c.Name + ", to quiet", Value: ratio, Goal: "at most 5", Met: ratio <= 5})
	}
	return result, nil
}

// neighbours makes a folder of access with the tenants, and returns their
// credentials and keys.
func neighbours(dir string) (creds, texts map[string]string, err error) {
	folder, err := access.Init(dir, access.InitOptions{})
	if err != nil {
		return nil, nil, err
	}
	creds, texts = map[string]string{}, map[string]string{}
	for _, tenant := range slices.Concat([]string{quietTenant}, NeighbourCases(false), NeighbourCases(true)) {
		u := access.User{Name: tenant, Tenant: tenant, Roles: []access.Role{access.Publisher}}
		if creds[tenant], _, err = folder.Add(u); err != nil {
			return nil, nil, err
		}
		if _, texts[tenant], err = folder.AddKey(keys.Key{Tenant: tenant, Roles: []string{"publisher", "subscriber"}}); err != nil {
			return nil, nil, err
		}
	}
	return creds, texts, nil
}

// hostiles lists the cases, the first without another tenant.
func (n *neighbourhood) hostiles(ctx context.Context) ([]hostile, error) {
	list := []hostile{{"nobody", nil}}
	if n.o.HTTP {
		for _, kind := range traffic.Abuses() {
			list = append(list, hostile{kind, &Load{Abuse: &traffic.Abuse{Kind: kind, URL: n.url, Key: n.keys[kind], Clients: n.o.Conns}}})
		}
	} else {
		for _, f := range floods() {
			all := loopback.Flood{URL: n.nats, Creds: n.creds[f.name], Inbox: access.InboxOf(f.name), Subject: "skein." + f.subject, Body: f.body, Conns: n.o.Conns}
			list = append(list, hostile{f.name, &Load{Flood: &all}})
		}
		for _, kind := range traffic.HeavyKinds() {
			list = append(list, hostile{kind, &Load{URL: n.nats, Creds: n.creds[kind], Inbox: access.InboxOf(kind), Heavy: &traffic.Heavy{Kind: kind, Tenant: kind, Clients: n.o.Clients}}})
		}
	}
	list = slices.DeleteFunc(list, func(h hostile) bool { return h.load != nil && !slices.Contains(n.o.Cases, h.name) })
	for _, h := range list {
		if h.load == nil || h.load.Heavy == nil {
			continue
		}
		if err := h.load.prepare(ctx); err != nil {
			return nil, fmt.Errorf("preparing %s: %w", h.name, err)
		}
	}
	return list, nil
}

// quiet is the load of the tenant that is measured.
func (n *neighbourhood) quiet(ctx context.Context, clients int) (Load, error) {
	load := Load{URL: n.nats, Creds: n.creds[quietTenant], Inbox: access.InboxOf(quietTenant), Tenant: quietTenant, Clients: clients, Millis: int64(n.o.Seconds * 1000)}
	if !n.o.HTTP {
		load.Commands = true
		return load, nil
	}
	load.Traffic = &traffic.Work{Case: traffic.PostItem, URL: n.url, Key: n.keys[quietTenant], Tenant: quietTenant, Clients: clients, Millis: load.Millis}
	for range clients {
		thread, err := traffic.Create(ctx, n.url, n.keys[quietTenant])
		if err != nil {
			return load, err
		}
		load.Traffic.Threads = append(load.Traffic.Threads, thread)
	}
	return load, nil
}

// measure measures one case. The flood is a process of its own, and so are the
// clients. profile is a file for a profile of the server; empty: none.
func (n *neighbourhood) measure(ctx context.Context, flood *Load, profile string) (*NeighbourCase, error) {
	settle()
	const clients = 2
	c := &NeighbourCase{Clients: clients}
	load, err := n.quiet(ctx, clients)
	if err != nil {
		return nil, err
	}
	var stop func() (*Loaded, error)
	if flood != nil {
		flood.Millis = load.Millis + 60_000
		if stop, err = flood.begin(ctx, n.o.LoadArgs); err != nil {
			return nil, err
		}
		retry.Sleep(ctx, time.Second) // it is at full blast
	}
	profiled := func() error { return nil }
	if profile != "" {
		if profiled, err = startProfile(profile); err != nil {
			return nil, err
		}
	}
	got, err := load.start(ctx, n.o.LoadArgs)
	err = errors.Join(err, profiled())
	if stop != nil {
		flooded, stopErr := stop()
		if err = errors.Join(err, stopErr); err == nil {
			c.Sent, c.Ended = flooded.Sent, flooded.Ended
		}
	}
	if err != nil {
		return nil, err
	}
	if len(got.Nanos) == 0 {
		return nil, fmt.Errorf("no command was done: %s", got.Error)
	}
	m := measured("", clients, got.durations(), time.Duration(got.Elapsed))
	c.PerSecond, c.P50Ms, c.P99Ms, c.Commands, c.Refused = m.CommitsPerSecond, m.P50Ms, m.P99Ms, m.Commits, got.Refused
	for _, n := range got.Nanos {
		c.MaxMs = max(c.MaxMs, ms(time.Duration(n)))
	}
	c.ServerMiB = float64(peak()) / (1 << 20)
	return c, nil
}

// Write prints the run as tables.
func (r *NeighbourResult) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "alongside\tclients\tcommands/s\tp50 ms\tp99 ms\tmax ms\trefused\tflood sent\tends\tserver MiB\t\n")
	for _, c := range r.Cases {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.2f\t%.2f\t%.1f\t%d\t%d\t%d\t%.0f\t\n", c.Name, c.Clients, c.PerSecond, c.P50Ms, c.P99Ms, c.MaxMs, c.Refused, c.Sent, c.Ended, c.ServerMiB)
	}
	fmt.Fprintln(t)
	for _, x := range r.Ratios {
		verdict := "missed"
		if x.Met {
			verdict = "met"
		}
		fmt.Fprintf(t, "%s\t%.2f\t%s\t%s\t\n", x.Name, x.Value, x.Goal, verdict)
	}
	return t.Flush()
}
