// Package skein runs Skein inside a Go program: the log of threads, the commands and
// queries on it, and runs of agents whose reactors, tools, effects and hooks are Go
// functions. What `skein serve` is for a machine, this is for a program.
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
//   - When Start returns without an error, commands and queries are taken. When it
//     returns an error, nothing is left running.
//   - What a command acknowledged is stored, whether Stop is called or the process is
//     killed. Runs that a killed process had begun continue in the next one, from
//     the last boundary that they reached.
//   - Other processes reach the same threads: with the embedded server at its
//     address, and with Options.NATS through that server. Clients in other languages
//     and the CLI work alongside.
//   - The exported API of this package and of skeintest, client and events follows
//     semantic versioning; docs/versioning.md says what else does.
//
// # What it does not
//
// Start gives a tenant's data to the whole process: a client of any tenant can be
// made here, and nothing authenticates calls within a program.
//
// What is registered after Start is found from then on. A run that was waiting in
// the store may begin before that: a missing reactor or tool is waited for, but hooks
// and loop policies apply only once they are there. Options.Setup registers before
// any run begins.
package skein
