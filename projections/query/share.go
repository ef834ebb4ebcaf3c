package query

import (
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

func listShares(a *asking, d events.ListShares) (*events.ShareList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	got, err := sharesOf(a, d.ThreadID)
	if err != nil {
		return nil, err
	}
	if d.Actor != "" {
		got = slices.DeleteFunc(got, func(f found) bool { return f.doc.(*events.Share).Actor != d.Actor })
	}
	p := paging{d.Limit, d.Cursor, mark("share.list", a.tenant, a.thread, d.Actor)}
	if d.ThreadID == "" && p.limit == nil {
		p.limit = new(int64(sharesUsual))
	}
	list, next, err := pageOf(a, p, got, func(s *events.Share) string { return ordinal(s.Seq, ordinal(s.Version)) })
	for i := range list {
		list[i].Digest = ""
	}
	return &events.ShareList{Shares: list, NextCursor: next}, err
}

// sharesUsual is the default number of a tenant's shares on a page.
const sharesUsual = 50

// sharesOf returns the shares of a thread, or of all threads of the tenant. The shares of a cold
// thread stay in their bucket.
func sharesOf(a *asking, ref string) (got []found, err error) {
	if ref != "" {
		return a.ofThreadAll(ref, documents.Shares, ".*")
	}
	err = a.eachOfTenant(documents.Shares, func(f found) { got = append(got, f) })
	return got, err
}

// readShared returns the messages of a shared thread. The answer shows the log up to now, so that
// a revoked share opens nothing. For every invalid token the refusal is the same, and does not
// repeat the token.
func readShared(a *asking, d events.ReadShared) (*events.SharedThread, error) {
	end, err := a.log.LastSeq(a.ctx)
	if err != nil {
		return nil, err
	}
	now := int64(end)
	if err := a.about("", nil, events.Fresh{MinSeq: &now}); err != nil {
		return nil, err
	}
	id, ok := events.ShareOf(d.Token)
	if !ok {
		return nil, noSuchShare()
	}
	got, err := a.source.find(a.ctx, documents.Shares, a.tenant+".*."+id)
	if err != nil {
		return nil, err
	}
	for _, f := range got {
		share, ok := f.doc.(*events.Share)
		if !ok || !share.Opens(d.Token, events.TimeOf(a.cfg.Now())) {
			continue
		}
		a.thread = share.ThreadID
		from := int64(0)
		if d.FromMessage != nil {
			from = *d.FromMessage
		}
		doc, err := a.document(share.ThreadID, &from)
		if err != nil {
			return nil, err
		}
		return &events.SharedThread{Title: doc.Title, Created: doc.Created, Messages: doc.Messages, NextMessageIndex: doc.NextMessageIndex}, nil
	}
	return nil, noSuchShare()
}

func noSuchShare() error {
	return events.Errorf(events.NotFound, "no share has this token: it is wrong, or the share has ended; ask for a new one")
}
