package sim

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// Server is nats-server, as far as the log, the relay and the runner use it. It
// is deterministic, does one thing at a time, and is not safe for concurrent
// use.
type Server struct {
	streams map[string]*stream
	readers []*reader
	now     func() time.Time
	step    int // of the run; kept with what is stored

	// Lag says how many of a stream's newest messages a direct get does not see
	// yet, of so many that it could miss.
	lag func(most uint64) uint64
}

// NewServer makes a server without streams.
func NewServer(now func() time.Time) *Server {
	return &Server{streams: map[string]*stream{}, now: now, lag: func(uint64) uint64 { return 0 }}
}

// Add makes a stream. A bucket's keeps the last message of each subject alone.
func (s *Server) Add(name string, bucket, replicated bool, window time.Duration) {
	s.streams[name] = newStream(name, bucket, replicated, window)
}

// of returns the stream that stores a subject, nil if none does.
func (s *Server) of(subject string) *stream {
	return s.streams[streamOf(subject)]
}

// streamOf returns the name of the stream that stores a subject.
func streamOf(subject string) string {
	parts := strings.SplitN(subject, ".", 3)
	switch parts[0] {
	case "$KV":
		return "KV_" + parts[1]
	case "$O":
		return "OBJ_" + parts[1]
	}
	return strings.ToUpper(parts[0] + "_" + parts[1])
}

// Publish stores a message, and returns the acknowledgement: nil for one of an open batch. ok
// reports whether a stream accepted it.
func (s *Server) Publish(m *nats.Msg) (answer *nats.Msg, ok bool) {
	st := s.of(m.Subject)
	if st == nil {
		return nil, false
	}
	a := st.publish(m, s.now(), s.step)
	if a == nil {
		return nil, true
	}
	return &nats.Msg{Data: a.json(st.name)}, true
}

// getRequest is the body of a read, by the leader or direct.
type getRequest struct {
	Seq      uint64    `json:"seq"`
	Last     string    `json:"last_by_subj"`
	Next     string    `json:"next_by_subj"`
	Start    time.Time `json:"start_time"`
	Multi    []string  `json:"multi_last"`
	Batch    int       `json:"batch"`
	MaxBytes int       `json:"max_bytes"`
}

// Ask answers a request of JetStream's API: several messages to a direct get of
// many, one to any other. ok says whether anybody took it.
func (s *Server) Ask(subject string, body []byte) (answers []*nats.Msg, ok bool) {
	var q getRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, true
	}
	if name, found := strings.CutPrefix(subject, "$JS.API.STREAM.MSG.GET."); found {
		st := s.streams[name]
		if st == nil {
			return []*nats.Msg{{Data: []byte(`{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`)}}, true
		}
		return []*nats.Msg{leaderAnswer(st.get(q, st.last()))}, true
	}
	name, found := strings.CutPrefix(subject, "$JS.API.DIRECT.GET.")
	st := s.streams[name]
	if !found || st == nil {
		return nil, false
	}
	end := st.last() - s.lag(st.last())
	if len(q.Multi) > 0 {
		return st.multi(q, end), true
	}
	return st.direct(q, end), true
}

// get finds the one message that a read names, nil if there is none.
func (s *stream) get(q getRequest, end uint64) *stored {
	switch {
	case q.Next != "":
		return s.next(q.Next, s.since(q), end)
	case q.Last != "":
		return s.lastOf(q.Last, end)
	case q.Seq > 0 && q.Seq <= end && s.held[q.Seq-1].there(end):
		return s.held[q.Seq-1]
	}
	return nil
}

// since returns the sequence at which a read begins.
func (s *stream) since(q getRequest) uint64 {
	if q.Start.IsZero() {
		return q.Seq
	}
	for _, m := range s.held {
		if m.gone == 0 && !m.at.Before(q.Start) {
			return m.seq
		}
	}
	return s.last() + 1
}

