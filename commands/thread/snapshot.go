package thread

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
)

// snapshotVersion is the version of an encoded state. A snapshot of another version is
// ignored: it is derived, and the state is folded from the log instead. Any change of the
// encoded names or of their meaning needs a new number.
const snapshotVersion = 15

// sealed is an encoded state with its digest. The state contains the version, the sequence and the
// chain digest of the last commit folded into it, so the digest also binds the state to that
// commit.
type sealed struct {
	Form   int            `json:"form"`
	Digest string         `json:"digest"` // SHA-256 of the state, in hex
	State  jsontext.Value `json:"state"`
}

// FormError is the error of a snapshot that another version of Skein wrote.
type FormError struct{ Form int }

func (e *FormError) Error() string {
	return fmt.Sprintf("snapshot of form %d: this version reads form %d", e.Form, snapshotVersion)
}

type snapshot struct {
	Head       head                                                   `json:"head"`
	Contexts   map[string]contextState                                `json:"contexts,omitempty"`
	Items      compact.Object[itemState, packedItem, *pool]           `json:"items,omitzero"`
	Executions compact.Object[executionState, packedExecution, *pool] `json:"executions,omitzero"`
	Steps      compact.Object[stepState, packedStep, *pool]           `json:"steps,omitzero"`
	Files      map[string]fileState                                   `json:"files,omitempty"`
	Effects    map[string]effectState                                 `json:"effects,omitempty"`
	Relations  map[string]relationState                               `json:"relations,omitempty"`

	Definitions map[string]definitionState `json:"definitions,omitempty"`

	Receipts receipts `json:"receipts"`
}

// columns returns a snapshot that reads and writes the entities of s in place.
func (s *State) columns(in *pool) snapshot {
	return snapshot{
		Items:      compact.Object[itemState, packedItem, *pool]{Map: &s.items, In: in},
		Executions: compact.Object[executionState, packedExecution, *pool]{Map: &s.executions, In: in},
		Steps:      compact.Object[stepState, packedStep, *pool]{Map: &s.steps, In: in},
	}
}

// Encode encodes the state as JSON; the same state always has the same bytes.
func (s *State) Encode() ([]byte, error) {
	var to bytes.Buffer
	err := s.EncodeTo(&to)
	return to.Bytes(), err
}

// EncodeTo appends what Encode returns to the buffer, and allocates nothing for the output if the
// buffer has room for it.
func (s *State) EncodeTo(to *bytes.Buffer) error {
	out := s.columns(s.pool)
	out.Head, out.Contexts, out.Files, out.Effects = s.head, s.contexts, s.files, s.effects
	out.Relations, out.Definitions, out.Receipts = s.relations, s.definitions, s.receipts
	begin := to.Len()
	fmt.Fprintf(to, `{"form":%d,"digest":"`, snapshotVersion)
	digest := to.Len()
	fmt.Fprintf(to, `%*s","state":`, hex.EncodedLen(sha256.Size), "")
	state := to.Len()
	// Maps have no duplicate names, and clients' values were checked for them when they arrived.
	if err := json.MarshalWrite(to, out, json.Deterministic(true), jsontext.AllowDuplicateNames(true)); err != nil {
		to.Truncate(begin)
		return err
	}
	copy(to.Bytes()[digest:], sealOf(to.Bytes()[state:]))
	to.WriteByte('}')
	return nil
}

func sealOf(state []byte) string {
	sum := sha256.Sum256(state)
	return hex.EncodeToString(sum[:])
}

// DecodeState decodes the output of Encode. The error says that the bytes are malformed, were
// changed, or have another form (a *FormError); the state can then be folded from the log.
func DecodeState(b []byte) (*State, error) {
	// The digest proves that Skein wrote it, and Skein writes no duplicate names.
	unique := jsontext.AllowDuplicateNames(true)
	var whole sealed
	if err := json.Unmarshal(b, &whole, unique); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	if whole.Form != snapshotVersion {
		return nil, &FormError{Form: whole.Form}
	}
	if whole.Digest != sealOf(whole.State) {
		return nil, fmt.Errorf("snapshot was changed: its digest is %.80q", whole.Digest)
	}
	s := &State{}
	in := s.columns(s.packing())
	if err := json.Unmarshal(whole.State, &in, unique); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	s.head = in.Head
	for _, q := range s.Queue {
		s.bytes += q.size()
	}
	for _, name := range s.Skills {
		s.bytes += compact.TextSize(name) + 16
	}
	adopt(s, &s.contexts, in.Contexts)
	adopt(s, &s.files, in.Files)
	adopt(s, &s.effects, in.Effects)
	adopt(s, &s.relations, in.Relations)
	adopt(s, &s.definitions, in.Definitions)
	s.receipts = in.Receipts
	s.receipts.index()
	return s, nil
}

// adopt makes a decoded map part of the state, and counts its size.
func adopt[V interface{ size() int64 }](s *State, into *map[string]V, m map[string]V) {
	for id, v := range m {
		s.bytes += compact.TextSize(id) + v.size()
	}
	*into = m
}

// window is how long a repeated command returns its first reply.
const window = 24 * 3600 * 1e6 // microseconds

// receipts records which commit executed which command, oldest first. It keeps 24 hours, measured
// by the times of the thread's events.
type receipts struct {
	List []receipt `json:"list,omitempty"`
	byID map[string]uint64
	text int64
}

type receipt struct {
	ID     string      `json:"id"`
	Digest string      `json:"digest,omitzero"` // of the command; empty if it is not known
	Seq    uint64      `json:"seq"`
	Time   events.Time `json:"time"`
}

func (r *receipts) find(id string) (uint64, bool) {
	seq, ok := r.byID[id]
	return seq, ok
}

// digest returns the digest of the command that find has found at seq.
func (r *receipts) digest(id string, seq uint64) string {
	at, _ := slices.BinarySearchFunc(r.List, seq, func(one receipt, seq uint64) int { return cmp.Compare(one.Seq, seq) })
	for ; at < len(r.List) && r.List[at].Seq == seq; at++ {
		if r.List[at].ID == id {
			return r.List[at].Digest
		}
	}
	return ""
}

func (r *receipts) add(id, digest string, seq uint64, at events.Time) {
	if r.byID == nil {
		r.byID = map[string]uint64{}
	}
	old := 0
	for old < len(r.List) && r.List[old].Time < at-window {
		r.forget(r.List[old])
		old++
	}
	r.List = append(r.List[old:], receipt{id, digest, seq, at})
	r.byID[id] = seq
	r.text += int64(len(id) + len(digest))
}

// forget removes a receipt, unless the same id was used again after the 24 hours.
func (r *receipts) forget(old receipt) {
	if r.byID[old.ID] == old.Seq {
		delete(r.byID, old.ID)
	}
	r.text -= int64(len(old.ID) + len(old.Digest))
}

// index builds the map of a decoded list.
func (r *receipts) index() {
	list := r.List
	r.List = nil
	for _, one := range list {
		r.add(one.ID, one.Digest, one.Seq, one.Time)
	}
}

func (r *receipts) bytes() int64 { return r.text + int64(len(r.List))*124 }
