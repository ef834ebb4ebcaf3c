package user

import (
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/cmd/skein/cli"
)

// app is a run of the program, with the commands of this package.
type app struct{ *cli.App }

// Verbs returns the commands of this package.
func Verbs(of *cli.App) cli.Verbs {
	a := &app{of}
	return cli.Verbs{
		Groups: []cli.Commands{
			{Title: "Threads", List: []*cobra.Command{
				a.threadCommand(), a.messageCommand(), a.itemCommand(), a.tailCommand(), a.importCommand(),
				a.filesCommand(), a.stateCommand(), a.sessionCommand(), a.kvCommand(), a.mcpCommand(), a.acpCommand(),
			}},
			{Title: "Agents", List: []*cobra.Command{
				a.applyCommand(), a.definitionCommand(), a.skillCommand(), a.runCommand(), a.approvalCommand(), a.queueCommand(),
				a.effectCommand(), a.workerCommand(),
			}},
			{Title: "Any command, any query", List: []*cobra.Command{a.rawCommand(), a.rawQuery()}},
		},
		Examples: examples,
	}
}

const examples = `
skein import conversations.jsonl

skein thread create --key order:42 --title 'Order 42' --agent support
skein thread get key:order:42
skein thread get key:order:42 --at 12
skein thread list --status open --limit 20
skein thread react key:order:42 'Where is my parcel?' --follow
skein thread update key:order:42 --title 'Order 42, delayed' --archived=false
skein thread status key:order:42 open
skein thread delete key:order:42 --purge
skein thread fork key:order:42 --message 3 --key order:42:b
skein thread handoff key:order:42 --summary 'Order 42 was lost; refund it.' --comment refund
skein thread mention key:order:42 key:order:17 --comment 'the same parcel'
skein thread truncate key:order:42 3
skein thread export key:order:42
skein thread export key:order:42 --markdown
skein thread tree key:order:42
skein thread share key:order:42 --expires-at 2030-01-01T00:00:00Z
skein thread share key:order:42 --list
skein thread share key:order:42 --revoke shr_0190c0de00007000a000000000000001
skein item add key:order:42 'Where is my parcel?'
echo 'a long text' | skein item add key:order:42 -
skein item add key:order:42 --type action_result --content '{"callId":"c1","output":"done"}'
skein item get key:order:42 itm_0190c0de00007000a000000000000001
skein item list key:order:42 --order desc --limit 10
skein message add key:order:42 'Where is my parcel?'
skein message list key:order:42 --limit 20
skein message edit key:order:42 itm_0190c0de00007000a000000000000001 'Where are my parcels?'
skein message rm key:order:42 itm_0190c0de00007000a000000000000001

skein run list --status executing
skein run list --agent support --json
skein run stop key:order:42 --reason 'asked by the customer'
skein run stop key:order:42 --now
skein run cancel key:order:42
skein run cancel key:order:42 --discard
skein run retry key:order:42 --follow
skein run turn key:debate a
skein approval list
skein approval list --status denied --agent support
skein approval grant key:order:42 call_1 --comment 'checked with the bank'
skein approval deny key:order:42 call_1 --comment 'over the limit'
skein approval resolve key:order:42 call_1 --result '{"refunded":true}'
skein approval resolve key:order:42 call_1 --grant --arguments '{"eur":4}'
skein queue list key:order:42
skein queue rm key:order:42 0190c0de-0000-7000-a000-000000000001
skein kv get settings theme
skein kv set settings theme '"dark"'
skein kv rm settings theme
skein kv list settings
skein skill list key:order:42
skein skill activate key:order:42 refunds --arguments '{"order":42}'
skein queue edit key:order:42 0190c0de-0000-7000-a000-000000000001 'Where are my parcels?'
skein queue move key:order:42 0190c0de-0000-7000-a000-000000000002 --before 0190c0de-0000-7000-a000-000000000001
skein state get key:order:42 cart
skein state set thrd_abc123def456789012345678901 cart '{"items":2}' --create
skein state push key:order:42 messages 'Where is my order?' --max 50
skein state rm key:order:42 cart
skein state destroy key:order:42
skein session start key:order:42 sess_0195e5d03c1a7b2e9f441d2e3f405170
skein session complete key:order:42 sess_0195e5d03c1a7b2e9f441d2e3f405170 --error 'the model did not answer'
skein effect list key:order:42
skein effect list --only late
skein effect cancel key:order:42 0190c0de-0000-7000-a000-000000000001

skein apply -f agents.yaml --dry-run
skein apply -f agents.yaml --prune
skein definition list --kind agent
skein definition get agent support --version 2
skein definition pack support
skein worker list --kind agent

skein files put key:order:42 invoice.pdf /invoices/42.pdf
skein files cat key:order:42 /notes.md
skein files get key:order:42 /invoices/42.pdf
skein files ls key:order:42 /invoices
skein files stat key:order:42 /invoices/42.pdf
skein files mkdir key:order:42 /invoices
skein files rm key:order:42 /notes.md
skein files grep key:order:42 'total: [0-9]+' --glob '**/*.md'
skein files find key:order:42 '**/*.pdf'
skein files du key:order:42

skein tail key:order:42 --from start
skein tail --type 'execution.*' --json
skein cmd thread.update '{"title":"Order 42"}' --thread key:order:42
echo '{"title":"Order 43"}' | skein cmd thread.create -
skein query thread.get '{"threadId":"key:order:42"}'

skein mcp
skein mcp --thread key:order:42
skein mcp --listen 127.0.0.1:8421 --token-file skein-mcp.token
skein acp --agent support
`
