package user

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// manifestUnchanged is the outcome of a definition that is as it is to be.
const manifestUnchanged events.DefinitionOutcome = "unchanged"

// manifestOutcome is the effect of an apply, or of its dry run, on a definition.
type manifestOutcome struct {
	Kind    events.DefinitionKind    `json:"kind"`
	Name    string                   `json:"name"`
	Outcome events.DefinitionOutcome `json:"outcome"`
	Version int64                    `json:"version,omitzero"` // of the definition with it; absent if unchanged
	Changes []manifestChange         `json:"changes,omitempty"`
}

// manifestOptions says how to apply.
type manifestOptions struct {
	Prune  bool // remove what the files do not have
	DryRun bool // only tell
}

// applyManifest puts a tenant's definitions into the state of the files, in one commit, and returns
// the outcome of each, in the order of the files, with the removed ones last. The outcomes are
// those of the commit: if another change intervenes, Apply starts again.
func applyManifest(ctx context.Context, c *client.Client, entries []manifestEntry, o manifestOptions) ([]manifestOutcome, error) {
	const tries = 10
	for try := 1; ; try++ {
		done, err := apply(ctx, c, entries, o)
		if try < tries && events.HasCode(err, events.VersionConflict) {
			continue
		}
		return done, err
	}
}

func apply(ctx context.Context, c *client.Client, entries []manifestEntry, o manifestOptions) ([]manifestOutcome, error) {
	wish := events.ApplyDefinitions{DryRun: true}
	for i := range entries {
		wish.Definitions = append(wish.Definitions, entries[i].NewDefinition)
	}
	if o.Prune {
		var err error
		if wish.Remove, err = others(ctx, c, entries); err != nil {
			return nil, err
		}
	}
	if len(wish.Definitions)+len(wish.Remove) == 0 {
		return nil, nil
	}
	plan, err := c.Send(ctx, "", wish)
	if err != nil {
		return nil, blame(entries, err)
	}
	outcomes, changes, err := outcomesOf(ctx, c.WithMinSeq(plan.Seq), entries, plan)
	if err != nil || o.DryRun || !changes {
		return outcomes, err
	}
	wish.DryRun = false
	_, err = c.Send(ctx, "", wish, client.ExpectVersion(plan.Version))
	return outcomes, blame(entries, err)
}

// others names what is defined and stands in no file.
func others(ctx context.Context, c *client.Client, entries []manifestEntry) ([]events.DefinitionRef, error) {
	if now, err := c.UpToDate(ctx); err == nil { // credentials may not tell; then the newest may be missing
		c = now
	}
	ours := map[string]bool{}
	for i := range entries {
		ours[entries[i].Ref().ID()] = true
	}
	var refs []events.DefinitionRef
	most := int64(1000)
	for q := (events.ListDefinitions{Bare: true, Limit: &most}); ; {
		page, err := client.Read(ctx, c, q)
		if err != nil {
			return nil, err
		}
		for _, d := range page.Definitions {
			if ref := (events.DefinitionRef{Kind: d.Kind, Name: d.Name}); !ours[ref.ID()] {
				refs = append(refs, ref)
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return refs, nil
		}
	}
}

// outcomesOf tells what a dry run said of each definition, and whether anything
// changes.
func outcomesOf(ctx context.Context, c *client.Client, entries []manifestEntry, plan *events.Reply) (list []manifestOutcome, changes bool, err error) {
	told := map[string]events.DefinitionChange{}
	var removed []manifestOutcome
	if plan.Result != nil {
		for _, d := range plan.Result.Definitions {
			changes = true
			told[events.DefinitionRef{Kind: d.Kind, Name: d.Name}.ID()] = d
			if d.Outcome == events.DefinitionRemoved {
				removed = append(removed, manifestOutcome{Kind: d.Kind, Name: d.Name, Outcome: d.Outcome, Version: d.Version})
			}
		}
	}
	for i := range entries {
		e := &entries[i]
		one := manifestOutcome{Kind: e.Kind, Name: e.Name, Outcome: manifestUnchanged}
		if d, ok := told[e.Ref().ID()]; ok {
			one.Outcome, one.Version = d.Outcome, d.Version
		}
		if one.Outcome == events.DefinitionUpdated {
			was, err := client.Read(ctx, c, events.GetDefinition{Kind: e.Kind, Name: e.Name})
			switch {
			case err == nil:
				one.Changes = diffManifest(was.Definition, e.Definition)
			case !events.IsNotFound(err): // removed meanwhile: Apply starts again
				return nil, false, err
			}
		}
		list = append(list, one)
	}
	return append(list, removed...), changes, nil
}

// blame adds the file and line at fault to a refusal of the server.
func blame(entries []manifestEntry, err error) error {
	var refusal *events.Error
	if !errors.As(err, &refusal) || refusal.Details == nil {
		return err
	}
	rest, ok := strings.CutPrefix(refusal.Details.Path, "/data/definitions/")
	number, _, _ := strings.Cut(rest, "/")
	i, bad := strconv.Atoi(number)
	if !ok || bad != nil || i < 0 || i >= len(entries) {
		return err
	}
	told, details := *refusal, *refusal.Details
	details.Path = strings.TrimPrefix(rest, number)
	told.Details = &details
	told.Message = details.Path + strings.TrimPrefix(refusal.Message, refusal.Details.Path)
	return entries[i].Blame(&told)
}
