package console

import (
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// approvals is the page with all threads' requests that wait for a person.
func approvals() page.Page {
	return page.Page{
		Path: "/approvals", Name: "Approvals", In: page.Navigation, Template: "approvals", JSON: "/api/approvals{query}", CLI: "skein approval list",
		Query: []string{"status", "agentId", "cursor"},
		Load: func(a *page.Ask) (any, error) {
			return choices{a.Query("status"), events.ApprovalStatus("").Enum()}, nil
		},
		Panels: []page.Panel{{ID: "approval-list", On: []string{"approval.*", "execution.status.changed", "lifecycle.*"}, Load: listApprovals}},
	}
}

// choices are the values of a filter.
type choices struct {
	Chosen string
	All    []string
}

// approvalPage is a page of requests.
type approvalPage struct {
	Approvals  []events.Approval
	Titles     map[string]string // of the requests' threads
	Next       string
	MayApprove bool
}

func listApprovals(a *page.Ask) (any, error) {
	list, next, err := readApprovals(a, events.ListApprovals{Status: events.ApprovalStatus(a.Query("status")), AgentID: a.Query("agentId"), Cursor: a.Query("cursor")})
	if err != nil {
		return nil, err
	}
	p := &approvalPage{Approvals: list, Titles: titles(a, list, func(x *events.Approval) string { return x.ThreadID }), MayApprove: a.May(edge.Approve)}
	if next != "" {
		p.Next = a.With("cursor", next)
	}
	return p, nil
}

// readApprovals returns a page of approvals. It reads on if a page is empty and more follow.
func readApprovals(a *page.Ask, q events.ListApprovals) ([]events.Approval, string, error) {
	return firstRows(q.Cursor, func(cursor string) ([]events.Approval, string, error) {
		q.Cursor = cursor
		list, err := client.Read(a.Context(), a.Client, q)
		if err != nil {
			return nil, "", err
		}
		return list.Approvals, list.NextCursor, nil
	})
}
