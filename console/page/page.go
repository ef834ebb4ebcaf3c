package page

import (
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
)

// Place is where a page is linked.
type Place int

// The places.
const (
	Unlinked   Place = iota // other pages link it
	Navigation              // in the navigation of all pages
	Tabs                    // in the tabs of a thread: its path begins with /threads/{thread}
)

// Page is a page of the console.
type Page struct {
	Path     string // below /console, a path of http.ServeMux, such as /threads/{thread}/run
	Name     string // in its title, and in the navigation or the tabs
	In       Place
	Right    edge.Capability // what the principal must be capable of; default Read
	Template string          // the name of its template

	// For reports whether a caller may see the page; default: every caller with the right. For
	// others the page does not exist.
	For func(*edge.Caller) bool

	// JSON and CLI are the path and the command that show the same, empty if there is none.
	// In them {name} stands for a value of the page's path. {at} stands for the option that
	// selects a version, and for nothing if the page shows the present. {query} stands for
	// {at} and the parameters that Query names. Data that Load returns may be Params.
	JSON, CLI string
	Query     []string

	Load   func(*Ask) (any, error) // returns .Data of the template; default nil
	Panels []Panel

	// Follow runs while a browser follows the page, besides the panels, and sends what they
	// do not show, such as chunks. It returns when the context of the ask ends. Default none.
	Follow func(a *Ask, send func(Patch) error) error
}

// Params is implemented by the data of a page to translate its parameters to those of the JSON
// address and the command.
type Params interface {
	// Param returns a parameter's value; empty: it is left out.
	Param(name string) string
}

// Panel is a part of a page that is replaced when it changes. Its template has its id as
// name.
type Panel struct {
	ID   string
	On   []string                // types of events that change it; item.* is all of an entity
	Load func(*Ask) (any, error) // returns .Data of the template

	// Row returns the row that an event adds or changes, instead of loading the panel again.
	// Rows are elements of the panel's element with the attribute data-rows. Default: the
	// panel is replaced.
	Row func(a *Ask, e client.Event) (*Row, error)
}

// Row is one row of a panel.
type Row struct {
	ID       string // the id of its element
	Template string
	Data     any // nil: the row is removed
}

// Patch is a change of a page that is open in a browser.
type Patch struct {
	Panel  string `json:"panel,omitzero"`  // the panel that is changed
	Row    string `json:"row,omitzero"`    // the row of the panel; default: the whole panel
	HTML   string `json:"html,omitzero"`   // the new content; empty for a row: the row is removed
	Digest string `json:"digest,omitzero"` // of HTML: a page that has it needs no change
	Text   string `json:"text,omitzero"`   // instead of HTML: text to append to the row
}

// Action is a change that a form makes.
type Action struct {
	Path  string          // below /console, as of a page
	Right edge.Capability // what the principal must be capable of; default Write

	// Do makes the change, and returns the address of the page to show next.
	Do func(*Ask) (address string, err error)

	// Shows makes the change instead of Do, and returns .Data for the page in the response. It is
	// for data that can be shown only once.
	Shows func(*Ask) (any, error)
	On    Page // that page
}
