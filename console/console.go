package console

import (
	"embed"
	"fmt"
	"slices"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/console/chart"
	"github.com/skein-threads/skein/console/markdown"
	"github.com/skein-threads/skein/console/page"
)

// templates are the templates of the pages.
//
//go:embed templates/*.html
var templates embed.FS

// Options configures the console.
type Options struct {
	System    System         // the data of the page System; default: no such page
	Operators edge.Operators // the principals who may see it
	Prices    []string       // of models, in the form of chart.ParsePrices; default: costs are not shown
}

// Routes adds the console's routes to an edge.
func Routes(e *edge.Edge, o Options) error {
	prices, err := chart.ParsePrices(o.Prices)
	if err != nil {
		return fmt.Errorf("console: price %w", err)
	}
	texts := markdown.New()
	return page.Routes(e, page.Site{
		Pages: append(table(texts, prices), system(o.System, o.Operators)...), Actions: actions(), Pictures: []page.Picture{thumbnail()}, Shared: []page.Shared{shared(texts)}, Templates: templates, Home: "/threads", Next: nextStep,
		Assets: map[string][]byte{"code.css": []byte(markdown.Stylesheet())},
	})
}

// table lists the pages, in the order of the navigation and of the tabs. texts renders the texts
// of conversations and files.
func table(texts *markdown.Renderer, prices chart.Prices) []page.Page {
	return []page.Page{
		threads(),
		approvals(), runs(), tenantEffects(), definitions(), definition(),
		conversation(texts), timeline(), run(&talk{texts}, prices), family(), state(), files(texts), effects(), share(), audit(),
	}
}

// actions lists the actions of all forms.
func actions() []page.Action {
	return slices.Concat(threadActions(), conversationActions(), fileActions(), effectActions(), definitionActions(), shareActions())
}
