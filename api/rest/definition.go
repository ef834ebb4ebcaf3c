package rest

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// applyTries is how often definitions that change meanwhile are looked at again.
const applyTries = 8

// putDefinition defines what the path names: the body is the definition.
func (s *service) putDefinition(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	body, err := readObject(req)
	if err != nil {
		return err
	}
	ref := definitionRef(req)
	if err := otherName(body["name"], ref.Name); err != nil {
		return err
	}
	definition, err := objectSetter{body}.encode()
	if err != nil {
		return err
	}
	return applyDefinitions(w, req, c, ref, events.ApplyDefinitions{
		Definitions: []events.NewDefinition{{Kind: ref.Kind, Name: ref.Name, Definition: definition}},
	})
}

// otherName refuses a definition that has another name in itself than its path.
func otherName(raw jsontext.Value, path string) error {
	var own string
	if raw.Kind() != '"' || json.Unmarshal(raw, &own) != nil || own == path {
		return nil // what is wrong otherwise, the service says
	}
	return events.Invalid("/name", "the path names %.80q, and the body %.80q; leave name out of the body, or ask for its own path", path, own)
}

// deleteDefinition removes what the path names.
func (s *service) deleteDefinition(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	ref := definitionRef(req)
	return applyDefinitions(w, req, c, ref, events.ApplyDefinitions{Remove: []events.DefinitionRef{ref}})
}

func definitionRef(req *http.Request) events.DefinitionRef {
	return events.DefinitionRef{Kind: events.DefinitionKind(req.PathValue("kind")), Name: req.PathValue("name")}
}

// applyDefinitions executes a definition.apply that changes one definition.
func applyDefinitions(w http.ResponseWriter, req *http.Request, c *edge.Caller, ref events.DefinitionRef, data events.ApplyDefinitions) error {
	if _, err := decodeParameters(req, nil, nil); err != nil {
		return err
	}
	holds, err := definitionCondition(req)
	if err != nil {
		return refusal(w, req, err)
	}
	call := client.Request{Data: data}
	if holds == nil {
		err = conditions(req, &call)
	} else {
		call.CommandID, err = commandKey(req, "")
	}
	if err != nil {
		return err
	}
	reply, err := applyWhile(req.Context(), c, ref, call, holds)
	if err != nil {
		return refusal(w, req, unwrapped(err, "/data/definitions/0/definition", "/data/definitions/0", "/data/remove/0", "/remove/0", "/data"))
	}
	writeReply(w, http.StatusOK, reply, reply)
	return nil
}

// condition is what a definition must be: it has the digest, or is not there if that is empty. The
// error is a version_conflict if it does not hold.
type condition func(ref events.DefinitionRef, digest string) error

// definitionCondition returns what the headers of a request say of its definition: nil if nothing,
// or a version, which is that of all definitions of the tenant.
func definitionCondition(req *http.Request) (condition, error) {
	match, none := req.Header.Values("If-Match"), req.Header.Values("If-None-Match")
	_, version := quotedVersion(match)
	switch {
	case len(match) > 0 && len(none) > 0:
		return nil, events.Invalid("/If-Match", "If-Match and If-None-Match exclude one another")
	case len(none) == 1 && none[0] == "*":
		return absent, nil
	case len(none) > 0:
		return nil, events.Invalid("/If-None-Match", "If-None-Match takes *: the definition must not exist")
	case len(match) == 0 || version:
		return nil, nil
	case len(match) != 1 || match[0] != "*" && !isTag(match[0]):
		return nil, events.Invalid("/If-Match", "If-Match takes the ETag of a definition, or *, or the version of all of the tenant's definitions")
	}
	return func(ref events.DefinitionRef, digest string) error {
		switch {
		case digest == "":
			return events.Errorf(events.VersionConflict, "there is no definition %s", ref)
		case match[0] != "*" && match[0] != edge.ETag(digest):
			return otherTag(match[0], "the definition "+ref.ID())
		}
		return nil
	}, nil
}

// absent is the condition that there is no definition.
func absent(ref events.DefinitionRef, digest string) error {
	if digest != "" {
		return events.Errorf(events.VersionConflict, "there is a definition %s already; to replace it, leave out If-None-Match", ref)
	}
	return nil
}

// applyWhile executes a definition.apply, if the definition is as a condition says, and none of the
// tenant's changes in between. A repeat of a command that was executed is answered as the first was.
func applyWhile(ctx context.Context, c *edge.Caller, ref events.DefinitionRef, call client.Request, holds condition) (*events.Reply, error) {
	if holds == nil {
		return c.Client.Do(ctx, "definition.apply", call)
	}
	for try := 0; ; try++ {
		version, digest, err := definitionNow(ctx, c, ref, call.Data)
		if err != nil {
			return nil, err
		}
		failed := holds(ref, digest)
		if failed != nil {
			version-- // which no later state has: only a repeat is answered
		}
		if failed != nil && (call.CommandID == "" || version < 0) {
			return nil, failed
		}
		call.ExpectedVersion = &version
		reply, err := c.Client.Do(ctx, "definition.apply", call)
		switch {
		case !events.HasCode(err, events.VersionConflict):
			return reply, err
		case failed != nil:
			return nil, failed
		case try == applyTries:
			return nil, err
		}
	}
}

// definitionNow returns the version of the tenant's definitions, and the digest that one of them
// has at that version, empty if it is not there. data is what is to be done, which is only tried.
func definitionNow(ctx context.Context, c *edge.Caller, ref events.DefinitionRef, data any) (version int64, digest string, err error) {
	trial, _ := data.(events.ApplyDefinitions)
	trial.DryRun = true
	now, err := c.Client.Do(ctx, "definition.apply", client.Request{Data: trial})
	if err != nil {
		return 0, "", err
	}
	d, err := c.Client.WithMinSeq(now.Seq).Definition(ctx, ref.Kind, ref.Name)
	switch {
	case events.IsNotFound(err):
		return now.Version, "", nil
	case err != nil:
		return 0, "", err
	}
	return now.Version, d.Digest, nil
}
