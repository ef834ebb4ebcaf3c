package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skein-threads/skein/api/rest"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/cmd/skein/operator"
	"github.com/skein-threads/skein/cmd/skein/user"
	"github.com/skein-threads/skein/server/metrics"
)

// generatedPages returns the pages of what the program publishes of itself.
func generatedPages() (map[string]string, error) {
	app := cli.New()
	root := app.Root(app.Verbs(), user.Verbs(app), operator.Verbs(app))
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		return nil, err
	}
	routes, err := routesPage()
	if err != nil {
		return nil, err
	}
	return map[string]string{"cli.md": commandLinePage(root), "configuration.md": configurationPage(serve), "routes.md": routes, "metric-list.md": metricsPage()}, nil
}

// commandLinePage describes all commands of skein, as their --help does.
func commandLinePage(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The command line\n\nEach command has `--help`; man pages have the same.\n\n```text\n%s\n```\n", strings.TrimSpace(root.Long))
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
				continue
			}
			if c.Runnable() && !c.HasSubCommands() {
				writeCommand(&b, c)
			}
			walk(c)
		}
	}
	walk(root)
	return b.String()
}

// writeCommand describes a command.
func writeCommand(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```text\n%s\n", c.CommandPath(), prose(c.Short+"."), c.UseLine())
	if c.Long != "" && c.Long != c.Short {
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(c.Long))
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	c.InitDefaultHelpFlag()
	if flags := c.LocalFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(b, "\nFlags:\n%s", flags)
	}
	b.WriteString("```\n")
}

// configurationPage lists the settings of a server.
func configurationPage(serve *cobra.Command) string {
	var b strings.Builder
	b.WriteString(`# Configuration

` + "```sh" + `
skein serve --store /var/lib/skein --tenant acme
SKEIN_STORE=/var/lib/skein SKEIN_TENANT=acme skein serve        # the same
skein serve --config skein.json                                 # {"store": "/var/lib/skein", "tenant": "acme"}
` + "```" + `

A flag takes precedence over its variable, and a variable over the file. A number or duration that means
nothing, such as --workers 0, is refused with exit code 2.

| flag | variable | default | what |
|---|---|---|---|
`)
	serve.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		fallback := f.DefValue
		if fallback == "[]" || fallback == "" || fallback == "false" {
			fallback = "none"
		}
		fmt.Fprintf(&b, "| `--%s` | `%s` | `%s` | %s |\n", f.Name, cli.Variable(f.Name), fallback, cell(f.Usage))
	})
	return b.String()
}

// metricsPage lists all metrics of Skein's own.
func metricsPage() string {
	var b strings.Builder
	b.WriteString("# All metrics\n\n```sh\ncurl http://127.0.0.1:8420/metrics\n```\n\n[Metrics and health](docs/metrics.md) says who may read them.\n\n| metric | type | what |\n|---|---|---|\n")
	for _, m := range metrics.List() {
		fmt.Fprintf(&b, "| `%s`%s | %s | %s |\n", m.Name, m.Labels(), m.Type, cell(m.Help))
	}
	return b.String()
}

// operation is a route, as the OpenAPI document has it.
type operation struct {
	Summary     string   `json:"summary"`
	Tags        []string `json:"tags"`
	Parameters  []field  `json:"parameters"`
	RequestBody struct {
		Description string             `json:"description"`
		Content     map[string]content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Description string             `json:"description"`
		Content     map[string]content `json:"content"`
	} `json:"responses"`
}

// field is a parameter.
type field struct {
	Name        string `json:"name"`
	In          string `json:"in"`
	Required    bool   `json:"required"`
	Description string `json:"description"`
}

// content is a body of one kind.
type content struct {
	Schema struct {
		Ref string `json:"$ref"`
	} `json:"schema"`
}

// routesPage lists all routes of HTTP.
func routesPage() (string, error) {
	raw, err := rest.OpenAPI()
	if err != nil {
		return "", err
	}
	var document struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return "", fmt.Errorf("read the OpenAPI document: %w", err)
	}
	var b strings.Builder
	b.WriteString("# HTTP routes\n\n```sh\ncurl http://127.0.0.1:8420/api/openapi.json\n```\n\nThis page lists the routes of that document; [HTTP](docs/http.md) describes them as a whole.\n")
	sections := map[string][]string{}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(document.Paths[path])) {
			o := document.Paths[path][method]
			tag := "other"
			if len(o.Tags) > 0 {
				tag = o.Tags[0]
			}
			sections[tag] = append(sections[tag], routeText(strings.ToUpper(method), path, o))
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(sections)) {
		fmt.Fprintf(&b, "\n## %s\n\n%s", tag, strings.Join(sections[tag], ""))
	}
	return b.String(), nil
}

// routeText describes a route.
func routeText(method, path string, o operation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s `%s`\n\n%s\n\n", method, path, prose(o.Summary))
	if len(o.Parameters) > 0 {
		b.WriteString("| parameter | in | what |\n|---|---|---|\n")
		for _, p := range o.Parameters {
			what := p.Description
			if p.Required {
				what = strings.TrimSpace(what + " Required.")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, p.In, cell(what))
		}
		b.WriteString("\n")
	}
	if body := bodies(o.RequestBody.Content); body != "" {
		fmt.Fprintf(&b, "Body: %s.\n\n", body)
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		answer := o.Responses[status]
		fmt.Fprintf(&b, "- **%s** %s", status, prose(answer.Description))
		if body := bodies(answer.Content); body != "" {
			fmt.Fprintf(&b, " Body: %s.", body)
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}

// bodies names the kinds of a body, each with its schema.
func bodies(of map[string]content) string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		text := "`" + kind + "`"
		if name := strings.TrimPrefix(of[kind].Schema.Ref, "#/components/schemas/"); name != "" {
			text += " of `" + name + "`"
		}
		kinds = append(kinds, text)
	}
	return strings.Join(kinds, ", ")
}

// prose returns a text of the program as Markdown that shows it unchanged.
func prose(text string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "*", `\*`, "{{", "{&#123;", "[", `\[`, "_", `\_`).Replace(text)
}

// cell returns a text of the program for a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(prose(text), "|", `\|`), "\n", " ")
}
