package schema

import "github.com/skein-threads/skein/events"

// Resource is a document with a JSON Schema of its own.
type Resource struct {
	Name  string
	Doc   string
	Asked bool // clients send it, so unknown fields are refused

	new func() any
}

// New returns a zero value of the resource's Go type.
func (r Resource) New() any { return r.new() }

// Resources lists the documents of package events, then the bodies of commands and
// their replies, in a fixed order.
func Resources() []Resource {
	var list []Resource
	for _, d := range events.Documents() {
		list = append(list, Resource{Name: d.Name, Doc: d.Doc, new: d.New})
	}
	return append(list,
		Resource{Name: "request", Doc: "The body of a command.", Asked: true, new: func() any { return events.Request{} }},
		Resource{Name: "reply", Doc: "The body of the answer to a command that was done.", new: func() any { return events.Reply{} }},
	)
}
