package operator

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
			{Title: "Servers", List: []*cobra.Command{
				a.serveCommand(), a.gatewayCommand(), a.demoCommand(), a.healthCommand(), a.accessCommand(),
			}},
			{Title: "What is stored", List: []*cobra.Command{
				a.auditCommand(), a.operationCommand(), a.backupCommand(), a.restoreCommand(), a.storeCommand(), a.replayCommand(),
				a.sizeCommand(), a.archiveCommand(),
			}},
		},
		Below:    map[string][]*cobra.Command{"thread": {a.threadFreeze()}, "files": {a.filesCollect()}},
		Examples: examples,
	}
}

const examples = `
skein serve --dev
skein serve --store /var/lib/skein --access /etc/skein --ops-listen 0.0.0.0:8421
skein serve --tenant acme
skein serve --nats nats://n1:4222,nats://n2:4222,nats://n3:4222 --replicas 3 --creds skein.creds
skein gateway --nats tls://n1:4222 --creds gateway.edge.creds --tls-ca ca.pem --http-listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem --http-host api.example.org
skein demo
skein health --tenant acme
skein health --http http://127.0.0.1:8420

skein thread freeze --idle 7d --dry-run
skein thread freeze key:order:42 --idle 0

skein files gc --delete

skein replay --verify
skein replay threads items
skein audit verify
skein audit verify key:order:42 --log-only
skein audit trail key:order:42 --actor support
skein audit diff key:order:42 --from 12 --to 20
skein audit export --all-tenants -o acme.jsonl --sign auditor.nk
skein audit import acme.jsonl --all-tenants
skein size --limit 10
skein archive --idle 90d --dry-run
skein backup /backups/2026-02-20
skein operation list
skein operation list --json
skein restore /backups/2026-02-20
skein restore /backups/2026-02-20 --store /var/lib/skein
skein store check --store /var/lib/skein --json
skein store repair --store /var/lib/skein --from /backups/2026-02-20
skein store repair --store /var/lib/skein --accept-loss
skein store repair --server nats://n1:4222 --accept-loss

skein access init --host skein.example.com
skein access tenant acme
skein access user --tenant acme --name shop --role publisher --expires 720h
skein access list
skein access revoke --tenant acme --name shop
skein access key create --tenant acme --role publisher,subscriber --name shop --expires 90d
skein access key create --tenant acme --role subscriber --user ada --can read
skein access key list
skein access key revoke 5f0c2e9b7d41

`
