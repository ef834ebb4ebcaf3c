// Package skein runs Skein inside a Go program: the log of threads, the commands and
// queries on it, and runs of agents whose reactors, tools, effects and hooks are Go
// functions. It is the library behind `skein serve`.
//
//	s, err := skein.Start(ctx, skein.Options{Store: "data"})
//	if err != nil {
//		return err
//	}
//	defer s.Stop(context.Background())
//	err = s.Reactor("shout", func(ctx context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
//		...
//	})
//	c, err := s.Client("acme")
//	answer, err := c.Ask(ctx, threadID, "hello")
//
// # What it promises
//
//   - When Start returns without an error, commands and queries are accepted. When it
//     returns an error, nothing is left running.
//   - What a command acknowledged is stored, whether Stop is called or the process is
//     killed. Runs of a killed process continue in the next one, from their last
//     boundary.
//   - Other processes can use the same threads: with the embedded server at its
//     address, and with Options.NATS through that server. Clients in other languages
//     and the CLI work alongside.
//   - The exported API of this package and of skeintest, client and events follows
//     semantic versioning; docs/versioning.md has the details.
//
// # What it does not
//
// A program has access to the data of all tenants: Client returns a client of any
// tenant, and calls within a program are not authenticated.
//
// Registrations after Start take effect from then on, and a run that waits in the store
// may begin earlier. Such a run waits for a missing reactor or tool, but hooks and loop
// policies apply only once they are registered. Options.Setup registers before any run
// begins.
package skein
