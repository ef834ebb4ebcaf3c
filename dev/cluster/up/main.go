// Command up runs a cluster on loopback until Ctrl-C: three nats-servers with the
// configuration of deploy/cluster, and two Skeins. It is `make cluster`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/skein-threads/skein/dev/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// run runs the cluster of the folder in which it is started.
func run(ctx context.Context) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	programs, err := cluster.Build(ctx, root, bin)
	if err != nil {
		return err
	}
	cfg := cluster.Config{Programs: programs, Conf: filepath.Join(root, "deploy", "cluster"), Dir: root}
	for i := range cfg.Places { // as the configuration has them
		cfg.Places[i] = cluster.Place{
			Client: fmt.Sprintf("127.0.0.1:422%d", i+1), Route: fmt.Sprintf("127.0.0.1:622%d", i+1), Monitor: fmt.Sprintf("127.0.0.1:822%d", i+1),
		}
	}
	c, err := cluster.New(cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	starting, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := c.Start(starting); err != nil {
		return err
	}
	for i, name := range []string{"a", "b"} {
		if _, err := c.Skein(starting, "skein-"+name, c.URL(), "--http-listen", fmt.Sprintf("127.0.0.1:842%d", i+1)); err != nil {
			return err
		}
	}
	fmt.Printf("the cluster is ready: export SKEIN_SERVER=%s\nlogs and data: %s; Ctrl-C stops it\n", c.URL(), c.Folder())
	<-ctx.Done()
	fmt.Println("stopping")
	return nil
}
