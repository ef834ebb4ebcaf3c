package sim

import (
	"context"
	"io"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// objects is the store of snapshots. An object whose pieces were purged is there
// and nil, and cannot be read.
type objects struct {
	jetstream.ObjectStore
	jet *jet
}

func (o *objects) Put(ctx context.Context, meta jetstream.ObjectMeta, from io.Reader) (*jetstream.ObjectInfo, error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	_, err = o.jet.do(ctx, "put "+meta.Name, func(s *Server) any {
		s.objects[meta.Name] = data
		return true
	})
	return nil, err
}

func (o *objects) GetBytes(ctx context.Context, name string, _ ...jetstream.GetObjectOpt) ([]byte, error) {
	a, err := o.jet.do(ctx, "object "+name, func(s *Server) any {
		switch data, ok := s.objects[name]; {
		case !ok:
			return jetstream.ErrObjectNotFound
		case data == nil:
			return jetstream.ErrDigestMismatch
		default:
			return data
		}
	})
	if err != nil {
		return nil, err
	}
	return a.([]byte), nil
}

// GetInfo returns an object's own name as that of its pieces.
func (o *objects) GetInfo(ctx context.Context, name string, _ ...jetstream.GetObjectInfoOpt) (*jetstream.ObjectInfo, error) {
	a, err := o.jet.do(ctx, "info of "+name, func(s *Server) any {
		if _, ok := s.objects[name]; !ok {
			return jetstream.ErrObjectNotFound
		}
		return &jetstream.ObjectInfo{NUID: name}
	})
	if err != nil {
		return nil, err
	}
	return a.(*jetstream.ObjectInfo), nil
}

func (o *objects) Delete(ctx context.Context, name string) error {
	_, err := o.jet.do(ctx, "drop "+name, func(s *Server) any {
		if _, ok := s.objects[name]; !ok {
			return jetstream.ErrObjectNotFound
		}
		delete(s.objects, name)
		return true
	})
	return err
}

// purgePieces takes the pieces of the object that a subject names, "$O.bucket.C.name".
func (s *Server) purgePieces(subject string) {
	_, name, _ := strings.Cut(subject, ".C.")
	if _, ok := s.objects[name]; ok {
		s.objects[name] = nil
	}
}
