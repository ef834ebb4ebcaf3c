package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

// check is the result of one health check.
type check struct {
	Name   string  `json:"name"`
	OK     bool    `json:"ok"`
	Ms     float64 `json:"ms"`
	Reason string  `json:"reason,omitzero"`
}

// healthReport is the JSON output of health.
type healthReport struct {
	OK     bool    `json:"ok"`
	Checks []check `json:"checks"`
}

func (a *app) healthCommand() *cobra.Command {
	r := &remote{}
	var ops string
	cmd := &cobra.Command{
		Use: "health", Short: "Check whether Skein works: connection, commands, queries, and the process itself", Args: cobra.NoArgs,
		Long: "Check whether Skein works, and exit 1 if it does not. With --tenant it checks over NATS, as a client of that\n" +
			"tenant: a command that changes nothing, which fails once the embedded server could not write, such as on\n" +
			"a full disk, and a query that must show the log as it is now. With --http it checks the process's /readyz.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.Tenant == "" && ops == "" {
				return cli.WrongUsage("use --tenant to check over NATS, --http to check the process, or both")
			}
			report := healthReport{OK: true}
			ask := func(name string, do func(context.Context) error) {
				ctx, cancel := context.WithTimeout(cmd.Context(), r.Timeout)
				defer cancel()
				begun := time.Now()
				err := do(ctx)
				c := check{Name: name, OK: err == nil, Ms: float64(time.Since(begun).Microseconds()) / 1000}
				if err != nil {
					c.Reason, report.OK = err.Error(), false
				}
				report.Checks = append(report.Checks, c)
			}
			if r.Tenant != "" {
				if err := healthOverNATS(r, ask); err != nil {
					return err
				}
			}
			if ops != "" {
				ask("process", func(ctx context.Context) error { return readyOverHTTP(ctx, ops) })
			}
			return a.printHealth(r, report)
		},
	}
	r.Flags(cmd)
	tenantIs(cmd, "tenant as whose client NATS is checked")
	cmd.Flags().StringVar(&ops, "http", "", "URL of the process's HTTP address, such as http://127.0.0.1:8420")
	return cmd
}

// healthOverNATS checks as a client of the tenant.
func healthOverNATS(r *remote, ask func(string, func(context.Context) error)) error {
	if err := r.NeedTenant(); err != nil {
		return err
	}
	var c *client.Client
	ask("connection", func(context.Context) (err error) {
		c, err = r.Connect()
		return err
	})
	if c == nil {
		return nil
	}
	defer c.Close()
	ask("commands", func(ctx context.Context) error {
		// No thread has this id, and only the log's leader can tell that.
		none, title := "T-"+uuid.Must(uuid.NewV7()).String(), "health"
		_, err := c.Send(ctx, none, events.UpdateThread{Title: &title})
		if events.HasCode(err, events.NotFound, events.Forbidden) {
			return nil // forbidden: these credentials are read-only
		}
		return err
	})
	ask("queries", func(ctx context.Context) error {
		end, err := c.HistoryEnd(ctx)
		if err != nil {
			return err
		}
		one := int64(1) // of read models that show the log as it is now, or say how far they are
		_, err = client.Read(ctx, c, events.ListThreads{Limit: &one, Fresh: events.Fresh{MinSeq: &end}})
		return err
	})
	return nil
}

// readyOverHTTP checks whether a process is ready.
func readyOverHTTP(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	var h struct{ Reason string }
	if json.UnmarshalRead(answer.Body, &h, json.MatchCaseInsensitiveNames(true)) != nil || h.Reason == "" {
		return fmt.Errorf("%s/readyz answered %s", url, answer.Status)
	}
	return errors.New(h.Reason)
}

func (a *app) printHealth(r *remote, report healthReport) error {
	if r.JSON {
		if err := a.PrintJSON(report); err != nil {
			return err
		}
	} else {
		t := a.Table("CHECK", "RESULT", "MS", "REASON")
		for _, c := range report.Checks {
			result := "ok"
			if !c.OK {
				result = "failed"
			}
			t.Row(c.Name, result, fmt.Sprintf("%.1f", c.Ms), cli.OrDash(eventtext.Brief(c.Reason, 200)))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, c := range report.Checks {
		if !c.OK {
			return cli.Failed("unhealthy", c.Name+": "+c.Reason)
		}
	}
	return nil
}
