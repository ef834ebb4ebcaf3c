package console

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// share is the tab with the links that show a thread to people without a key.
func share() page.Page {
	return page.Page{
		Path: "/threads/{thread}/share", Name: "Share", In: page.Tabs, Template: "share", JSON: "/api/threads/{thread}/shares{at}", CLI: "skein thread share {thread} --list",
		Load:   func(a *page.Ask) (any, error) { return newSharePage(a), nil },
		Panels: []page.Panel{{ID: "share-list", On: []string{"share.*"}, Load: listShares}},
	}
}

// sharePage is the data of the page, without its list.
type sharePage struct {
	MayWrite  bool
	CommandID string // of the next link, so that a form that is sent twice creates one link
	Made      bool
	Link      string // the link that was created; its token is not stored
}

func newSharePage(a *page.Ask) sharePage {
	return sharePage{MayWrite: a.May(edge.Write) && a.Live(), CommandID: uuid.NewString()}
}

// shareList is a thread's links, the newest first.
type shareList struct {
	Shares   []oneShare
	MayWrite bool
}

// oneShare is a link, as it is shown.
type oneShare struct {
	events.Share
	Ended bool // it has expired
}

func listShares(a *page.Ask) (any, error) {
	list, err := client.Read(a.Context(), a.Client, events.ListShares{ThreadID: a.Thread.ID, At: a.At})
	if err != nil {
		return nil, err
	}
	p := &shareList{MayWrite: a.May(edge.Write) && a.Live()}
	for _, s := range list.Shares {
		end, err := events.ParseTime(s.ExpiresAt)
		p.Shares = append([]oneShare{{s, err == nil && end <= events.TimeOf(time.Now())}}, p.Shares...)
	}
	return p, nil
}

func shareActions() []page.Action {
	return []page.Action{
		{Path: "/threads/{thread}/share", Shows: makeShare, On: share()},
		{Path: "/threads/{thread}/share/end", Do: endShare},
	}
}

// makeShare creates a link. Only the page in the response shows it.
func makeShare(a *page.Ask) (any, error) {
	var d events.ShareThread
	if lasts := a.Form("lasts"); lasts != "" {
		length, err := time.ParseDuration(lasts)
		if err != nil || length <= 0 {
			return nil, events.Invalid("/lasts", "lasts is %.40q; it takes a duration such as 24h, or nothing", lasts)
		}
		// In full minutes, so that a form that is sent twice is the same command.
		d.ExpiresAt = time.Now().Add(length).Truncate(time.Minute).Add(time.Minute).UTC().Format(time.RFC3339)
	}
	var options []client.Option
	if id := a.Form("commandId"); id != "" {
		options = append(options, client.CommandID(id))
	}
	reply, err := a.Client.Send(a.Context(), a.Thread.ID, d, options...)
	p := newSharePage(a)
	p.Made = true
	if events.IsReusedID(err) { // the form was sent before, and the link ends at another minute now
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	if token := reply.Result.Token; token != "" {
		origin := a.Request.Header.Get("Origin")
		if !strings.HasPrefix(origin, "http") { // the origin is unknown
			origin = ""
		}
		p.Link = origin + sharedLink(a.Tenant, token)
	}
	return p, nil
}

func endShare(a *page.Ask) (string, error) {
	_, err := a.Client.Send(a.Context(), a.Thread.ID, events.UnshareThread{ShareID: a.Form("shareId")})
	return a.ThreadLink("/share"), err
}
