package query

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/eventlog/chunks"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Default lengths of lists.
const (
	logUsual    = 500
	chunksUsual = 256
)

// getHistory returns the name and the end of the log.
func getHistory(a *asking, d events.GetHistory) (*events.HistoryEnd, error) {
	if err := a.awaitSeq(d.MinSeq, true); err != nil {
		return nil, err
	}
	return a.logEnd()
}

// logEnd returns the last sequence of the log, read from its leader.
func (a *asking) logEnd() (*events.HistoryEnd, error) {
	end, err := a.log.End(a.ctx)
	return &events.HistoryEnd{LastSeq: int64(end.Seq), Log: end.Incarnation}, err
}

// checkLog returns the log's name. The error is a position_ahead if the query names another log.
func (a *asking) checkLog(named string) (log string, err error) {
	if log, err = a.log.Incarnation(a.ctx); err != nil {
		return "", err
	}
	return log, events.CheckLog(named, log)
}

// listHistory returns the tenant's events as they are in the log, including those of aggregates
// other than threads. A commit that cannot be read is listed as broken.
func listHistory(a *asking, d events.ListHistory) (*events.HistoryList, error) {
	if err := a.awaitSeq(d.MinSeq, true); err != nil {
		return nil, err
	}
	log, err := a.checkLog(d.Log)
	if err != nil {
		return nil, err
	}
	aggregate := "*"
	if d.ThreadID != "" {
		if err := a.resolve(d.ThreadID); err != nil {
			return nil, err
		}
		aggregate = a.thread
	}
	from, after := uint64(1), int64(0)
	if d.FromSeq != nil {
		from = uint64(*d.FromSeq)
	}
	if d.AfterVersion != nil {
		after = *d.AfterVersion
	}
	list := &events.HistoryList{Entries: []events.HistoryEntry{}, Log: log}
	most, room := limit(d.Limit, logUsual), a.answerBytes()
	for m, err := range a.log.Raw(a.ctx, a.log.Config().Names.Log(a.tenant, aggregate), from) {
		if err != nil {
			return nil, err
		}
		if m.Seq != from {
			after = 0
		}
		entries := entriesOf(a, m, after)
		for i, e := range entries {
			if room -= len(e.Event) + 256; len(list.Entries) == most || room < 0 && len(list.Entries) > 0 {
				list.NextSeq = int64(m.Seq)
				if i > 0 {
					list.NextVersion = versionIn(entries[i-1])
				} else if m.Seq == from {
					list.NextVersion = after
				}
				return list, nil
			}
			list.Entries = append(list.Entries, e)
		}
	}
	if len(list.Entries) > 0 || from == 1 {
		return list, nil
	}
	end, err := a.logEnd() // a lagging replica may have been read
	if err != nil {
		return nil, err
	}
	return list, end.CheckPosition(d.Log, int64(from)-1)
}

// entriesOf returns the events in a message of the log after a version.
func entriesOf(a *asking, m streams.Message, after int64) []events.HistoryEntry {
	commit, err := a.log.Decode(m)
	if err != nil {
		e := events.HistoryEntry{Seq: int64(m.Seq), Broken: true}
		var broken *events.BrokenError
		if errors.As(err, &broken) {
			e.ThreadID = broken.Thread
		}
		return []events.HistoryEntry{e}
	}
	out := make([]events.HistoryEntry, 0, len(commit.Events))
	for i := range commit.Events {
		if e := &commit.Events[i]; e.Version > after {
			out = append(out, events.HistoryEntry{Seq: int64(m.Seq), Event: e.Raw()})
		}
	}
	return out
}

// versionIn returns the version of an entry's event.
func versionIn(e events.HistoryEntry) int64 {
	event, err := events.DecodeEvent(e.Event)
	if err != nil { // it was decoded before
		return 0
	}
	return event.Version
}

// checkChunk returns a position_ahead if a query begins after a chunk that an active run has not
// written yet. For an ended run there is no error: the answer shows the end.
func checkChunk(a *asking, d events.ListChunks, log string) error {
	if d.AfterIndex == nil {
		return nil
	}
	next, ended, err := chunks.Next(a.ctx, a.log.Streams(), a.tenant, a.thread, d.ExecutionID)
	if err != nil || ended || *d.AfterIndex < next {
		return err
	}
	x, err := getExecution(a, events.GetExecution{ThreadID: d.ThreadID, ExecutionID: d.ExecutionID})
	if err != nil || x.Status != events.Executing {
		return nil // the read model may not have it yet
	}
	return events.ChunkAhead(d.ExecutionID, *d.AfterIndex, next, log)
}

// listChunks returns the stored chunks of an execution. An empty list is no error, because chunks
// are kept for a limited time.
func listChunks(a *asking, d events.ListChunks) (*events.ChunkList, error) {
	if err := a.awaitSeq(d.MinSeq, true); err != nil {
		return nil, err
	}
	if err := a.resolve(d.ThreadID); err != nil {
		return nil, err
	}
	log, err := a.checkLog(d.Log)
	if err == nil {
		err = checkChunk(a, d, log)
	}
	if err != nil {
		return nil, err
	}
	if d.FromIndex == nil && d.AfterIndex != nil {
		d.FromIndex = new(*d.AfterIndex + 1)
	}
	from := uint64(1)
	if d.FromSeq != nil {
		from = uint64(*d.FromSeq)
	}
	most, room := limit(d.Limit, chunksUsual), a.answerBytes()
	if d.FromIndex != nil && int(*d.FromIndex) > most {
		seq, err := chunks.Find(a.ctx, a.log.Streams(), a.tenant, a.thread, d.ExecutionID, *d.FromIndex)
		if err != nil {
			return nil, err
		}
		from = max(from, seq)
	}
	list := &events.ChunkList{Chunks: []events.StoredChunk{}}
	for m, err := range chunks.Messages(a.ctx, a.log.Streams(), a.tenant, a.thread, d.ExecutionID, from) {
		if err != nil {
			return nil, err
		}
		if !jsontext.Value(m.Data).IsValid() { // another program wrote it
			continue
		}
		if room -= len(m.Data) + 64; len(list.Chunks) == most || room < 0 && len(list.Chunks) > 0 {
			list.NextSeq = int64(m.Seq)
			return list, nil
		}
		list.Chunks = append(list.Chunks, events.StoredChunk{Seq: int64(m.Seq), Event: m.Data})
	}
	return list, nil
}
