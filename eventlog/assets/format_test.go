package assets_test

import (
	"errors"
	"testing"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
)

// A log without a format gets the present one, and one of a newer Skein is left as it is.
func TestEnsure_Format(t *testing.T) {
	l := bare(t, eventlog.Config{})
	old := wanted(l)[0].Config
	old.Metadata = map[string]string{"of": "an operator"}
	if _, err := l.JetStream().CreateStream(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := streamsOf(t, l)[old.Name].Config
	if now.Metadata["skein.format"] != "1" || now.Metadata["skein.format.first"] != streams.FirstWithFormat || now.Metadata["of"] != "an operator" {
		t.Errorf("metadata of an older log: %v", now.Metadata)
	}
	now.Metadata["skein.format"], now.Metadata["skein.format.first"], now.Description = "2", "0.9.0", "Of a newer one."
	if _, err := l.JetStream().UpdateStream(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"ensure": l.Ensure(t.Context()), "check": assets.CheckFormat(t.Context(), l.Streams())} {
		var newer *streams.NewerFormatError
		if !errors.As(err, &newer) || newer.Format != "2" || newer.First != "0.9.0" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := streamsOf(t, l)[old.Name].Config; after.Metadata["skein.format"] != "2" || after.Description != now.Description {
		t.Errorf("it was changed: %+v", after)
	}
}