// leaderAnswer is what the leader says of a message.
func leaderAnswer(m *stored) *nats.Msg {
	if m == nil {
		return &nats.Msg{Data: []byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`)}
	}
	body, _ := json.Marshal(map[string]any{"message": map[string]any{
		"subject": m.subject, "seq": m.seq, "hdrs": m.wire(), "data": m.data,
	}})
	return &nats.Msg{Data: body}
}

// wire returns the headers as they are stored.
func (m *stored) wire() []byte {
	if len(m.header) == 0 {
		return nil
	}
	b := []byte("NATS/1.0\r\n")
	for _, name := range slices.Sorted(maps.Keys(m.header)) {
		b = append(append(append(append(b, name...), ": "...), m.header[name][0]...), "\r\n"...)
	}
	return append(b, "\r\n"...)
}

func status(code, text string) *nats.Msg {
	return &nats.Msg{Header: nats.Header{"Status": {code}, "Description": {text}}}
}

// found returns a message in the form of a direct get.
func (s *stream) found(m *stored) *nats.Msg {
	h := make(nats.Header, len(m.header)+4)
	for k, v := range m.header {
		h[k] = v
	}
	h["Nats-Stream"], h["Nats-Subject"] = []string{s.name}, []string{m.subject}
	h["Nats-Sequence"] = []string{strconv.FormatUint(m.seq, 10)}
	return &nats.Msg{Header: h, Data: m.data}
}

// inBatch marks an answer of several: so many are left, and that was the one before.
func inBatch(m *nats.Msg, left int, before uint64) *nats.Msg {
	m.Header["Nats-Num-Pending"] = []string{strconv.Itoa(left)}
	m.Header[nats.JSLastSequence] = []string{strconv.FormatUint(before, 10)}
	return m
}

// direct answers a direct get of one message or of a range.
func (s *stream) direct(q getRequest, end uint64) []*nats.Msg {
	if q.Batch == 0 {
		m := s.get(q, end)
		if m == nil {
			return []*nats.Msg{status("404", "Message Not Found")}
		}
		return []*nats.Msg{s.found(m)}
	}
	var all []*stored
	for seq := max(s.since(q), 1); ; {
		m := s.next(q.Next, seq, end)
		if m == nil {
			break
		}
		all, seq = append(all, m), m.seq+1
	}
	if len(all) == 0 {
		return []*nats.Msg{status("404", "Message Not Found")}
	}
	return s.page(all, q)
}

// multi answers a direct get of the last messages of many subjects.
func (s *stream) multi(q getRequest, end uint64) []*nats.Msg {
	var all []*stored
	for _, pattern := range q.Multi {
		if !strings.ContainsAny(pattern, "*>") {
			if m := s.lastOf(pattern, end); m != nil {
				all = append(all, m)
			}
			continue
		}
		for subject := range s.bySubj {
			if m := s.lastOf(subject, end); m != nil && matches(subject, pattern) {
				all = append(all, m)
			}
		}
	}
	slices.SortFunc(all, func(a, b *stored) int { return int(a.seq) - int(b.seq) })
	all = slices.Compact(all)
	switch {
	case len(all) > 1024:
		return []*nats.Msg{status("413", "Too Many Results")}
	case len(all) == 0:
		return []*nats.Msg{status("404", "No Results")}
	}
	all = slices.DeleteFunc(all, func(m *stored) bool { return m.seq < q.Seq })
	out := s.page(all, q)
	out[len(out)-1].Header["Nats-UpTo-Sequence"] = []string{strconv.FormatUint(end, 10)}
	return out
}

// page returns as many as were requested, and the mark of their end.
func (s *stream) page(all []*stored, q getRequest) []*nats.Msg {
	var out []*nats.Msg
	left, bytes, before := len(all), 0, uint64(0)
	for _, m := range all {
		left--
		out = append(out, inBatch(s.found(m), left, before))
		before = m.seq
		if bytes += len(m.subject) + len(m.wire()) + len(m.data); q.MaxBytes > 0 && bytes >= q.MaxBytes || len(out) == q.Batch {
			break
		}
	}
	return append(out, inBatch(status("204", "EOB"), left, before))
}

// names returns the streams' names in order.
func (s *Server) names() []string {
	return slices.Sorted(maps.Keys(s.streams))
}
