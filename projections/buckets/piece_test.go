package buckets

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/documents"
)

// Whatever a document holds, its stub and pieces make the same bytes again.
func TestStub_JoinsToTheDocument(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var value func(depth int) string
	value = func(depth int) string {
		switch rng.IntN(6) {
		case 0:
			return fmt.Sprint(rng.IntN(1000))
		case 1:
			return `"` + strings.Repeat("ä\\n", rng.IntN(40_000)) + `"`
		case 2:
			return `[]`
		}
		if depth == 0 {
			return "null"
		}
		var fields []string
		for i := range rng.IntN(8) {
			fields = append(fields, fmt.Sprintf(`"f%d":%s`, i, value(depth-1)))
		}
		if rng.IntN(2) == 0 {
			for i := range fields {
				_, fields[i], _ = strings.Cut(fields[i], ":")
			}
			return "[" + strings.Join(fields, ",") + "]"
		}
		return "{" + strings.Join(fields, ",") + "}"
	}
	many := `{"list":[` + strings.TrimSuffix(strings.Repeat(`{"n":1},`, 300_000), ",") + `]}`
	for round := range 60 {
		raw := `{"a":` + value(4) + `,"pad":"` + strings.Repeat("p", LargeDocument) + `"}`
		if round == 0 {
			raw = many
		}
		const most = 256 << 10
		s := StubOf(documents.Items, 9, []byte(raw), most)
		if s == nil {
			t.Fatal("it has no stub")
		}
		encoded, err := s.Encode()
		if err != nil || len(encoded) > most/2 {
			t.Fatalf("round %d: the stub of %d bytes has %d, %v", round, len(raw), len(encoded), err)
		}
		pieces := map[string]streams.Message{}
		for _, piece := range s.Pieces() {
			if len(piece.Data) > most/2 {
				t.Fatalf("round %d: a piece has %d bytes", round, len(piece.Data))
			}
			key := documents.PieceKey("acme.T-1", piece.Digest)
			pieces[key] = streams.Message{Subject: key, Data: piece.Data}
		}
		got, err := Whole(t.Context(), documents.Place{Kind: documents.Items, Thread: "acme.T-1", ID: "i"}, streams.Message{Header: s.Header(), Data: encoded},
			func(_ context.Context, keys ...string) (some []streams.Message, err error) {
				for _, k := range keys {
					some = append(some, pieces[k])
				}
				return some, nil
			})
		if err != nil || string(got) != raw {
			t.Fatalf("round %d: %d bytes came of %d, %v", round, len(got), len(raw), err)
		}
	}
}
